// Byte-pair encoding of one word: merges of the lowest rank first, until none applies.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <queue>
#include <string_view>
#include <vector>

#include "common/data/token_chain.h"
#include "common/data/vocabulary.h"

namespace strata::data {

/// The merges of a vocabulary, to be found by their pair: a hash table with linear probing, at most
/// half full. Immutable.
class MergeTable {
 public:
  static constexpr std::uint32_t no_rank = 0xffffffffu;

  explicit MergeTable(const Vocabulary& vocabulary);

  /// The rank of the merge of `left` and `right`; `no_rank` if there is none.
  [[nodiscard]] std::uint32_t rank(std::uint32_t left, std::uint32_t right) const {
    const std::uint64_t key = pair_key(left, right);
    for (std::size_t slot = hash(key) >> shift_;; slot = (slot + 1) & mask_) {
      if (slots_[slot].key == key) return slots_[slot].rank;
      if (slots_[slot].key == empty_key) return no_rank;
    }
  }
  [[nodiscard]] const Merge& merge(std::uint32_t rank) const { return merges_[rank]; }
  [[nodiscard]] std::size_t size() const { return merges_.size(); }
  /// The id of a single byte.
  [[nodiscard]] std::uint32_t byte_token(char byte) const {
    return byte_tokens_[static_cast<std::uint8_t>(byte)];
  }
  /// The bytes of each token.
  [[nodiscard]] const std::vector<std::uint32_t>& lengths() const { return lengths_; }

 private:
  struct Slot {
    std::uint64_t key;
    std::uint32_t rank;
  };
  static constexpr std::uint64_t empty_key = ~std::uint64_t{0};  // of no pair: ids are under 2^24

  [[nodiscard]] static std::uint64_t pair_key(std::uint32_t left, std::uint32_t right) {
    return std::uint64_t{left} << 32 | right;
  }
  /// Fibonacci hashing: the product's high bits depend on every bit of the key.
  [[nodiscard]] static std::uint64_t hash(std::uint64_t key) {
    return (key ^ key >> 29) * 0x9e3779b97f4a7c15u;
  }

  std::vector<Merge> merges_;
  std::vector<std::uint32_t> lengths_;
  std::array<std::uint32_t, 256> byte_tokens_{};
  std::vector<Slot> slots_;
  std::size_t mask_ = 0;
  int shift_ = 0;
};

/// Encodes words, one at a time; it holds working memory, so it belongs to one thread.
class WordEncoder {
 public:
  /// `merges` must outlive this object.
  explicit WordEncoder(const MergeTable& merges);

  /// Appends the ids of `word` to `ids`. Throws std::runtime_error for a word of 4 GiB or more.
  void encode(std::string_view word, std::vector<std::uint32_t>& ids);

  /// Pairs looked up and places visited so far.
  [[nodiscard]] std::uint64_t pair_looks() const { return pair_looks_; }

  /// Up to this many bytes a word is merged by scanning all its pairs for each merge: quadratic,
  /// but in registers and cache, and faster than any bookkeeping.
  static constexpr std::size_t longest_scanned = 32;

 private:
  void encode_short(std::string_view word, std::vector<std::uint32_t>& ids);
  void encode_long(std::string_view word, std::vector<std::uint32_t>& ids);
  void merge_rank(std::uint32_t rank);
  void note_pair(std::uint32_t left, std::uint32_t right, std::size_t place);
  std::uint32_t look(std::uint32_t left, std::uint32_t right) {
    ++pair_looks_;
    return merges_->rank(left, right);
  }

  const MergeTable* merges_;
  std::uint64_t pair_looks_ = 0;
  TokenChain chain_;
  std::vector<std::vector<std::uint32_t>> places_;  // by rank: where its pair was seen
  std::vector<std::uint32_t> current_;              // the places of the rank being merged
  std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> ranks_;
};

}  // namespace strata::data
