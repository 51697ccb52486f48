// AdamW done again in double precision, from what a trace recorded, to check what the trace's stage
// made of it. Two stages cannot be compared by their new weights: where a gradient is close to zero
// its sign is rounding, and Adam turns that into a step of the full learning rate.
#pragma once

#include <string>
#include <vector>

#include "common/parity/difference.h"
#include "common/parity/tolerances.h"
#include "common/parity/trace.h"

namespace strata::parity {

/// How far a trace's new m, v and parameters are from the recomputed ones.
struct UpdateCheck {
  Difference m;
  Difference v;
  Difference param;
};

/// Recomputes the update of one parameter tensor from the trace's own state before, gradient, norm
/// and settings. `decay` is whether weight decay applies (to matrices only). All seven tensors must
/// be there with equal shapes.
[[nodiscard]] UpdateCheck check_update(const Trace& trace, std::uint64_t step,
                                       const std::string& parameter, const UpdateSettings& settings,
                                       bool decay, const Tolerances& tolerances);

/// True if the step left every one of these parameters, with its m and v, bit for bit as it was.
[[nodiscard]] bool unchanged(const Trace& trace, std::uint64_t step,
                             const std::vector<std::string>& parameters);

}  // namespace strata::parity
