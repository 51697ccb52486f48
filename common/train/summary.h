// The few numbers that a run comes down to.
#pragma once

#include <cstdint>
#include <vector>

#include "common/train/metrics.h"

namespace strata::train {

/// Anything unknown is NaN.
struct Summary {
  std::int64_t updates = 0;           ///< steps made, the skipped ones included
  std::int64_t skipped = 0;           ///< of these, left out as outliers
  std::int64_t not_finite = 0;        ///< steps whose loss was NaN or infinite
  double train_loss = absent;         ///< the last smoothed training loss (curve.h)
  double train_excess = absent;       ///< that less the source's entropy on the training text
  double val_loss = absent;           ///< the last validation loss that was finite
  std::int64_t val_step = 0;          ///< when it was measured
  double val_excess = absent;         ///< that less the source's entropy on the validation text
  double tokens = absent;             ///< seen in training
  double epochs = absent;             ///< tokens seen / tokens of the training text
  double seconds = absent;            ///< spent in training steps
  double tokens_per_second = absent;  ///< over the training steps, validation left out
};

/// The loss of each step, NaN where it was skipped as an outlier: what smoothing is applied to.
[[nodiscard]] std::vector<double> losses_to_smooth(const Metrics& metrics);

[[nodiscard]] Summary summarise(const Metrics& metrics);

}  // namespace strata::train
