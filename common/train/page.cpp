#include "common/train/page.h"

#include <fmt/format.h>

#include <cmath>
#include <string>

#include "common/train/style.h"
#include "common/train/text.h"

namespace strata::train {
namespace {

/// What the default run, ./run train without flags, ends at on its validation text, in nats per
/// token: measured on two x86-64 cores (Zen 3), 1 December 2026, at commit 14716cd but for 1,000
/// steps instead of 1,200.
constexpr double expected_default_excess = 0.56;

std::string tile(const std::string& name, const std::string& value, const std::string& note) {
  return fmt::format("<div><dt>{}</dt><dd>{}{}</dd></div>\n", escape(name), escape(value),
                     note.empty() ? "" : "<small>" + escape(note) + "</small>");
}

std::string headline(const Metrics& metrics, const Summary& summary) {
  const RunHeader& header = metrics.header();
  std::string tiles;
  if (std::isfinite(summary.val_loss)) {
    tiles += tile("validation loss", fixed(summary.val_loss, 4),
                  fmt::format("nats per token, after {} updates",
                              grouped(static_cast<double>(summary.val_step))));
  } else if (std::isfinite(summary.train_loss)) {
    tiles += tile("training loss", fixed(summary.train_loss, 4), "nats per token; no validation");
  }
  if (std::isfinite(summary.val_excess)) {
    tiles += tile("excess over entropy", fixed(summary.val_excess, 4),
                  fmt::format("the source has {}", fixed(header.entropy_val, 4)));
  } else if (std::isfinite(summary.train_excess)) {
    tiles += tile("excess over entropy", fixed(summary.train_excess, 4),
                  "on the training text; no validation");
  }
  if (std::isfinite(summary.tokens))
    tiles += tile("tokens seen", grouped(summary.tokens),
                  std::isfinite(summary.epochs)
                      ? fmt::format("the training text {} times", fixed(summary.epochs, 2))
                      : "");
  if (std::isfinite(summary.seconds))
    tiles += tile("time in steps", duration(summary.seconds),
                  fmt::format("{} {}", grouped(static_cast<double>(summary.updates)),
                              summary.updates == 1 ? "step" : "steps"));
  if (std::isfinite(summary.tokens_per_second))
    tiles +=
        tile("tokens a second",
             summary.tokens_per_second < 100 ? fixed(summary.tokens_per_second, 1)
                                             : grouped(summary.tokens_per_second),
             std::isfinite(header.threads) ? fmt::format("{} {}", grouped(header.threads),
                                                         header.threads == 1 ? "thread" : "threads")
                                           : "");
  tiles += tile("skipped steps", grouped(static_cast<double>(summary.skipped)),
                summary.skipped == 0 ? "no outlier" : "outliers in loss or norm");
  return "<dl class=\"headline\">\n" + tiles + "</dl>\n";
}

/// What a reader must know about the state of the file before believing the page.
std::string notes(const Metrics& metrics, const Summary& summary) {
  std::string html;
  const auto add = [&](const std::string& text) {
    html += "<p class=\"note\" role=\"note\">" + escape(text) + "</p>\n";
  };
  const double steps = metrics.header().steps;
  if (!metrics.ended)
    add(std::isfinite(steps)
            ? fmt::format("The run had not come to its end when this page was written: {} of {} "
                          "steps.",
                          grouped(static_cast<double>(summary.updates)), grouped(steps))
            : "The run had not come to its end when this page was written.");
  else if (static_cast<double>(summary.updates) < steps)
    add(fmt::format("The run was stopped after {} of {} steps.",
                    grouped(static_cast<double>(summary.updates)), grouped(steps)));
  if (metrics.runs.empty())
    add("The file does not say what was run: it has no line of kind \"run\".");
  if (metrics.truncated)
    add("The last line of metrics.jsonl is cut off, as a killed run leaves it; it was left out.");
  if (metrics.damaged_lines > 0)
    add(fmt::format("{} of metrics.jsonl could not be read and {} left out, line {} first.",
                    metrics.damaged_lines == 1
                        ? "One line"
                        : grouped(static_cast<double>(metrics.damaged_lines)) + " lines",
                    metrics.damaged_lines == 1 ? "was" : "were",
                    grouped(static_cast<double>(metrics.first_damaged))));
  if (metrics.superseded > 0)
    add(
        fmt::format("The run was resumed from a checkpoint: {} {} written after that checkpoint "
                    "gave way to later ones.",
                    grouped(static_cast<double>(metrics.superseded)),
                    metrics.superseded == 1 ? "line" : "lines"));
  return html;
}

std::string title_line(const RunHeader& header) {
  std::string line;
  const auto add = [&](const std::string& part) { line += (line.empty() ? "" : " · ") + part; };
  if (std::isfinite(header.parameters))
    add(header.parameters >= 1e6 ? fmt::format("{:.1f} million parameters", header.parameters / 1e6)
                                 : grouped(header.parameters) + " parameters");
  if (std::isfinite(header.layers) && std::isfinite(header.channels))
    add(fmt::format("{} layers of {} channels", grouped(header.layers), grouped(header.channels)));
  if (std::isfinite(header.time)) add(utc(header.time));
  return line;
}

}  // namespace

std::string entropy_section(const Metrics& metrics) {
  const RunHeader& header = metrics.header();
  if (!std::isfinite(header.entropy_val) && !std::isfinite(header.entropy_train)) return {};
  std::string html =
      "<section class=\"prose\" aria-labelledby=\"entropy\">\n"
      "<h2 id=\"entropy\">What the entropy line means</h2>\n"
      "<p>The text was drawn from a known grammar, so we know the probability of every choice that "
      "made it. The line is the sum of &#8722;ln&#160;p over those choices, divided by the number "
      "of tokens: what a model would lose on exactly this text if it knew the grammar perfectly "
      "and "
      "read each story from its beginning. In expectation no model can do better.</p>\n"
      "<p>Three things keep it from being a floor for every number on this page. A window that "
      "begins in the middle of a story hides what was told before it, so even a perfect model "
      "loses more there; the excess would not reach zero. A finite text is a sample: the line "
      "drawn here is the information content of the very text, which differs from the entropy of "
      "the grammar by chance, and a model may, by chance too, fall a little below it on part of "
      "the text. And a model that sees the training text many times can learn it by heart; the "
      "validation text it has never seen.</p>\n";
  if (header.data_name == "tales")
    html += fmt::format(
        "<p>The default run, <code>./run train</code> without flags, ends at an "
        "excess of about {} nats per token on validation.</p>\n",
        significant(expected_default_excess, 2));
  return html + "</section>\n";
}

std::string make_page(const Metrics& metrics, const std::string& run) {
  const RunHeader& header = metrics.header();
  const Summary summary = summarise(metrics);
  const std::string heading =
      (header.stage.empty() ? std::string("Run") : "Stage " + header.stage) +
      (header.data_name.empty() ? "" : " on " + header.data_name);
  std::string html = "<!DOCTYPE html>\n";
  html += fmt::format(
      "<html lang=\"en-GB\">\n<head>\n<meta charset=\"utf-8\"/>\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
      "<meta name=\"color-scheme\" content=\"light dark\"/>\n"
      "<title>{}: {}</title>\n<style>{}</style>\n</head>\n<body>\n",
      escape(heading), escape(run), style_sheet);
  html += fmt::format(
      "<header>\n<p class=\"over\">Strata · training report · {}</p>\n<h1>{}</h1>\n"
      "<p class=\"under\">{}</p>\n</header>\n<main>\n",
      escape(run), escape(heading), escape(title_line(header)));
  html += notes(metrics, summary) + headline(metrics, summary) + loss_section(metrics, summary) +
          excess_section(metrics) + numbers_section(metrics) + entropy_section(metrics) +
          samples_section(metrics) + optimiser_section(metrics) + tables_section(metrics, summary);
  return html +
         "</main>\n<footer><p>Made by <code>strata-report</code> from <code>metrics.jsonl</code>. "
         "This page needs no other file and no network.</p></footer>\n</body>\n</html>\n";
}

}  // namespace strata::train
