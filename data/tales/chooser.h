// Where choices come from. The storyteller asks a chooser at every fork; chance, an exhaustive
// enumeration or a recording can answer.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>

#include "data/tales/rng.h"

namespace strata::tales {

/// Answers "which of these?" and adds up the information content of its answers.
class Chooser {
 public:
  Chooser() = default;
  virtual ~Chooser() = default;
  Chooser(const Chooser&) = default;
  Chooser& operator=(const Chooser&) = default;

  /// The index of one of the options, which has the probability of its weight over the sum of all.
  /// Where only one weight is above 0, nothing is asked and nothing added. The sum of all must be
  /// below 2^32. Throws std::logic_error if all are 0: then the language has a dead end.
  std::size_t choose(std::span<const std::uint32_t> weights) {
    std::uint32_t total = 0;
    std::size_t only = 0;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      total += weights[i];
      if (weights[i] != 0) only = i;
    }
    if (total == 0) throw std::logic_error("a choice among nothing");
    if (weights[only] == total) return only;
    const std::size_t chosen = pick(weights, total);
    bits_ += std::log2(static_cast<double>(total) / weights[chosen]);
    return chosen;
  }

  /// The sum of -log2 p over all choices since the last `reset_bits`.
  [[nodiscard]] double bits() const { return bits_; }
  void reset_bits() { bits_ = 0; }

 private:
  virtual std::size_t pick(std::span<const std::uint32_t> weights, std::uint32_t total) = 0;

  double bits_ = 0;
};

/// Chooses at random, for one story of a corpus.
class RandomChooser final : public Chooser {
 public:
  RandomChooser(std::uint64_t seed, std::uint64_t story) : random_(seed, story) {}

 private:
  std::size_t pick(std::span<const std::uint32_t> weights, std::uint32_t total) override {
    std::uint32_t rest = random_.below(total);
    std::size_t i = 0;
    while (rest >= weights[i]) rest -= weights[i++];
    return i;
  }

  Random random_;
};

}  // namespace strata::tales
