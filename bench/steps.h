// The time of every step of a trainer, with what others did to the machine meanwhile.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/session.h"

namespace strata::bench {

struct Step {
  double ms = 0;
  double foreign = 0;  ///< share of the machine that others used while it ran
};

/// How the gate against other load is set. The defaults are the method of bench/README.md.
struct Gate {
  double quiet_share = 0.03;    ///< before a process starts, others use less than this
  double longest_wait = 20;     ///< seconds to wait for that
  double foreign_limit = 0.05;  ///< a step during which others used as much is dropped
};

/// A trainer that tells how long its steps took.
struct Trainer {
  std::string name;
  Command command;
  /// Where it writes metrics.jsonl, a line a step; empty if it prints "(took 123.4 ms)" instead.
  std::filesystem::path metrics;
};

/// The times in `text`: from lines `{"kind":"train",...,"seconds":x}` where `metrics` is true, else
/// from "(took x ms)". Only whole lines count.
[[nodiscard]] std::vector<double> step_times(std::string_view text, bool metrics);

/// Waits for a quiet machine, starts the trainer, times `count` steps after the first, stops it.
/// The first step, which meets untouched memory, is not among the results. Throws std::runtime_error
/// with a sentence if the trainer ends early or shows no step for `patience` seconds.
[[nodiscard]] std::vector<Step> time_steps(const Trainer& trainer, int count, const Gate& gate,
                                           double patience);

/// Median, extremes, and how many steps they are of.
struct Statistics {
  double median = 0, low = 0, high = 0;
  int kept = 0;
  int measured = 0;
  bool disturbed = false;  ///< no step was free of other load, so all were taken
};

[[nodiscard]] double median(std::vector<double> values);
[[nodiscard]] Statistics statistics(const std::vector<Step>& steps, double foreign_limit);

}  // namespace strata::bench
