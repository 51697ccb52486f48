// The distance between two tensors, gathered element by element.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace strata::parity {

/// What two tensors differ by.
struct Difference {
  /// Upper bounds (exclusive) of the histogram's buckets; the last bucket holds all that is beyond,
  /// and what is not finite.
  static constexpr std::array<std::uint64_t, 6> ulp_bounds{1, 2, 4, 16, 256, 65536};

  std::uint64_t elements = 0;
  double max_abs = 0;  ///< largest |value - reference|; NaN if any is
  double max_rel =
      0;             ///< largest |value - reference| / |reference| where the reference is not zero
  double error = 0;  ///< largest error in the unit of the tolerance; NaN if any is
  std::optional<std::uint64_t>
      first_bad;                        ///< first element whose error is not within the tolerance
  std::array<std::uint64_t, 7> ulps{};  ///< elements by their distance in fp32 units
  double cosine = 0;                    ///< of the angle between both; NaN if one is all zero
  double tolerance = 0;

  /// The verdict. Written so that an error of NaN is not within any tolerance.
  [[nodiscard]] bool passed() const { return elements > 0 && !first_bad && error <= tolerance; }
};

/// Gathers a Difference, one element after the other.
class Measurement {
 public:
  explicit Measurement(double tolerance) { difference_.tolerance = tolerance; }

  /// Counts an element whose error is |value - reference| / scale. A difference of exactly zero
  /// between finite numbers is no error, whatever the scale.
  void add(double value, double reference, double scale);
  /// Counts an element whose error is given.
  void add_with_error(double value, double reference, double error);

  [[nodiscard]] Difference result() const;

 private:
  Difference difference_;
  double dot_ = 0;
  double value_squares_ = 0;
  double reference_squares_ = 0;
};

/// How many fp32 numbers lie between two values once both are rounded to fp32; the largest number
/// there is if one of them is not finite.
[[nodiscard]] std::uint64_t ulp_distance(double a, double b);

}  // namespace strata::parity
