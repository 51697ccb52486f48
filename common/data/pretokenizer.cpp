#include "common/data/pretokenizer.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>

namespace strata::data {
namespace {

// OpenAI publishes the pattern for Python's `regex` module, where \s is Unicode's White_Space: these
// 25 characters, the same for Hugging Face's tokenizers and for tiktoken. We spell them out because
// "\s" means other things elsewhere: PCRE2's also has U+180E (Mongolian vowel separator, which
// Unicode moved out of the class in 2013), Python's own `re` also has U+001C..U+001F.
//
// \p{L} and \p{N} are those of the Unicode version that PCRE2 was built with. For a character that
// is assigned there they agree with all three libraries; a letter or digit that Unicode added later
// counts as "neither letter nor digit" until PCRE2 learns of it, as in every library of that age.
// The tests check every code point against `regex`.
#define WHITE \
  R"(\t-\r \x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})"

// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
constexpr char gpt2_pattern[] =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^)" WHITE R"(\p{L}\p{N}]+|[)" WHITE
    R"(]+(?![^)" WHITE R"(])|[)" WHITE R"(]+)";
#undef WHITE

std::string pcre2_message(int error) {
  PCRE2_UCHAR message[256];
  pcre2_get_error_message(error, message, sizeof message);
  return reinterpret_cast<const char*>(message);
}

/// The length of the valid character at the start of `text`, which is not empty; 0 if there is none.
std::size_t valid_character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t first = byte(0);
  if (first < 0x80) return 1;
  if (first < 0xC2 || first > 0xF4) return 0;
  const std::size_t length = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  if (text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xC0) != 0x80) return 0;
  if (first == 0xE0 && byte(1) < 0xA0) return 0;  // overlong
  if (first == 0xED && byte(1) > 0x9F) return 0;  // surrogate
  if (first == 0xF0 && byte(1) < 0x90) return 0;  // overlong
  if (first == 0xF4 && byte(1) > 0x8F) return 0;  // above U+10FFFF
  return length;
}

}  // namespace

std::size_t valid_utf8_prefix(std::string_view text) {
  std::size_t length = 0;
  while (length < text.size()) {
    std::uint64_t eight;
    if (text.size() - length >= sizeof eight) {  // ASCII goes eight bytes at a time
      std::memcpy(&eight, text.data() + length, sizeof eight);
      if ((eight & 0x8080808080808080u) == 0) {
        length += sizeof eight;
        continue;
      }
    }
    const std::size_t character = valid_character(text.substr(length));
    if (character == 0) break;
    length += character;
  }
  return length;
}

PreTokenizer::PreTokenizer(bool jit) {
  int error = 0;
  PCRE2_SIZE offset = 0;
  code_.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(gpt2_pattern), sizeof gpt2_pattern - 1,
                            PCRE2_UTF | PCRE2_UCP | PCRE2_ANCHORED, &error, &offset, nullptr),
              pcre2_code_free);
  if (code_ == nullptr)
    throw std::runtime_error("PCRE2 refuses GPT-2's pattern at offset " + std::to_string(offset) +
                             ": " + pcre2_message(error));
  jit_ = jit && pcre2_jit_compile(code_.get(), PCRE2_JIT_COMPLETE) == 0;
}

PieceScanner::PieceScanner(const PreTokenizer& pretokenizer)
    : pretokenizer_(pretokenizer),
      match_(pcre2_match_data_create(1, nullptr), pcre2_match_data_free) {
  if (match_ == nullptr) throw std::bad_alloc();
  match_bounds_ = pcre2_get_ovector_pointer(match_.get());
}

void PieceScanner::start(std::string_view text) {
  valid_ = {};
  rest_ = text;
}

std::string_view PieceScanner::next() {
  if (valid_.empty()) {
    if (rest_.empty()) return {};
    const std::size_t valid = valid_utf8_prefix(rest_);
    if (valid == 0) {
      const std::string_view stray = rest_.substr(0, 1);
      rest_.remove_prefix(1);
      return stray;
    }
    valid_ = rest_.substr(0, valid);
    rest_.remove_prefix(valid);
  }
  // The pattern looks ahead but never back, so what is left can be matched as a text of its own.
  const auto subject = reinterpret_cast<PCRE2_SPTR>(valid_.data());
  const auto match = pretokenizer_.jit_ ? pcre2_jit_match : pcre2_match;
  const int result = match(pretokenizer_.code_.get(), subject, valid_.size(), 0, PCRE2_NO_UTF_CHECK,
                           match_.get(), nullptr);
  if (result < 0 || match_bounds_[1] == 0)
    throw std::runtime_error("PCRE2 cannot cut a text into words: " + pcre2_message(result));
  const std::string_view piece = valid_.substr(0, match_bounds_[1]);
  valid_.remove_prefix(piece.size());
  return piece;
}

}  // namespace strata::data
