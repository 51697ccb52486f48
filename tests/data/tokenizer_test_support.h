// What the tokenizer's tests share: fixtures, random texts, and a tokenizer too simple to be wrong.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/data/tokenizer.h"
#include "common/io/files.h"
#include "tests/catch.h"

namespace strata::tests {

using Ids = std::vector<std::uint32_t>;

inline std::filesystem::path tokenizer_fixture(const std::string& name) {
  return std::filesystem::path(STRATA_SOURCE_DIR) / "tests/fixtures/tokenizer" / name;
}

inline nlohmann::json read_json_fixture(const std::string& name) {
  return nlohmann::json::parse(io::read_file(tokenizer_fixture(name)));
}

/// The committed vocabulary of 400 tokens, which our trainer made of corpus.txt.
inline data::Tokenizer small_tokenizer() {
  return data::Tokenizer::load(tokenizer_fixture("tokenizer.json"));
}

/// GPT-2's published vocabulary, which is not part of the repository.
inline std::filesystem::path gpt2_vocabulary() {
  return std::filesystem::path(STRATA_SOURCE_DIR) / "../shared/data/gpt2-vocab";
}

/// Says why a test of the real vocabulary is skipped, and whether it is.
inline bool gpt2_vocabulary_is_absent() {
  if (std::filesystem::exists(gpt2_vocabulary() / "vocab.json")) return false;
  WARN("skipped: GPT-2's vocab.json and merges.txt are not in ../shared/data/gpt2-vocab");
  return true;
}

/// The bytes that hexadecimal digits spell.
inline std::string from_hex(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return bytes;
}

/// Texts that look for trouble: pieces of many kinds, drawn and joined at random.
class RandomTexts {
 public:
  explicit RandomTexts(std::uint32_t seed) : generator_(seed) {}

  /// A number under `bound`, the same on every platform.
  std::size_t draw(std::size_t bound) { return generator_() % bound; }

  /// About `length` bytes, of every value.
  std::string bytes(std::size_t length);
  /// Words, white space, digits, many scripts, and bytes that are no UTF-8.
  std::string mixed(std::size_t length);
  /// Letters of a small alphabet: long words with many equal and overlapping pairs.
  std::string letters(std::size_t length, std::size_t alphabet);

 private:
  std::mt19937 generator_;
};

/// BPE as its definition has it: find the lowest-ranked pair, merge it where it first stands, from
/// the start again. Quadratic. `looks` counts the pairs looked at.
Ids naive_encode_word(const data::Vocabulary& vocabulary, std::string_view word,
                      std::uint64_t* looks = nullptr);

}  // namespace strata::tests
