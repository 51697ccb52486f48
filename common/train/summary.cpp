#include "common/train/summary.h"

#include <cmath>

#include "common/train/curve.h"

namespace strata::train {

std::vector<double> losses_to_smooth(const Metrics& metrics) {
  std::vector<double> losses;
  losses.reserve(metrics.train.size());
  for (const TrainStep& step : metrics.train) losses.push_back(step.skipped ? absent : step.loss);
  return losses;
}

Summary summarise(const Metrics& metrics) {
  Summary summary;
  const RunHeader& header = metrics.header();
  double seconds = 0, timed_tokens = 0;
  std::int64_t timed = 0;
  const TrainStep* previous = nullptr;
  for (const TrainStep& step : metrics.train) {
    summary.skipped += step.skipped;
    summary.not_finite += !std::isfinite(step.loss);
    if (std::isfinite(step.tokens)) summary.tokens = step.tokens;
    // A step's own tokens: what the count grew by, or at the first one what the header says.
    double tokens = header.tokens_per_step;
    if (previous != nullptr && previous->step + 1 == step.step &&
        std::isfinite(step.tokens - previous->tokens))
      tokens = step.tokens - previous->tokens;
    previous = &step;
    if (!std::isfinite(step.seconds)) continue;
    seconds += step.seconds;
    timed_tokens += tokens;
    ++timed;
  }
  if (timed > 0) {
    summary.seconds = seconds;
    if (seconds > 0) summary.tokens_per_second = timed_tokens / seconds;
  }
  if (!metrics.train.empty()) {
    summary.updates = metrics.train.back().step + 1;
    const std::vector<double> losses = losses_to_smooth(metrics);
    summary.train_loss =
        centred_mean(losses, losses.size() - 1, smoothing_half_width(losses.size()));
    summary.train_excess = summary.train_loss - header.entropy_train;
    summary.epochs = summary.tokens / header.train_tokens;
  }
  for (const Validation& validation : metrics.validation) {
    if (!std::isfinite(validation.loss)) continue;
    summary.val_loss = validation.loss;
    summary.val_step = validation.step;
  }
  summary.val_excess = summary.val_loss - header.entropy_val;
  return summary;
}

}  // namespace strata::train
