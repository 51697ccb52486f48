// A row of tokens in which neighbours can be merged in constant time, wherever they stand.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace strata::data {

/// Words laid out byte by byte, each byte a cell, each token as many cells as it has bytes.
///
/// The first cell of a token holds its id; the last cell of a longer token holds it too, marked as
/// a tail, and the cells between hold nothing of meaning. So the token before a place is found from
/// the cell before it, and the token after it from the length: a doubly linked list without links.
/// A barrier stands before and after each word; it equals no token.
class TokenChain {
 public:
  /// What is at a place where no token starts; barriers are such places as well.
  static constexpr std::uint32_t nothing = 0xffffffffu;

  /// `lengths[token]` is a token's bytes; it must outlive the chain and may grow.
  explicit TokenChain(const std::vector<std::uint32_t>& lengths) : lengths_(&lengths) {}

  void clear() { cells_.clear(); }
  void reserve(std::size_t cells) { cells_.reserve(cells); }
  [[nodiscard]] std::size_t size() const { return cells_.size(); }
  void push_barrier() { cells_.push_back(nothing); }
  /// Appends a token of one byte.
  void push_byte(std::uint32_t token) { cells_.push_back(token); }

  /// The token that starts at `place`, or something that equals no token.
  [[nodiscard]] std::uint32_t at(std::size_t place) const { return cells_[place]; }
  [[nodiscard]] static bool is_token(std::uint32_t cell) { return cell < tail_mark; }
  /// Where the token after the one that starts at `place` starts.
  [[nodiscard]] std::size_t after(std::size_t place) const {
    return place + (*lengths_)[cells_[place]];
  }
  /// The token that ends just before `place`, where a token starts; `nothing` at a barrier.
  [[nodiscard]] std::uint32_t token_before(std::size_t place) const {
    const std::uint32_t cell = cells_[place - 1];
    return cell == nothing ? nothing : cell & ~tail_mark;
  }
  [[nodiscard]] std::size_t length(std::uint32_t token) const { return (*lengths_)[token]; }
  /// Whether `left` starts at `place` and `right` right after it.
  [[nodiscard]] bool has_pair(std::size_t place, std::uint32_t left, std::uint32_t right) const {
    return cells_[place] == left && cells_[place + (*lengths_)[left]] == right;
  }
  /// Replaces the two tokens from `place` on by `result`, whose bytes are theirs.
  void merge(std::size_t place, std::uint32_t result) {
    cells_[after(place)] = nothing;
    cells_[place] = result;
    cells_[place + (*lengths_)[result] - 1] = result | tail_mark;
  }

 private:
  static constexpr std::uint32_t tail_mark = 0x80000000u;

  const std::vector<std::uint32_t>* lengths_;
  std::vector<std::uint32_t> cells_;
};

}  // namespace strata::data
