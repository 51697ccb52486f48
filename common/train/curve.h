// Curves for the eye: smoothed, and thinned to what a screen can show.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace strata::train {

struct Point {
  double x = 0;
  double y = 0;
};

/// Half the width of the smoothing window for a curve of `size` values: one hundredth of them, so
/// that a window spans about a fiftieth of the figure.
[[nodiscard]] std::size_t smoothing_half_width(std::size_t size);

/// The mean of the finite values in [i - h, min(i + h, size - 1)] with h = min(half_width, i).
///
/// Centred, so that it does not lag behind a falling curve; at the start the window shrinks to keep
/// its centre, at the end it is cut off, which keeps the end calm. NaN if no value is finite.
/// Each mean is summed anew: one value of 1e30 must not spoil those after it, as it would in a
/// running sum.
[[nodiscard]] double centred_mean(std::span<const double> values, std::size_t i,
                                  std::size_t half_width);

/// At most 2 * `buckets` + 2 of `points`, in their order, with the lowest and the highest of every
/// bucket (so no spike is lost), and the first and the last. A bucket without a finite y leaves one
/// point with y = NaN, a gap. Up to 2 * `buckets` points come back as they are.
[[nodiscard]] std::vector<Point> thin(std::span<const Point> points, std::size_t buckets);

/// At most `count` of the indices 0 .. size - 1, evenly spread, the first and the last among them.
[[nodiscard]] std::vector<std::size_t> spread(std::size_t size, std::size_t count);

}  // namespace strata::train
