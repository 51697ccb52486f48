#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "common/train/curve.h"
#include "common/train/figure.h"
#include "tests/catch.h"

using strata::train::centred_mean;
using strata::train::Curve;
using strata::train::Figure;
using strata::train::linear_ticks;
using strata::train::log_ticks;
using strata::train::Point;
using strata::train::Range;
using strata::train::spread;
using strata::train::Stroke;
using strata::train::thin;
using strata::train::y_range;

namespace {

const double not_a_number = std::numeric_limits<double>::quiet_NaN();
const double infinity = std::numeric_limits<double>::infinity();

std::vector<Point> line(std::size_t size, double y = 1) {
  std::vector<Point> points;
  for (std::size_t i = 0; i < size; ++i) points.push_back({static_cast<double>(i), y});
  return points;
}

bool has_y(const std::vector<Point>& points, double y) {
  return std::any_of(points.begin(), points.end(), [&](const Point& p) { return p.y == y; });
}

Range range_of(std::vector<Point> points, bool log_y = false) {
  Figure figure;
  figure.log_y = log_y;
  figure.curves.push_back({"", Stroke::solid, std::move(points)});
  return y_range(figure);
}

}  // namespace

TEST_CASE("the smoothed curve is the centred mean, narrower at the start and cut off at the end") {
  const std::vector<double> values = {8, 4, 3, 2, 6, 1};
  CHECK(centred_mean(values, 0, 2) == 8);            // {8}
  CHECK(centred_mean(values, 1, 2) == 5);            // {8 4 3}
  CHECK(centred_mean(values, 2, 2) == Approx(4.6));  // {8 4 3 2 6}
  CHECK(centred_mean(values, 3, 2) == Approx(3.2));  // {4 3 2 6 1}
  CHECK(centred_mean(values, 5, 2) == 3);            // {2 6 1}
  CHECK(centred_mean(values, 4, 0) == 6);
}

TEST_CASE("the smoothed curve passes over values that are not finite") {
  const std::vector<double> values = {8, not_a_number, infinity, 2, not_a_number};
  CHECK(centred_mean(values, 2, 1) == 2);
  CHECK(centred_mean(values, 3, 3) == 5);
  CHECK(std::isnan(centred_mean(values, 1, 0)));
}

TEST_CASE("one enormous value does not spoil the mean of those after it") {
  std::vector<double> values(100, 1.5);
  values[10] = 1e30;
  CHECK(centred_mean(values, 50, 5) == 1.5);
}

TEST_CASE("a short curve is not thinned") {
  CHECK(thin(line(20), 10).size() == 20);
  CHECK(thin({}, 10).empty());
}

TEST_CASE("thinning keeps the first, the last and every bucket's extremes, in order") {
  std::vector<Point> points = line(100001);
  points[0].y = 7;
  points[31234].y = 1000;  // a spike of one step up,
  points[31235].y = -50;   // one down beside it
  points[77777].y = 1.25;
  points[100000].y = 0.5;
  const std::vector<Point> kept = thin(points, 200);
  CHECK(kept.size() <= 402);
  CHECK(kept.front().y == 7);
  CHECK(kept.back().y == 0.5);
  for (const double y : {1000.0, -50.0, 1.25}) CHECK(has_y(kept, y));
  CHECK(std::is_sorted(kept.begin(), kept.end(),
                       [](const Point& a, const Point& b) { return a.x < b.x; }));
  // What this test looks for is not there by itself: every 500th value has no spike.
  std::vector<Point> faulty;
  for (std::size_t i = 0; i < points.size(); i += 500) faulty.push_back(points[i]);
  CHECK_FALSE(has_y(faulty, 1000.0));
}

TEST_CASE("a stretch without a finite value stays a gap when thinned") {
  std::vector<Point> points = line(10000);
  for (std::size_t i = 4000; i < 6000; ++i) points[i].y = not_a_number;
  const std::vector<Point> kept = thin(points, 100);
  const auto gap =
      std::find_if(kept.begin(), kept.end(), [](const Point& p) { return std::isnan(p.y); });
  REQUIRE(gap != kept.end());
  CHECK(gap->x >= 4000);
  CHECK(gap->x < 6000);
}

TEST_CASE("spread indices begin and end with the ends and never repeat") {
  CHECK(spread(0, 5).empty());
  CHECK(spread(1, 5) == std::vector<std::size_t>{0});
  CHECK(spread(3, 5) == std::vector<std::size_t>{0, 1, 2});
  CHECK(spread(9, 5) == std::vector<std::size_t>{0, 2, 4, 6, 8});
  CHECK(spread(7, 1) == std::vector<std::size_t>{6});
  const std::vector<std::size_t> many = spread(1000003, 997);
  CHECK(many.size() == 997);
  CHECK(many.back() == 1000002);
  CHECK(std::adjacent_find(many.begin(), many.end(), std::greater_equal<>()) == many.end());
}

TEST_CASE("ticks are round numbers inside the range") {
  CHECK(linear_ticks(0, 1200, 6) == std::vector<double>{0, 200, 400, 600, 800, 1000, 1200});
  CHECK(linear_ticks(-3, 3, 3) == std::vector<double>{-2, 0, 2});
  CHECK(linear_ticks(1, 1, 3).empty());
  CHECK(log_ticks(0.04, 6, 9).size() == 7);
  CHECK(log_ticks(0.04, 6, 9).front() == Approx(0.05));
  CHECK(log_ticks(1e-9, 1e9, 6).size() <= 6);
  CHECK(log_ticks(2.1, 2.4, 5).size() >= 2);
}

TEST_CASE("a lone far outlier does not flatten the figure, but the first value may lie far out") {
  std::vector<Point> points = line(1000);
  for (Point& p : points) p.y = 2 + std::sin(p.x);
  points[500].y = 1e6;
  CHECK(range_of(points).high < 10);
  points[500].y = 2;
  points[0].y = 11;
  CHECK(range_of(points).high >= 11);
}

TEST_CASE("every range is finite and not empty") {
  for (const bool log_y : {false, true}) {
    for (const auto& points : {std::vector<Point>{}, line(1, 0), line(1, 7), line(5, -2),
                               line(3, not_a_number), line(2, 1e300)}) {
      const Range range = range_of(points, log_y);
      CHECK(std::isfinite(range.low));
      CHECK(std::isfinite(range.high));
      CHECK(range.low < range.high);
      if (log_y) CHECK(range.low > 0);
    }
  }
}
