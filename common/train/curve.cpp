#include "common/train/curve.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace strata::train {

std::size_t smoothing_half_width(std::size_t size) { return size / 100; }

double centred_mean(std::span<const double> values, std::size_t i, std::size_t half_width) {
  half_width = std::min(half_width, i);
  const std::size_t first = i - half_width;
  const std::size_t last = std::min(i + half_width, values.size() - 1);
  double sum = 0;
  std::size_t count = 0;
  for (std::size_t j = first; j <= last; ++j) {
    if (!std::isfinite(values[j])) continue;
    sum += values[j];
    ++count;
  }
  return count == 0 ? std::numeric_limits<double>::quiet_NaN() : sum / static_cast<double>(count);
}

std::vector<Point> thin(std::span<const Point> points, std::size_t buckets) {
  const std::size_t size = points.size();
  if (size <= 2 * buckets) return {points.begin(), points.end()};
  std::vector<Point> kept = {points.front()};
  for (std::size_t bucket = 0; bucket < buckets; ++bucket) {
    // The ends are kept anyway; the buckets divide what is between them.
    const std::size_t begin = 1 + bucket * (size - 2) / buckets;
    const std::size_t end = 1 + (bucket + 1) * (size - 2) / buckets;
    std::size_t low = end, high = end;
    for (std::size_t i = begin; i < end; ++i) {
      if (!std::isfinite(points[i].y)) continue;
      if (low == end || points[i].y < points[low].y) low = i;
      if (high == end || points[i].y > points[high].y) high = i;
    }
    if (low == end) {
      kept.push_back({points[begin].x, std::numeric_limits<double>::quiet_NaN()});
      continue;
    }
    kept.push_back(points[std::min(low, high)]);
    if (low != high) kept.push_back(points[std::max(low, high)]);
  }
  kept.push_back(points.back());
  return kept;
}

std::vector<std::size_t> spread(std::size_t size, std::size_t count) {
  std::vector<std::size_t> indices;
  if (size == 0 || count == 0) return indices;
  if (count == 1) return {size - 1};
  const std::size_t n = std::min(size, count);
  for (std::size_t i = 0; i < n; ++i)
    indices.push_back(n == 1 ? 0 : (i * (size - 1) + (n - 1) / 2) / (n - 1));
  return indices;
}

}  // namespace strata::train
