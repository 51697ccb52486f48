// The report's tables: what was run, on what, and the numbers behind the curves.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "common/train/page.h"
#include "common/train/text.h"

namespace strata::train {
namespace {

constexpr std::size_t longest_value = 400;  // bytes of a setting's value that are shown

/// A table of names and values; rows whose value is empty are left out.
class Facts {
 public:
  void add(const std::string& name, const std::string& value) {
    if (!value.empty())
      rows_ += fmt::format("<tr><th scope=\"row\">{}</th><td>{}</td></tr>\n", escape(name),
                           escape(value));
  }
  void count(const std::string& name, double value) {
    if (std::isfinite(value)) add(name, grouped(value));
  }
  [[nodiscard]] std::string html(const std::string& id, const std::string& title) const {
    if (rows_.empty()) return {};
    return fmt::format(
        "<section aria-labelledby=\"{0}\">\n<h2 id=\"{0}\">{1}</h2>\n"
        "<table class=\"facts\"><tbody>\n{2}</tbody></table>\n</section>\n",
        id, title, rows_);
  }

 private:
  std::string rows_;
};

std::string model_table(const RunHeader& header) {
  Facts facts;
  facts.count("layers (L)", header.layers);
  facts.count("channels (C)", header.channels);
  facts.count("heads", header.heads);
  if (header.heads > 0) facts.count("channels a head", header.channels / header.heads);
  facts.count("longest context (T)", header.max_seq);
  facts.count("vocabulary (V)", header.vocab);
  facts.count("vocabulary, padded", header.padded_vocab);
  facts.count("parameters", header.parameters);
  return facts.html("model", "Model");
}

std::string data_table(const RunHeader& header, const Summary& summary) {
  Facts facts;
  facts.add("data set", header.data_name);
  facts.count("training tokens", header.train_tokens);
  facts.count("validation tokens", header.val_tokens);
  const auto entropy = [&](const char* name, double nats) {
    if (std::isfinite(nats))
      facts.add(name, fmt::format("{} nats, {} bits", fixed(nats, 4),
                                  fixed(nats / 0.69314718055994531, 4)));
  };
  entropy("entropy a token, training", header.entropy_train);
  entropy("entropy a token, validation", header.entropy_val);
  if (std::isfinite(summary.epochs))
    facts.add("times the training text was seen", fixed(summary.epochs, 2));
  return facts.html("data", "Data");
}

std::string run_table(const Metrics& metrics, const Summary& summary) {
  const RunHeader& header = metrics.header();
  Facts facts;
  facts.add("stage", header.stage);
  if (!metrics.runs.empty() && std::isfinite(metrics.runs.front().time))
    facts.add("started", utc(metrics.runs.front().time));
  if (metrics.runs.size() > 1) {
    std::string resumes;
    for (std::size_t i = 1; i < metrics.runs.size() && i <= 20; ++i)
      resumes += fmt::format("{}step {}", i > 1 ? ", " : "",
                             grouped(static_cast<double>(metrics.runs[i].step)));
    if (metrics.runs.size() > 21) resumes += ", ...";
    facts.add("resumed at", resumes);
  }
  facts.count("threads", header.threads);
  facts.count("rows a micro-batch (B)", header.batch);
  facts.count("tokens a row (T)", header.seq);
  facts.count("micro-batches a step", header.accum);
  facts.count("tokens a step", header.tokens_per_step);
  facts.add("steps", std::isfinite(header.steps)
                         ? fmt::format("{} of {}", grouped(static_cast<double>(summary.updates)),
                                       grouped(header.steps))
                         : grouped(static_cast<double>(summary.updates)));
  if (std::isfinite(summary.seconds)) facts.add("time in steps", duration(summary.seconds));
  if (metrics.ended && std::isfinite(metrics.end_seconds))
    facts.add(metrics.runs.size() > 1 ? "the last session, all told" : "time, all told",
              duration(metrics.end_seconds));
  return facts.html("run", "Run");
}

std::string settings_table(const RunHeader& header) {
  Facts facts;
  for (std::size_t i = 0; i < std::min<std::size_t>(header.settings.size(), 200); ++i) {
    const auto& [flag, value] = header.settings[i];
    const bool dashed = flag.rfind("--", 0) == 0;
    facts.add((dashed ? "" : "--") + flag.substr(0, longest_value),
              value.empty()                   ? "(empty)"
              : value.size() <= longest_value ? value
                                              : value.substr(0, longest_value) + "...");
  }
  std::string html = facts.html("settings", "Settings");
  const std::string plain = "class=\"facts\"";
  if (!html.empty()) html.replace(html.find(plain), plain.size(), "class=\"facts flags\"");
  return html;
}

std::string memory_table(const RunHeader& header) {
  std::vector<MemoryItem> items = header.memory;
  std::erase_if(items,
                [](const MemoryItem& item) { return !(item.bytes >= 0 && item.bytes < 1e18); });
  if (items.empty()) return {};
  double total = 0, largest = 0;
  for (const MemoryItem& item : items) {
    total += item.bytes;
    largest = std::max(largest, item.bytes);
  }
  std::stable_sort(items.begin(), items.end(),
                   [](const MemoryItem& a, const MemoryItem& b) { return a.bytes > b.bytes; });
  if (items.size() > 50) items.resize(50);
  std::string rows;
  for (const MemoryItem& item : items)
    rows += fmt::format(
        "<tr><th scope=\"row\">{}</th><td class=\"bar\"><svg viewBox=\"0 0 100 10\" "
        "preserveAspectRatio=\"none\" aria-hidden=\"true\"><rect width=\"{:.2f}\" height=\"10\"/>"
        "</svg></td><td class=\"number\">{}</td><td class=\"number share\">{:.1f} %</td></tr>\n",
        escape(item.name), largest > 0 ? 100 * item.bytes / largest : 0, bytes_text(item.bytes),
        total > 0 ? 100 * item.bytes / total : 0);
  return fmt::format(
      "<section aria-labelledby=\"memory\">\n<h2 id=\"memory\">Memory plan</h2>\n"
      "<table class=\"memory\"><thead><tr><th scope=\"col\">what</th><td></td>"
      "<th scope=\"col\" class=\"number\">size</th><th scope=\"col\" class=\"number\">share</th>"
      "</tr></thead>\n<tbody>\n{}</tbody>\n<tfoot><tr><th scope=\"row\">in all</th><td></td>"
      "<td class=\"number\">{}</td><td></td></tr></tfoot></table>\n</section>\n",
      rows, bytes_text(total));
}

struct NumberRow {
  double step = 0, loss = absent, validation = absent;
};

/// One row for each validation, or for steps spread over the run where there is none.
std::vector<NumberRow> number_rows(const Metrics& metrics) {
  constexpr std::size_t most = 60;
  const std::vector<double> losses = losses_to_smooth(metrics);
  const std::size_t half = smoothing_half_width(losses.size());
  const auto smoothed = [&](std::int64_t step) {
    const auto at = std::lower_bound(
        metrics.train.begin(), metrics.train.end(), step,
        [](const TrainStep& line, std::int64_t wanted) { return line.step < wanted; });
    if (metrics.train.empty()) return absent;
    // After the last update no training loss is measured; the one before it is the nearest.
    const std::size_t i = static_cast<std::size_t>(at - metrics.train.begin());
    return centred_mean(losses, std::min(i, losses.size() - 1), half);
  };
  std::vector<NumberRow> rows;
  for (const std::size_t i : spread(metrics.validation.size(), most)) {
    const Validation& line = metrics.validation[i];
    rows.push_back({static_cast<double>(line.step), smoothed(line.step), line.loss});
  }
  if (!rows.empty()) return rows;
  for (const std::size_t i : spread(losses.size(), most))
    rows.push_back({static_cast<double>(metrics.train[i].step), centred_mean(losses, i, half)});
  return rows;
}

}  // namespace

std::string numbers_section(const Metrics& metrics) {
  const std::vector<NumberRow> rows = number_rows(metrics);
  if (rows.empty()) return {};
  const double entropy = metrics.header().entropy_val;
  std::string body;
  const auto cell = [&](double value) {
    body += fmt::format("<td class=\"number\">{}</td>",
                        std::isfinite(value) ? fixed(value, 4) : "&#8211;");
  };
  for (const NumberRow& row : rows) {
    body += fmt::format("<tr><th scope=\"row\" class=\"number\">{}</th>", grouped(row.step));
    cell(row.loss);
    cell(row.validation);
    if (std::isfinite(entropy)) cell(row.validation - entropy);
    body += "</tr>\n";
  }
  return fmt::format(
      "<details class=\"numbers\"><summary>The numbers behind the curves</summary>\n<div "
      "class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Losses by step\">\n<table>"
      "<thead><tr><th scope=\"col\" class=\"number\">updates</th><th scope=\"col\" "
      "class=\"number\">training, smoothed</th><th scope=\"col\" class=\"number\">validation</th>"
      "{}</tr></thead>\n<tbody>\n{}</tbody></table>\n</div>\n</details>\n",
      std::isfinite(entropy) ? "<th scope=\"col\" class=\"number\">excess</th>" : "", body);
}

std::string tables_section(const Metrics& metrics, const Summary& summary) {
  const RunHeader& header = metrics.header();
  return memory_table(header) + "<div class=\"columns\">\n" + model_table(header) +
         data_table(header, summary) + run_table(metrics, summary) + "</div>\n" +
         settings_table(header);
}

}  // namespace strata::train
