#include "common/train/figure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "common/train/text.h"

namespace strata::train {
namespace {

/// A round step that cuts `span` into about `count` parts.
double round_step(double span, int count) {
  const double raw = span / std::max(count, 1);
  const double power = std::pow(10.0, std::floor(std::log10(raw)));
  // The nearest of 1, 2, 5 and 10 on a logarithmic scale.
  for (const auto& [factor, limit] :
       {std::pair{1.0, 1.41421356}, {2.0, 3.16227766}, {5.0, 7.0710678}})
    if (raw < limit * power) return factor * power;
  return 10 * power;
}

/// `value` with as many decimals as `step` needs.
std::string tick_text(double value, double step) {
  if (value == 0) return "0";
  if (std::fabs(value) >= 1e5 || step < 1e-5) return significant(value, 3);
  const int decimals = std::clamp(static_cast<int>(std::ceil(-std::log10(step) - 1e-9)), 0, 8);
  return decimals == 0 ? grouped(value) : fmt::format("{:.{}f}", value, decimals);
}

const char* class_of(Stroke stroke) {
  return stroke == Stroke::faint ? "raw" : stroke == Stroke::solid ? "smooth" : "marked";
}

/// Where things lie in one drawing of a figure.
class Frame {
 public:
  Frame(const Figure& figure, Size size)
      : figure_(figure),
        size_(size),
        y_(y_range(figure)),
        top_(figure.tokens_per_step > 0 ? 46 : 22),
        bottom_(size.height - 44),
        right_(size.width - 18) {}

  [[nodiscard]] double x(double value) const {
    return left_ + (right_ - left_) * value / figure_.last_x;
  }
  /// Not clipped, but never so far out that a renderer loses precision.
  [[nodiscard]] double y(double value) const {
    double low = y_.low, high = y_.high;
    if (figure_.log_y) {
      low = std::log10(low);
      high = std::log10(high);
      value = value > 0 ? std::log10(value) : -400;
    }
    const double at = bottom_ - (bottom_ - top_) * ((value - low) / (high - low));
    return std::clamp(at, top_ - 2000.0, bottom_ + 2000.0);
  }

  [[nodiscard]] std::string draw(const std::string& css) const {
    std::string svg =
        fmt::format("<svg class=\"{}\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n",
                    css, size_.width, size_.height, escape(figure_.summary));
    draw_y_axis(svg);
    draw_x_axis(svg);
    // A nested <svg> clips what it holds, without ids that would have to be unique in the page.
    fmt::format_to(std::back_inserter(svg),
                   "<svg x=\"{0}\" y=\"{1}\" width=\"{2}\" height=\"{3}\" "
                   "viewBox=\"{0} {1} {2} {3}\">\n",
                   left_ - 5, top_ - 5, right_ - left_ + 10, bottom_ - top_ + 5);
    for (const Curve& curve : figure_.curves) draw_curve(svg, curve);
    for (const Level& level : figure_.levels) draw_level(svg, level);
    for (const double at : figure_.ticks_below)
      fmt::format_to(std::back_inserter(svg),
                     "<path class=\"skipped\" d=\"M{0:.1f} {1:.1f}l-4 9h8z\"/>\n", x(at),
                     bottom_ - 10.0);
    return svg + "</svg>\n</svg>\n";
  }

 private:
  void draw_y_axis(std::string& svg) const {
    const int count = std::max(2, static_cast<int>(bottom_ - top_) / 52);
    const std::vector<double> ticks = figure_.log_y ? log_ticks(y_.low, y_.high, count + 3)
                                                    : linear_ticks(y_.low, y_.high, count);
    const double step = ticks.size() > 1 ? ticks[1] - ticks[0] : 1;
    for (const double tick : ticks)
      fmt::format_to(
          std::back_inserter(svg),
          "<path class=\"grid\" d=\"M{0} {1:.1f}H{2}\"/>"
          "<text class=\"tick\" x=\"{3}\" y=\"{4:.1f}\" text-anchor=\"end\">{5}</text>\n",
          left_, y(tick), right_, left_ - 8, y(tick) + 4,
          figure_.log_y ? significant(tick, 3) : tick_text(tick, step));
    fmt::format_to(std::back_inserter(svg), "<text class=\"title\" x=\"2\" y=\"12\">{}</text>\n",
                   escape(figure_.y_title));
  }

