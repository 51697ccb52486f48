// Stage 01 as a library: its one file, with its main out of the way. One test binary includes it once.
#pragma once

#define main stage01_main
#include "stages/01_cpu/train.cpp"
#undef main

#include <random>
#include <vector>

#include "common/parity/difference.h"
#include "tests/stage01/reference.h"

namespace strata::tests {

using Floats = std::vector<float>;

/// Seeded numbers between -1 and 1, times `size`, that fp32 and float64 share exactly.
class Draws {
 public:
  explicit Draws(std::uint32_t seed) : engine_(seed) {}
  reference::Numbers numbers(std::size_t count, double size = 1) {
    reference::Numbers drawn(count);
    for (double& x : drawn)
      x = static_cast<float>(size * (static_cast<double>(engine_()) * 0x1p-31 - 1));
    return drawn;
  }
  reference::Tokens tokens(std::size_t count, int vocabulary) {
    reference::Tokens drawn(count);
    for (int& token : drawn)
      token = static_cast<int>(engine_() % static_cast<unsigned>(vocabulary));
    return drawn;
  }

 private:
  std::mt19937 engine_;
};

inline Floats floats(const reference::Numbers& numbers) { return {numbers.begin(), numbers.end()}; }

/// The worst |value - expected| / (|expected| + r) of any element, where r is the root mean square of
/// `expected`: the measure of strata-parity. NaN if any element is.
template <typename Value>
double error(const std::vector<Value>& values, const reference::Numbers& expected) {
  REQUIRE(values.size() == expected.size());
  double squares = 0;
  for (const double x : expected) squares += x * x;
  const double rms = std::sqrt(squares / static_cast<double>(expected.size()));
  parity::Measurement measurement(0);
  for (std::size_t i = 0; i < values.size(); ++i)
    measurement.add(static_cast<double>(values[i]), expected[i], std::abs(expected[i]) + rms);
  return measurement.result().error;
}

/// Up to about 150 places of a tensor, first and last among them, by a stride that no layout shares.
inline std::vector<std::size_t> places(std::size_t size) {
  std::vector<std::size_t> chosen;
  const std::size_t stride = size <= 150 ? 1 : size / 150 | 1;
  for (std::size_t i = 0; i + 1 < size; i += stride) chosen.push_back(i);
  chosen.push_back(size - 1);
  return chosen;
}

/// The error of `gradient` at the places of `places`, held against finite differences of `f()` in `x`.
/// `before` is what the gradient was before the backward pass added to it.
template <typename Function>
double gradient_error(const Floats& gradient, reference::Numbers& x, Function f,
                      double before = 0) {
  REQUIRE(gradient.size() == x.size());
  reference::Numbers slopes;
  Floats chosen;
  for (const std::size_t i : places(x.size())) {
    slopes.push_back(before + reference::derivative(x[i], f));
    chosen.push_back(gradient[i]);
  }
  return error(chosen, slopes);
}

}  // namespace strata::tests
