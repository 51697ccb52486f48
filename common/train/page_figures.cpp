// The report's figures and the words under them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "common/train/page.h"
#include "common/train/text.h"

namespace strata::train {
namespace {

constexpr std::size_t buckets = 500;  // twice as many points: more than a screen has columns
constexpr Size desktop = {920, 400};
constexpr Size phone = {368, 300};
constexpr Size multiple = {440, 250};
constexpr std::size_t marks = 150;

using Value = std::function<double(const TrainStep&)>;

std::vector<double> values_of(const Metrics& metrics, const Value& value) {
  std::vector<double> values;
  values.reserve(metrics.train.size());
  for (const TrainStep& step : metrics.train) values.push_back(value(step));
  return values;
}

/// Where triangles mark the skipped steps.
std::vector<double> skipped_steps(const Metrics& metrics) {
  std::vector<double> skipped, shown;
  for (const TrainStep& step : metrics.train)
    if (step.skipped) skipped.push_back(static_cast<double>(step.step));
  for (const std::size_t i : spread(skipped.size(), marks)) shown.push_back(skipped[i]);
  return shown;
}

Curve raw_curve(const Metrics& metrics, const std::string& label, Stroke stroke,
                const Value& value) {
  std::vector<Point> points;
  points.reserve(metrics.train.size());
  for (const TrainStep& step : metrics.train)
    points.push_back({static_cast<double>(step.step), value(step)});
  return {label, stroke, thin(points, buckets)};
}

/// The smoothed training loss less `bound`, at up to 2 * buckets of the steps.
Curve smoothed_curve(const Metrics& metrics, const std::string& label, double bound) {
  const std::vector<double> losses = losses_to_smooth(metrics);
  const std::size_t half = smoothing_half_width(losses.size());
  std::vector<Point> points;
  for (const std::size_t i : spread(losses.size(), 2 * buckets))
    points.push_back(
        {static_cast<double>(metrics.train[i].step), centred_mean(losses, i, half) - bound});
  return {half > 0 ? fmt::format("{}, mean of {} steps", label, 2 * half + 1) : label,
          Stroke::solid, std::move(points)};
}

Curve validation_curve(const Metrics& metrics, const std::string& label, double bound) {
  std::vector<Point> points;
  for (const Validation& validation : metrics.validation)
    points.push_back({static_cast<double>(validation.step), validation.loss - bound});
  return {label, Stroke::marked, thin(points, buckets)};
}

/// The entropy that the loss figure draws: the validation text's, or else the training text's.
double entropy_line(const RunHeader& header) {
  return std::isfinite(header.entropy_val) ? header.entropy_val : header.entropy_train;
}

/// The x axis, common to all figures of a run.
Figure empty_figure(const Metrics& metrics) {
  Figure figure;
  figure.x_title = "updates made";
  double last = 0;
  if (!metrics.train.empty()) last = static_cast<double>(metrics.train.back().step);
  if (!metrics.validation.empty())
    last = std::max(last, static_cast<double>(metrics.validation.back().step));
  figure.last_x = std::max(last, 1.0);
  return figure;
}

/// Tokens a step where that never changed, else 0: then one axis serves for both.
double constant_tokens_per_step(const Metrics& metrics) {
  const double each = metrics.header().tokens_per_step;
  if (!(each > 0) || metrics.train.empty()) return 0;
  for (const RunHeader& header : metrics.runs)
    if (header.tokens_per_step != each) return 0;
  const TrainStep& last = metrics.train.back();
  return last.tokens == each * static_cast<double>(last.step + 1) ? each : 0;
}

bool any_finite(const Figure& figure) {
  for (const Curve& curve : figure.curves)
    for (const Point& point : curve.points)
      if (std::isfinite(point.y) && (!figure.log_y || point.y > 0)) return true;
  return false;
}

/// How many values lie outside the axes, as a sentence; empty if none does.
std::string clipped(const Figure& figure, const std::vector<double>& values) {
  const Range range = y_range(figure);
  std::int64_t outside = 0;
  double furthest = absent;
  for (const double value : values) {
    if (!std::isfinite(value) || (value >= range.low && value <= range.high)) continue;
    if (figure.log_y && value <= 0) continue;
    ++outside;
    if (!(std::fabs(value) <= std::fabs(furthest))) furthest = value;
  }
  if (outside == 0) return {};
  return fmt::format(" {} {} outside the figure; the furthest is {}.",
                     outside == 1 ? "One value lies" : grouped(static_cast<double>(outside)),
                     outside == 1 ? "" : "values lie", significant(furthest, 4));
}

std::string figure_html(const Figure& figure, const std::string& caption) {
  return fmt::format("<figure>\n{}{}{}<figcaption>{}</figcaption>\n</figure>\n", legend(figure),
                     render(figure, desktop, "wide"), render(figure, phone, "narrow"), caption);
}

}  // namespace

Figure loss_figure(const Metrics& metrics) {
  Figure figure = empty_figure(metrics);
  figure.y_title = "loss, nats per token";
  figure.tokens_per_step = constant_tokens_per_step(metrics);
  if (!metrics.train.empty()) {
    if (smoothing_half_width(metrics.train.size()) > 0)
      figure.curves.push_back(raw_curve(metrics, "training, every step", Stroke::faint,
                                        [](const TrainStep& step) { return step.loss; }));
    figure.curves.push_back(smoothed_curve(metrics, "training", 0));
    figure.ticks_below = skipped_steps(metrics);
  }
  if (!metrics.validation.empty())
    figure.curves.push_back(validation_curve(metrics, "validation", 0));
  const double entropy = entropy_line(metrics.header());
  if (std::isfinite(entropy))
    figure.levels.push_back({fmt::format("entropy of the source, {}", fixed(entropy, 4)), entropy});
  return figure;
}

Figure excess_figure(const Metrics& metrics) {
  Figure figure = empty_figure(metrics);
  figure.y_title = "loss less entropy, nats per token";
  figure.log_y = true;
  const RunHeader& header = metrics.header();
  if (!metrics.train.empty() && std::isfinite(header.entropy_train))
    figure.curves.push_back(smoothed_curve(metrics, "training", header.entropy_train));
  if (!metrics.validation.empty() && std::isfinite(header.entropy_val))
    figure.curves.push_back(validation_curve(metrics, "validation", header.entropy_val));
  figure.summary = "Loss less the entropy of the source, on a logarithmic axis.";
  return figure;
}

Figure norm_figure(const Metrics& metrics) {
  Figure figure = empty_figure(metrics);
  figure.y_title = "L2 norm before clipping";
  figure.log_y = true;
  figure.curves.push_back(raw_curve(metrics, "gradient norm", Stroke::solid,
                                    [](const TrainStep& step) { return step.norm; }));
  for (const auto& [flag, value] : metrics.header().settings) {
    if (flag != "clip" && flag != "--clip") continue;
    const double clip = std::strtod(value.c_str(), nullptr);
    if (clip > 0 && std::isfinite(clip))
      figure.levels.push_back({"clipped above " + value, clip, false});
  }
  figure.ticks_below = skipped_steps(metrics);
  figure.summary = "Norm of the gradient at each step, on a logarithmic axis.";
  return figure;
}

Figure rate_figure(const Metrics& metrics) {
  Figure figure = empty_figure(metrics);
  figure.y_title = "learning rate";
  figure.curves.push_back(raw_curve(metrics, "learning rate", Stroke::solid,
                                    [](const TrainStep& step) { return step.lr; }));
  figure.summary = "Learning rate at each step.";
  return figure;
}

std::string loss_section(const Metrics& metrics, const Summary& summary) {
  Figure figure = loss_figure(metrics);
  std::string html = "<section aria-labelledby=\"loss\">\n<h2 id=\"loss\">Loss</h2>\n";
  if (!any_finite(figure))
    return html +
           "<p>The run has no loss to show: no step and no validation was finished.</p>\n"
           "</section>\n";
  figure.summary = fmt::format("Loss against updates made. Training ends at {}, validation at {}.",
                               fixed(summary.train_loss, 3), fixed(summary.val_loss, 3));
  std::string caption =
      "Each point is the loss of the model as it was after that many updates. Lower is better.";
  if (!(figure.tokens_per_step > 0) && std::isfinite(summary.tokens))
    caption += fmt::format(" The run saw {} tokens in all.", grouped(summary.tokens));
  if (summary.skipped > 0)
    caption +=
        fmt::format(" Triangles mark {} skipped {}, which the mean leaves out.",
                    summary.skipped == 1 ? "one" : grouped(static_cast<double>(summary.skipped)),
                    summary.skipped == 1 ? "step" : "steps");
  if (summary.not_finite > 0)
    caption += fmt::format(" In {} {} the loss was not a finite number.",
                           grouped(static_cast<double>(summary.not_finite)),
                           summary.not_finite == 1 ? "step" : "steps");
  caption += clipped(figure, values_of(metrics, [](const TrainStep& step) { return step.loss; }));
  return html + figure_html(figure, caption) + "</section>\n";
}

std::string excess_section(const Metrics& metrics) {
  const Figure figure = excess_figure(metrics);
  if (!any_finite(figure)) return {};
  std::string caption =
      "What is left to learn. The axis is logarithmic: equal heights are equal factors.";
  std::int64_t below = 0;
  for (const Validation& validation : metrics.validation)
    below += validation.loss <= metrics.header().entropy_val;
  if (below > 0)
    caption += fmt::format(" {} {} at or below the entropy, and cannot be drawn here.",
                           below == 1 ? "One validation" : grouped(static_cast<double>(below)),
                           below == 1 ? "lies" : "validations lie");
  return "<section aria-labelledby=\"excess\">\n<h2 id=\"excess\">Excess over the source</h2>\n" +
         figure_html(figure, caption) + "</section>\n";
}

std::string optimiser_section(const Metrics& metrics) {
  const Figure norm = norm_figure(metrics), rate = rate_figure(metrics);
  std::string html;
  const auto add = [&](const Figure& figure, const char* title, const std::string& caption) {
    if (!any_finite(figure)) return;
    html += fmt::format("<figure>\n<h3>{}</h3>\n{}{}{}</figure>\n", title,
                        figure.levels.empty() && figure.ticks_below.empty() ? "" : legend(figure),
                        render(figure, multiple, "small"),
                        caption.empty() ? "" : "<figcaption>" + caption + "</figcaption>\n");
  };
  add(norm, "Gradient norm",
      clipped(norm, values_of(metrics, [](const TrainStep& step) { return step.norm; })));
  add(rate, "Learning rate", "");
  if (html.empty()) return {};
  return "<section aria-labelledby=\"steps\">\n<h2 id=\"steps\">Steps</h2>\n<div "
         "class=\"pair\">\n" +
         html + "</div>\n</section>\n";
}

}  // namespace strata::train
