// Two traces held against each other, tensor by tensor.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/io/safetensors.h"
#include "common/parity/difference.h"
#include "common/parity/tolerances.h"
#include "common/parity/trace.h"

namespace strata::parity {

/// One line of the table: one tensor (or one part of it) compared.
struct Row {
  std::optional<std::uint64_t> step;  ///< none for what belongs to the whole run
  std::string name;                   ///< the tensor without "step.N."
  std::string kind;                   ///< whose tolerance applies
  std::string sides;  ///< "A:B", or "A" or "B" for a trace against its own arithmetic
  io::Shape shape;
  Difference difference;
};

/// What came of a comparison.
struct Comparison {
  std::vector<Row> rows;
  /// Whatever kept something from being compared, one sentence each; any of them is a failure.
  std::vector<std::string> problems;

  /// True if something was compared, all of it is within its tolerance, and nothing was missing.
  [[nodiscard]] bool passed() const;
};

/// Compares trace B with trace A, the reference.
///
/// Compared are, for each traced step: tokens and the state before (exactly), logits, loss, norm and
/// every gradient (within tolerances of its kind), each trace's norm with its own gradients, and the
/// state that each trace's AdamW left with a recomputation in double precision from its own state,
/// gradient, norm and settings. For the whole run: the losses, within a band, unless one of the
/// traces was replayed. A step, tensor or setting that one trace has and the other has not, a tensor
/// that a step needs and neither has, different shapes, and a gradient that is all zero are problems.
[[nodiscard]] Comparison compare(const Trace& a, const Trace& b, const Tolerances& tolerances);

}  // namespace strata::parity
