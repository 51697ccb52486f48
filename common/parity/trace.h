// A trace file as the comparison reads it: which steps it holds, which parameters, which settings.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/io/safetensors.h"

namespace strata::parity {

/// What AdamW did in a traced step, apart from the tensors.
struct UpdateSettings {
  double lr = 0;  ///< of this step, by the schedule
  double beta1 = 0;
  double beta2 = 0;
  double eps = 0;
  double weight_decay = 0;
  double clip = 0;          ///< largest norm of the gradient; 0: no clipping
  std::uint64_t count = 0;  ///< number of this update, from 1
};

/// A trace file. Every member throws std::runtime_error naming the file for what it misses.
class Trace {
 public:
  explicit Trace(const std::filesystem::path& path);

  [[nodiscard]] const io::Safetensors& file() const { return file_; }
  /// The steps that the file holds tensors of.
  [[nodiscard]] const std::set<std::uint64_t>& steps() const { return steps_; }
  /// True if the steps were done again from the states of another trace, so that the list of losses
  /// is not that of a run.
  [[nodiscard]] bool replayed() const;

  /// The names of the tensors of a step, without "step.N.".
  [[nodiscard]] std::vector<std::string> names(std::uint64_t step) const;
  /// The names of the parameters that have any tensor in the step.
  [[nodiscard]] std::set<std::string> parameters(std::uint64_t step) const;

  /// A setting of the run, by its flag's name; the second form as a number.
  [[nodiscard]] std::optional<std::string> setting(const std::string& flag) const;
  [[nodiscard]] double number(const std::string& flag) const;
  [[nodiscard]] UpdateSettings update(std::uint64_t step) const;
  /// True if the settings allow a step without an update (the detector of outliers was on).
  [[nodiscard]] bool may_skip() const;

  /// A tensor with one element, by its full name.
  [[nodiscard]] double scalar(const std::string& name) const;

 private:
  io::Safetensors file_;
  std::set<std::uint64_t> steps_;
};

/// "step.N." + name.
[[nodiscard]] std::string step_name(std::uint64_t step, const std::string& name);

/// The learning rate of step `step` (from 0) of `steps`, as a share of its peak; an implementation
/// of the rule that is independent of the trainers'. Throws for an unknown schedule.
[[nodiscard]] double schedule_share(const std::string& schedule, std::uint64_t step,
                                    std::uint64_t steps, std::uint64_t warmup, double final_share);

}  // namespace strata::parity
