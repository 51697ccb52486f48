// Figures as inline SVG, drawn by our own few lines: axes, ticks, curves, levels.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/train/curve.h"

namespace strata::train {

/// How a curve looks. The styles differ in weight, dash and marks, so that they can be told apart
/// without colour.
enum class Stroke {
  faint,   ///< thin and pale: raw values
  solid,   ///< heavy: the smoothed curve
  marked,  ///< thin, with a ring at every point: validation
};

struct Curve {
  std::string label;
  Stroke stroke = Stroke::solid;
  std::vector<Point> points;  ///< x ascending; y not finite is a gap
};

/// A dashed horizontal line.
struct Level {
  std::string label;
  double y = 0;
  bool named = true;  ///< its name stands on it, not only in the legend
};

struct Figure {
  std::string summary;  ///< what a screen reader says
  std::string x_title;
  std::string y_title;
  bool log_y = false;
  std::vector<Curve> curves;
  std::vector<Level> levels;
  std::vector<double> ticks_below;  ///< x of small triangles on the axis: skipped steps
  double last_x = 1;                ///< the x axis runs from 0 to here
  double tokens_per_step = 0;       ///< a second x axis, above; 0 for none
};

struct Size {
  int width = 0;
  int height = 0;
};

struct Range {
  double low = 0;
  double high = 1;
};

/// The y axis of a figure: all curves and levels, except that values far outside the bulk of them
/// (more than twice the span between the 2nd and the 98th percentile away) do not stretch it; the
/// first value of each curve may lie ten times as far out. On a log axis only positive values count.
[[nodiscard]] Range y_range(const Figure& figure);

/// Round numbers (1, 2 or 5 times a power of ten) in [low, high], about `count` of them.
[[nodiscard]] std::vector<double> linear_ticks(double low, double high, int count);
/// Powers of ten in [low, high], with 2 and 5 times them where that gives at most `count` ticks.
[[nodiscard]] std::vector<double> log_ticks(double low, double high, int count);

/// The figure as one <svg> element with class `css`. Coordinates outside the axes are clipped.
[[nodiscard]] std::string render(const Figure& figure, Size size, const std::string& css);

/// The key to a figure's line styles, as one HTML <ul>.
[[nodiscard]] std::string legend(const Figure& figure);

}  // namespace strata::train
