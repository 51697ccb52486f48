#include "tests/data/tokenizer_test_support.h"

#include <cstddef>

namespace strata::tests {

std::string RandomTexts::bytes(std::size_t length) {
  std::string text;
  while (text.size() < length) text += static_cast<char>(draw(256));
  return text;
}

std::string RandomTexts::mixed(std::size_t length) {
  using namespace std::string_view_literals;
  static constexpr std::string_view parts[] = {"the"sv,
                                               " of"sv,
                                               "aaaa"sv,
                                               "ab"sv,
                                               "ba"sv,
                                               " "sv,
                                               "  "sv,
                                               "\n"sv,
                                               "\t\n"sv,
                                               "1"sv,
                                               "2024"sv,
                                               "'s"sv,
                                               "'ll"sv,
                                               "'"sv,
                                               "!"sv,
                                               "=="sv,
                                               "\xC3\xA9"sv,
                                               "\xE4\xBD\xA0"sv,
                                               "\xF0\x9F\x98\x80"sv,
                                               "\xC2\xA0"sv,
                                               "\xE1\xA0\x8E"sv,
                                               "\xE3\x80\x80"sv,
                                               "\x1C"sv,
                                               "\xFF"sv,
                                               "\xE4"sv,
                                               "\x80"sv,
                                               "\xED\xA0\x80"sv,
                                               "\0"sv,
                                               "<|endoftext|>"sv};
  std::string text;
  while (text.size() < length) text += parts[draw(std::size(parts))];
  return text;
}

std::string RandomTexts::letters(std::size_t length, std::size_t alphabet) {
  std::string text;
  while (text.size() < length) text += static_cast<char>('a' + draw(alphabet));
  return text;
}

Ids naive_encode_word(const data::Vocabulary& vocabulary, std::string_view word,
                      std::uint64_t* looks) {
  Ids ids;
  for (const char byte : word)
    for (std::uint32_t id = 0; id < vocabulary.tokens.size(); ++id)
      if (vocabulary.tokens[id] == std::string_view(&byte, 1)) ids.push_back(id);
  while (true) {
    std::size_t best_rank = vocabulary.merges.size(), best_place = 0;
    for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
      if (looks != nullptr) ++*looks;
      for (std::size_t rank = 0; rank < best_rank; ++rank) {
        const data::Merge& merge = vocabulary.merges[rank];
        if (merge.left != ids[i] || merge.right != ids[i + 1]) continue;
        best_rank = rank;
        best_place = i;
      }
    }
    if (best_rank == vocabulary.merges.size()) return ids;
    ids[best_place] = vocabulary.merges[best_rank].result;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(best_place) + 1);
  }
}

}  // namespace strata::tests