  void draw_x_axis(std::string& svg) const {
    const int count = std::max(2, static_cast<int>(right_ - left_) / 85);
    fmt::format_to(std::back_inserter(svg), "<path class=\"axis\" d=\"M{} {}H{}\"/>\n", left_,
                   bottom_, right_);
    const auto place = [&](double at, const std::string& text, double y, int tick) {
      // The last label may reach beyond the frame; it then ends at the edge of the picture.
      const double reach = 3.6 * static_cast<double>(text.size());
      const bool at_edge = at + reach > size_.width - 1;
      fmt::format_to(
          std::back_inserter(svg),
          "<path class=\"axis\" d=\"M{0:.1f} {1}v{2}\"/>"
          "<text class=\"tick\" x=\"{3:.1f}\" y=\"{4}\" text-anchor=\"{5}\">{6}</text>\n",
          at, tick > 0 ? bottom_ : top_, tick, at_edge ? size_.width - 1.0 : at, y,
          at_edge ? "end" : "middle", text);
    };
    for (const double tick : linear_ticks(0, figure_.last_x, count))
      if (tick == std::floor(tick))
        place(x(tick), tick >= 1e5 ? short_count(tick) : grouped(tick), bottom_ + 18.0, 5);
    fmt::format_to(std::back_inserter(svg),
                   "<text class=\"title\" x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\n",
                   right_, bottom_ + 37, escape(figure_.x_title));
    if (!(figure_.tokens_per_step > 0)) return;
    fmt::format_to(std::back_inserter(svg), "<path class=\"axis\" d=\"M{} {}H{}\"/>\n", left_, top_,
                   right_);
    for (const double tick : linear_ticks(0, figure_.last_x * figure_.tokens_per_step, count))
      place(x(tick / figure_.tokens_per_step), short_count(tick), top_ - 8.0, -5);
    fmt::format_to(std::back_inserter(svg),
                   "<text class=\"title\" x=\"{}\" y=\"12\" text-anchor=\"end\">tokens</text>\n",
                   right_);
  }

  void draw_curve(std::string& svg, const Curve& curve) const {
    std::string path;
    bool down = false;
    for (const Point& point : curve.points) {
      const bool shown = std::isfinite(point.y) && (!figure_.log_y || point.y > 0);
      if (shown)
        fmt::format_to(std::back_inserter(path), "{}{:.1f} {:.1f}", down ? 'L' : 'M', x(point.x),
                       y(point.y));
      down = shown;
    }
    fmt::format_to(std::back_inserter(svg), "<path class=\"curve {}\" d=\"{}\"/>\n",
                   class_of(curve.stroke), path.empty() ? "M0 0" : path);
    // A lone value has no line; a ring shows it.
    if (curve.stroke != Stroke::marked && curve.points.size() > 1) return;
    for (const std::size_t i : spread(curve.points.size(), 40)) {
      const Point& point = curve.points[i];
      if (!std::isfinite(point.y) || (figure_.log_y && point.y <= 0)) continue;
      fmt::format_to(std::back_inserter(svg),
                     "<circle class=\"ring {}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3.4\"/>\n",
                     class_of(curve.stroke), x(point.x), y(point.y));
    }
  }

  void draw_level(std::string& svg, const Level& level) const {
    const double at = y(level.y);
    fmt::format_to(std::back_inserter(svg), "<path class=\"level\" d=\"M{0} {1:.1f}H{2}\"/>\n",
                   left_, at, right_);
    if (!level.named) return;
    // Below the line, where no curve comes, unless the frame ends there.
    fmt::format_to(std::back_inserter(svg),
                   "<text class=\"name\" x=\"{0}\" y=\"{1:.1f}\" text-anchor=\"end\">{2}</text>\n",
                   right_ - 2, at + 16 < bottom_ ? at + 15 : at - 6, escape(level.label));
  }

