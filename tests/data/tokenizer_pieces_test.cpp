// The pre-tokeniser against Python's `regex` module, whose meaning of GPT-2's pattern is the rule.
#include <vector>

#include "common/data/pretokenizer.h"
#include "tests/data/tokenizer_test_support.h"

namespace strata::tests {
namespace {

using data::PieceScanner;
using data::PreTokenizer;

std::vector<std::string> pieces_of(PieceScanner& scanner, std::string_view text) {
  std::vector<std::string> pieces;
  scanner.start(text);
  for (std::string_view piece = scanner.next(); !piece.empty(); piece = scanner.next())
    pieces.emplace_back(piece);
  return pieces;
}

std::vector<std::string> pieces_of(std::string_view text) {
  PieceScanner scanner{PreTokenizer()};
  return pieces_of(scanner, text);
}

std::string utf8(std::uint32_t c) {
  const auto byte = [](std::uint32_t value) { return static_cast<char>(value); };
  if (c < 0x80) return {byte(c)};
  if (c < 0x800) return {byte(0xC0 | c >> 6), byte(0x80 | (c & 0x3F))};
  if (c < 0x10000)
    return {byte(0xE0 | c >> 12), byte(0x80 | (c >> 6 & 0x3F)), byte(0x80 | (c & 0x3F))};
  return {byte(0xF0 | c >> 18), byte(0x80 | (c >> 12 & 0x3F)), byte(0x80 | (c >> 6 & 0x3F)),
          byte(0x80 | (c & 0x3F))};
}

enum class Class : char { letter = 'L', number = 'N', white = 'W', other = 'O' };

/// The class of a character, as the pieces show it: it joins a character of its own class.
Class class_of(PieceScanner& scanner, const std::string& character) {
  const auto joins = [&](char neighbour) {
    return pieces_of(scanner, neighbour + character).size() == 1;
  };
  if (joins('!')) return Class::other;
  if (joins('a')) return Class::letter;
  if (joins('1')) return Class::number;
  return Class::white;
}

/// Classes by code point as the fixture has them; unassigned ones are left out (0).
std::vector<char> expected_classes(const nlohmann::json& fixture) {
  std::vector<char> classes(0x110000, 0);
  const auto fill = [&](const char* name, Class value) {
    for (const auto& range : fixture.at(name))
      for (std::size_t c = range[0]; c <= range[1].get<std::size_t>(); ++c)
        classes[c] = static_cast<char>(value);
  };
  fill("assigned", Class::other);
  fill("letters", Class::letter);
  fill("numbers", Class::number);
  for (const std::size_t c : fixture.at("white")) classes[c] = static_cast<char>(Class::white);
  return classes;
}

TEST_CASE("every code point that Unicode 14 has is letter, digit, white space or other as in regex",
          "[tokenizer]") {
  const std::vector<char> expected = expected_classes(read_json_fixture("classes.json"));
  PieceScanner scanner{PreTokenizer()};
  std::size_t compared = 0;
  for (std::uint32_t c = 0; c < expected.size(); ++c) {
    if (expected[c] == 0) continue;
    ++compared;
    const char found = static_cast<char>(class_of(scanner, utf8(c)));
    if (found != expected[c]) FAIL_CHECK("U+" << std::hex << c << " " << found << expected[c]);
  }
  CHECK(compared > 280000);
}

TEST_CASE("exactly 25 characters are white space, U+180E and U+001C not among them",
          "[tokenizer]") {
  const nlohmann::json white = read_json_fixture("classes.json").at("white");
  std::vector<std::uint32_t> found;
  PieceScanner scanner{PreTokenizer()};
  for (std::uint32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    if (class_of(scanner, utf8(c)) == Class::white) found.push_back(c);
  }
  CHECK(found == white.get<std::vector<std::uint32_t>>());
  CHECK(found.size() == 25);
  CHECK(class_of(scanner, "\xE1\xA0\x8E") == Class::other);  // U+180E, white space to PCRE2's \s
  CHECK(class_of(scanner, "\x1C") == Class::other);          // white space to Python's str.isspace
  CHECK(class_of(scanner, "\xC2\x85") == Class::white);      // U+0085
}

TEST_CASE("texts are cut into the pieces that regex finds", "[tokenizer]") {
  for (const nlohmann::json& sample : read_json_fixture("samples.json")) {
    std::vector<std::size_t> lengths;
    for (const std::string& piece : pieces_of(from_hex(sample.at("hex"))))
      lengths.push_back(piece.size());
    INFO(sample.at("name"));
    CHECK(lengths == sample.at("pieces").get<std::vector<std::size_t>>());
  }
}

TEST_CASE("a run of spaces leaves its last space to the word behind it", "[tokenizer]") {
  using Pieces = std::vector<std::string>;
  CHECK(pieces_of("a   b") == Pieces{"a", "  ", " b"});
  CHECK(pieces_of("a \n b ") == Pieces{"a", " \n", " b", " "});
  CHECK(pieces_of("it's we'll I'D") == Pieces{"it", "'s", " we", "'ll", " I", "'", "D"});
}

TEST_CASE("stray bytes are pieces of their own and end the text before them", "[tokenizer]") {
  using Pieces = std::vector<std::string>;
  CHECK(pieces_of("a  \xFF b") == Pieces{"a", "  ", "\xFF", " b"});
  CHECK(pieces_of("\xE4\xBDx") == Pieces{"\xE4", "\xBD", "x"});
  CHECK(pieces_of("\xED\xA0\x80") == Pieces{"\xED", "\xA0", "\x80"});  // a surrogate
  CHECK(pieces_of("\xC0\xAF") == Pieces{"\xC0", "\xAF"});              // overlong
  CHECK(pieces_of("\xF4\x90\x80\x80") == Pieces{"\xF4", "\x90", "\x80", "\x80"});
  CHECK(pieces_of("caf\xC3") == Pieces{"caf", "\xC3"});
  CHECK(pieces_of("").empty());
}

TEST_CASE("valid UTF-8 ends where a reference decoder says", "[tokenizer]") {
  CHECK(data::valid_utf8_prefix("") == 0);
  CHECK(data::valid_utf8_prefix("0123456789\x80") == 10);
  for (std::uint32_t c = 0; c < 0x110000; c += 0x11) {
    const bool surrogate = c >= 0xD800 && c < 0xE000;
    const std::string character = utf8(c);
    if (data::valid_utf8_prefix(character) != (surrogate ? 0 : character.size()))
      FAIL_CHECK("U+" << std::hex << c);
    if (data::valid_utf8_prefix(character.substr(0, character.size() - 1)) != 0)
      FAIL_CHECK("a part of U+" << std::hex << c);
  }
}

TEST_CASE("the pieces are the same without generated code", "[tokenizer]") {
  RandomTexts texts(11);
  PieceScanner compiled{PreTokenizer(true)}, interpreted{PreTokenizer(false)};
  for (int round = 0; round < 200; ++round) {
    const std::string text = round % 2 == 0 ? texts.mixed(300) : texts.bytes(300);
    const std::vector<std::string> pieces = pieces_of(compiled, text);
    CHECK(pieces == pieces_of(interpreted, text));
    std::string joined;
    for (const std::string& piece : pieces) joined += piece;
    CHECK(joined == text);
  }
  for (const char c : {'a', ' ', '7', '='}) {
    const std::string megabyte(1 << 20, c);
    CHECK(pieces_of(interpreted, megabyte) == pieces_of(compiled, megabyte));
  }
}

}  // namespace
}  // namespace strata::tests
