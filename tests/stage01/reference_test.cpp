#include "tests/stage01/reference.h"

#include <cmath>

#include "tests/catch.h"
#include "tests/stage01/fixture.h"

namespace {

using strata::reference::Numbers;
using strata::tests::Fixture;

/// The largest difference between two lists of numbers; NaN if any of them is.
double largest_difference(const Numbers& a, const Numbers& b) {
  REQUIRE(a.size() == b.size());
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(a[i] - b[i]);
    if (std::isnan(difference)) return difference;
    largest = std::max(largest, difference);
  }
  return largest;
}

// Both sides are float64; what is left is the order of sums of a few hundred terms.
constexpr double float64_rounding = 1e-10;

TEST_CASE("the reference computes the logits and the loss of Hugging Face's GPT-2") {
  for (const char* name : {"a.safetensors", "b.safetensors"}) {
    INFO(name);
    const Fixture fixture(name);
    const Numbers logits = fixture.model.logits(fixture.inputs, fixture.T);
    CHECK(largest_difference(logits, fixture.file.read_doubles("logits")) <= float64_rounding);
    const double loss = fixture.model.loss(fixture.inputs, fixture.targets, fixture.T);
    CHECK(std::abs(loss - fixture.file.read<double>("loss")[0]) <= float64_rounding);
  }
}

TEST_CASE("finite differences of the reference are PyTorch's gradients") {
  for (const char* name : {"a.safetensors", "b.safetensors"}) {
    Fixture fixture(name);
    const auto loss = [&] {
      return fixture.model.loss(fixture.inputs, fixture.targets, fixture.T);
    };
    for (auto& [tensor, weights] : fixture.model.weights) {
      INFO(name << " " << tensor);
      const Numbers expected = strata::tests::read_weight(fixture.file, "grad.", tensor);
      // A few elements of each tensor: every evaluation is a whole forward pass.
      for (const std::size_t i : {std::size_t{0}, weights.size() / 3, weights.size() - 1}) {
        const double slope = strata::reference::derivative(weights[i], loss);
        // The fixture's gradient is rounded to float32: 2^-24 of its value, beside 1e-9 of the
        // differences themselves (their step of 1e-3 meets fifth derivatives of up to 1e4).
        CHECK(std::abs(slope - expected[i]) <= 1e-7 * std::abs(expected[i]) + 1e-9);
      }
    }
  }
}

TEST_CASE("a wrong weight shows in the reference's logits") {
  Fixture fixture("a.safetensors");
  fixture.model.weights.at("h.1.ln_2.bias")[5] += 1e-6;
  CHECK_FALSE(largest_difference(fixture.model.logits(fixture.inputs, fixture.T),
                                 fixture.file.read_doubles("logits")) <= float64_rounding);
}

TEST_CASE("NaN does not pass for a small difference") {
  CHECK_FALSE(largest_difference({1, std::nan(""), 2}, {1, 1, 2}) <= float64_rounding);
}

}  // namespace
