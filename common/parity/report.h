// A comparison as people and programs read it.
#pragma once

#include <string>

#include "common/parity/compare.h"

namespace strata::parity {

/// The table: with `all`, a line for every tensor; otherwise one for each kind in each step, which
/// shows the kind's worst tensor, and one for every tensor that fails. Ends with the verdict.
[[nodiscard]] std::string table(const Comparison& comparison, bool all);

/// Everything as JSON: {"passed", "problems": [...], "rows": [{...}]}; numbers that are not finite
/// are null.
[[nodiscard]] std::string to_json(const Comparison& comparison);

}  // namespace strata::parity
