#include "common/data/loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

namespace strata::data {

std::uint64_t permute(std::uint64_t q, std::uint64_t windows, std::uint64_t seed,
                      std::uint64_t epoch) {
  int half = 1;  // bits of each half; 4^32 is out of range, and enough for every 64-bit number
  while (half < 32 && (std::uint64_t{1} << (2 * half)) < windows) ++half;
  const std::uint64_t mask = (std::uint64_t{1} << half) - 1;
  std::array<std::uint64_t, 4> keys{};
  for (std::uint64_t i = 0; i < keys.size(); ++i) keys[i] = mix(mix(seed) + 4 * epoch + i);
  do {
    std::uint64_t left = q >> half;
    std::uint64_t right = q & mask;
    for (const std::uint64_t key : keys) {
      const std::uint64_t old_left = left;
      left = right;
      right = old_left ^ (mix(right ^ key) & mask);
    }
    q = left << half | right;
  } while (q >= windows);
  return q;
}

Loader::Loader(std::vector<ShardReader> shards, const LoaderOptions& options)
    : shards_(std::move(shards)), options_(options) {
  if (shards_.empty()) throw std::runtime_error("a loader needs at least one shard.");
  if (options.seq_len < 1) throw std::runtime_error("the sequence length must be at least 1.");
  if (options.rows < 1) throw std::runtime_error("the batch must have at least 1 row.");
  if (options.vocab_size < 1) throw std::runtime_error("the vocabulary must have a token.");
  if (options.rank >= options.ranks)
    throw std::runtime_error(fmt::format("rank {} is not one of the ranks 0 to {}.", options.rank,
                                         static_cast<std::int64_t>(options.ranks) - 1));
  first_window_.push_back(0);
  std::uint64_t longest = 0;
  for (const ShardReader& shard : shards_) {
    first_window_.push_back(first_window_.back() + (shard.size() - 1) / options.seq_len);
    longest = std::max(longest, shard.size());
  }
  if (windows() == 0)
    throw std::runtime_error(fmt::format(
        "'{}'{} has {} tokens, too few for a window of {} + 1: use more text or a shorter sequence "
        "length.",
        shards_.front().path().string(),
        shards_.size() == 1
            ? ""
            : fmt::format(" is the first of {} shards of which the longest", shards_.size()),
        longest, options.seq_len));
}

std::uint64_t Loader::window_at(std::uint64_t position) const {
  const std::uint64_t slot = position % windows();
  if (options_.order == Order::sequential) return slot;
  return permute(slot, windows(), options_.seed, position / windows());
}

void Loader::read_window(std::uint64_t window, std::span<std::int32_t> inputs,
                         std::span<std::int32_t> targets) const {
  const std::uint64_t length = options_.seq_len;
  if (window >= windows() || inputs.size() != length || targets.size() != length)
    throw std::logic_error("Loader::read_window: no such window, or spans that are not T long");
  // The last shard whose first window is not after this one; shards without windows are passed over.
  const auto after = std::upper_bound(first_window_.begin(), first_window_.end(), window);
  const auto index = static_cast<std::size_t>(after - first_window_.begin()) - 1;
  const std::uint64_t start = (window - first_window_[index]) * length;
  shards_[index].check(start, length + 1, options_.vocab_size);
  const auto tokens = shards_[index].tokens(start, length + 1);
  std::copy(tokens.begin(), tokens.end() - 1, inputs.begin());
  std::copy(tokens.begin() + 1, tokens.end(), targets.begin());
}

void Loader::next(std::span<std::int32_t> inputs, std::span<std::int32_t> targets) {
  const std::uint64_t length = options_.seq_len;
  if (inputs.size() != options_.rows * length || targets.size() != options_.rows * length)
    throw std::logic_error("Loader::next: spans that are not B*T long");
  const std::uint64_t first = position_ + options_.rank * options_.rows;
  for (std::uint64_t row = 0; row < options_.rows; ++row)
    read_window(window_at(first + row), inputs.subspan(row * length, length),
                targets.subspan(row * length, length));
  position_ += options_.ranks * options_.rows;
}

void Loader::restore(const LoaderState& state) {
  options_.seed = state.seed;
  position_ = state.position;
}

}  // namespace strata::data
