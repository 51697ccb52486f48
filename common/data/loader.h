// The loader: which tokens every rank sees at every step, from two numbers.
//
// A window is T+1 consecutive tokens of one shard, starting at a multiple of T: the first T are a
// row's inputs, the last T its targets. A shard of n tokens has floor((n - 1) / T) windows. Example
// with T = 4 and a shard of n = 11 tokens t0 .. t10:
//
//   window 0   t0 t1 t2 t3 t4                 inputs t0..t3, targets t1..t4
//   window 1               t4 t5 t6 t7 t8     inputs t4..t7, targets t5..t8
//   not seen                           t9 t10 (as inputs): under T tokens, so no window starts at t8
//
// So every token that a window covers is predicted once, and neighbours share the one token that is
// the target here and the first input there. Windows never cross shards. The W windows of a split
// are numbered through its shards in name order.
//
// The stream of windows is indexed by the position p = 0, 1, 2, ...: epoch e = p / W, slot
// q = p % W, window = permute(q; W, seed, e) in training and q in validation. Rank r of R takes for
// its B rows the positions base + r*B + b, b = 0..B-1, then base grows by R*B. Example with W = 10,
// R = 2, B = 3:
//
//   step   base   rank 0    rank 1
//   0      0      0 1 2     3 4 5
//   1      6      6 7 8     9|0 1       the second epoch begins inside the batch
//   2      12     2 3 4     5 6 7
//
// Hence each window is seen exactly once an epoch for any R and B, k micro-batches of B/k rows are
// the rows of one batch of B, and {seed, base} is the whole state: a run can be resumed exactly, even
// with another batch size or number of ranks.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/data/shards.h"

namespace strata::data {

/// Scrambles 64 bits (the finalizer of splitmix64).
[[nodiscard]] constexpr std::uint64_t mix(std::uint64_t x) {
  x += 0x9e37'79b9'7f4a'7c15;
  x = (x ^ (x >> 30)) * 0xbf58'476d'1ce4'e5b9;
  x = (x ^ (x >> 27)) * 0x94d0'49bb'1331'11eb;
  return x ^ (x >> 31);
}

/// Where slot `q` of epoch `epoch` points: a permutation of 0 .. windows - 1 that takes no memory and
/// no time to set up. q < windows is the caller's duty.
///
/// A Feistel network of four rounds permutes [0, 4^h), the smallest such range with all windows in
/// it. A result outside [0, windows) is fed in again (cycle walking); as the network is a
/// permutation, the walk comes back inside, and two slots cannot end at the same window. The range
/// is at most four times `windows`, so a walk takes at most four goes on average.
[[nodiscard]] std::uint64_t permute(std::uint64_t q, std::uint64_t windows, std::uint64_t seed,
                                    std::uint64_t epoch);

/// All that has to be saved to go on exactly.
struct LoaderState {
  std::uint64_t seed = 0;
  std::uint64_t position = 0;  ///< `base` above: windows dealt so far to all ranks together

  friend bool operator==(const LoaderState&, const LoaderState&) = default;
};

enum class Order { shuffled, sequential };

struct LoaderOptions {
  std::uint64_t rows = 1;        ///< B, rows of a rank's micro-batch
  std::uint64_t seq_len = 1024;  ///< T
  std::uint32_t vocab_size = 0;  ///< the model's; every token dealt is under it
  Order order = Order::shuffled;
  std::uint64_t seed = 0;
  std::uint64_t rank = 0;
  std::uint64_t ranks = 1;
};

/// Deals the windows of a split. Not for use by two threads at once; each rank has its own.
class Loader {
 public:
  /// Throws std::runtime_error if the split has no window of seq_len + 1 tokens, or an option is
  /// out of its range.
  Loader(std::vector<ShardReader> shards, const LoaderOptions& options);

  /// W, the number of windows of the split.
  [[nodiscard]] std::uint64_t windows() const { return first_window_.back(); }
  /// The window that stands at a position of the stream.
  [[nodiscard]] std::uint64_t window_at(std::uint64_t position) const;

  /// Deals this rank's next micro-batch: `inputs` and `targets` are (B, T). Throws
  /// std::runtime_error naming shard and position if a token is not under vocab_size; then the state
  /// is unchanged.
  void next(std::span<std::int32_t> inputs, std::span<std::int32_t> targets);

  /// One window: its T inputs and T targets. Throws as `next` does.
  void read_window(std::uint64_t window, std::span<std::int32_t> inputs,
                   std::span<std::int32_t> targets) const;

  [[nodiscard]] LoaderState state() const { return {options_.seed, position_}; }
  /// Goes on from a saved state; its seed replaces the one in the options.
  void restore(const LoaderState& state);

 private:
  std::vector<ShardReader> shards_;
  LoaderOptions options_;
  std::vector<std::uint64_t> first_window_;  // of each shard; at the end W
  std::uint64_t position_ = 0;
};

}  // namespace strata::data
