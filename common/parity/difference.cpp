#include "common/parity/difference.h"

#include <bit>
#include <cmath>
#include <limits>

namespace strata::parity {
namespace {

/// Sets `largest` to the larger of both; NaN counts as larger than everything, and stays.
void raise(double& largest, double value) {
  if (std::isnan(largest)) return;
  if (std::isnan(value) || value > largest) largest = value;
}

/// fp32 numbers in their order: neighbours differ by one, and both zeros are 0.
std::int64_t rank(float value) {
  const auto bits = std::bit_cast<std::int32_t>(value);
  return bits >= 0 ? bits : -static_cast<std::int64_t>(bits & 0x7fffffff);
}

}  // namespace

std::uint64_t ulp_distance(double a, double b) {
  const auto x = static_cast<float>(a);
  const auto y = static_cast<float>(b);
  if (!std::isfinite(x) || !std::isfinite(y)) return std::numeric_limits<std::uint64_t>::max();
  return static_cast<std::uint64_t>(std::abs(rank(x) - rank(y)));
}

void Measurement::add(double value, double reference, double scale) {
  const double difference = std::abs(value - reference);
  // A scale that overflowed would make any difference vanish.
  const double error = difference == 0        ? 0
                       : std::isfinite(scale) ? difference / scale
                                              : std::numeric_limits<double>::quiet_NaN();
  add_with_error(value, reference, error);
}

void Measurement::add_with_error(double value, double reference, double error) {
  Difference& d = difference_;
  const double difference = std::abs(value - reference);
  if (!(error <= d.tolerance) && !d.first_bad) d.first_bad = d.elements;
  raise(d.error, error);
  raise(d.max_abs, difference);
  if (reference != 0) raise(d.max_rel, difference / std::abs(reference));
  std::size_t bucket = 0;
  const std::uint64_t ulps = ulp_distance(value, reference);
  while (bucket < Difference::ulp_bounds.size() && ulps >= Difference::ulp_bounds[bucket]) ++bucket;
  ++d.ulps[bucket];
  dot_ += value * reference;
  value_squares_ += value * value;
  reference_squares_ += reference * reference;
  ++d.elements;
}

Difference Measurement::result() const {
  Difference d = difference_;
  d.cosine = dot_ / std::sqrt(value_squares_) / std::sqrt(reference_squares_);
  return d;
}

}  // namespace strata::parity