  const Figure& figure_;
  Size size_;
  Range y_;
  int left_ = 54;
  int top_;
  int bottom_;
  int right_;
};

/// Widens a range by a share of itself on both sides, `below` at its foot, after making it at least
/// `least` high.
Range padded(Range range, double below, double least) {
  const double lacking = std::max(0.0, least - (range.high - range.low));
  range = {range.low - lacking / 2, range.high + lacking / 2};
  const double span = range.high - range.low;
  return {range.low - below * span, range.high + 0.05 * span};
}

}  // namespace

Range y_range(const Figure& figure) {
  const auto scale = [&](double y) { return figure.log_y ? std::log10(y) : y; };
  const auto counts = [&](double y) { return std::isfinite(y) && (!figure.log_y || y > 0); };
  std::vector<double> values, first;
  for (const Curve& curve : figure.curves) {
    bool begun = false;
    for (const Point& point : curve.points) {
      if (!counts(point.y)) continue;
      values.push_back(scale(point.y));
      if (!begun) first.push_back(values.back());
      begun = true;
    }
  }
  for (const Level& level : figure.levels)
    if (counts(level.y)) values.push_back(scale(level.y));
  if (values.empty()) return figure.log_y ? Range{0.1, 10} : Range{0, 1};
  std::sort(values.begin(), values.end());
  const double n = static_cast<double>(values.size() - 1);
  const double low = values[static_cast<std::size_t>(std::floor(0.02 * n))];
  const double high = values[static_cast<std::size_t>(std::ceil(0.98 * n))];
  const double span = std::max(high - low, 0.01 * std::max(std::fabs(low), std::fabs(high)));
  Range range{low, high};
  const auto reach = [&](double value, double furthest) {
    if (value < low - furthest || value > high + furthest) return;
    range.low = std::min(range.low, value);
    range.high = std::max(range.high, value);
  };
  for (const double value : values) reach(value, 2 * span);
  for (const double value : first) reach(value, 20 * span);
  for (const Level& level : figure.levels)
    if (counts(level.y)) reach(scale(level.y), 20 * span);
  range = padded(range, figure.levels.empty() ? 0.05 : 0.12,  // a level's name goes below it
                 figure.log_y ? 0.5 : std::max(0.1 * std::fabs(range.low), 1e-6));
  if (figure.log_y) return {std::pow(10.0, range.low), std::pow(10.0, range.high)};
  return range;
}

std::vector<double> linear_ticks(double low, double high, int count) {
  std::vector<double> ticks;
  if (!(high > low)) return ticks;
  const double step = round_step(high - low, count);
  for (double i = std::ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; ++i)
    ticks.push_back(i == 0 ? 0.0 : i * step);
  return ticks;
}

std::vector<double> log_ticks(double low, double high, int count) {
  const auto with = [&](std::initializer_list<double> factors, int stride) {
    std::vector<double> ticks;
    for (int decade = static_cast<int>(std::floor(std::log10(low))); decade <= std::log10(high);
         ++decade) {
      if (decade % stride != 0) continue;
      for (const double factor : factors) {
        const double tick = factor * std::pow(10.0, decade);
        if (tick >= low && tick <= high) ticks.push_back(tick);
      }
    }
    return ticks;
  };
  if (!(low > 0 && high > low)) return {};
  const auto fits = [&](const std::vector<double>& ticks) {
    return static_cast<int>(ticks.size()) <= count && ticks.size() >= 2;
  };
  for (const auto& factors : {std::initializer_list<double>{1, 1.5, 2, 3, 5, 7}, {1, 2, 5}, {1, 3}})
    if (const std::vector<double> ticks = with(factors, 1); fits(ticks)) return ticks;
  for (int stride = 1; stride <= 400; ++stride)
    if (const std::vector<double> ticks = with({1}, stride); fits(ticks)) return ticks;
  return linear_ticks(low, high, count);  // less than a factor of about two
}

std::string render(const Figure& figure, Size size, const std::string& css) {
  return Frame(figure, size).draw(css);
}

std::string legend(const Figure& figure) {
  std::string html = "<ul class=\"legend\">";
  const auto item = [&](const std::string& swatch, const std::string& label) {
    html += fmt::format(
        "<li><svg viewBox=\"0 0 34 12\" width=\"34\" height=\"12\" aria-hidden=\"true\">{}</svg>"
        "{}</li>",
        swatch, escape(label));
  };
  for (const Curve& curve : figure.curves) {
    const char* css = class_of(curve.stroke);
    std::string swatch = fmt::format(
        "<path class=\"curve {}\" d=\"{}\"/>", css,
        curve.stroke == Stroke::faint ? "M1 6L6 2L10 10L15 3L20 9L25 4L29 8L33 6" : "M1 6H33");
    if (curve.stroke == Stroke::marked)
      swatch += fmt::format("<circle class=\"ring {}\" cx=\"17\" cy=\"6\" r=\"3.4\"/>", css);
    item(swatch, curve.label);
  }
  if (!figure.levels.empty())
    item("<path class=\"level\" d=\"M1 6H33\"/>", figure.levels.front().label);
  if (!figure.ticks_below.empty()) item("<path class=\"skipped\" d=\"M17 1l-4 9h8z\"/>", "skipped");
  return html + "</ul>\n";
}

}  // namespace strata::train
