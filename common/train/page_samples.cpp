// What the model wrote as it learned, and what the corpus's parser says of it.
#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/train/page.h"
#include "common/train/text.h"
#include "common/train/verdict.h"

namespace strata::train {
namespace {

constexpr std::size_t most_samples = 24;
constexpr std::size_t longest_sample = 6000;  // bytes

std::string percent(std::int64_t part, std::int64_t whole) {
  if (whole == 0) return "–";
  return fmt::format("{:.0f} %", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

/// Cuts a text to at most `longest` bytes, between characters.
std::string_view cut(std::string_view text, std::size_t longest) {
  if (text.size() <= longest) return text;
  std::size_t end = longest;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end);
}

/// Stage 01 knows its prompt only as tokens, "12,7,305".
bool is_tokens(std::string_view prompt) {
  return prompt.find_first_not_of("0123456789,") == std::string_view::npos;
}

std::string verdict_table(const std::vector<std::pair<std::int64_t, Judgement>>& judgements) {
  std::string rows;
  for (const auto& [step, judgement] : judgements)
    rows += fmt::format(
        "<tr><th scope=\"row\" class=\"number\">{}</th><td class=\"number\">{}</td><td "
        "class=\"number\">{}</td><td class=\"number\">{}</td></tr>\n",
        grouped(static_cast<double>(step)), judgement.sentences,
        percent(judgement.well_formed, judgement.sentences),
        percent(judgement.right, judgement.judged));
  return "<table class=\"verdicts\"><thead><tr><th scope=\"col\" class=\"number\">updates</th>"
         "<th scope=\"col\" class=\"number\">sentences</th><th scope=\"col\" "
         "class=\"number\">well formed</th><th scope=\"col\" class=\"number\">true</th></tr>"
         "</thead>\n<tbody>\n" +
         rows +
         "</tbody></table>\n<p class=\"caption\">The corpus's own parser reads each sample. Well "
         "formed: the share of its sentences that the grammar can say. True: of the well-formed "
         "sentences that what was told before confirms or contradicts, the share confirmed. A "
         "sentence that the sample cuts off at its end is not counted.</p>\n";
}

/// What the parser found wrong first, in a sentence each.
std::string verdict_examples(const Judgement& judgement) {
  std::string html;
  if (!judgement.first_malformed.empty())
    html += fmt::format("<p class=\"caption\">First sentence outside the language: <q>{}</q></p>\n",
                        escape(cut(judgement.first_malformed, 300)));
  if (!judgement.first_untrue.empty())
    html += fmt::format("<p class=\"caption\">First untrue sentence: <q>{}</q> ({})</p>\n",
                        escape(cut(judgement.first_untrue, 300)), escape(judgement.untrue_because));
  return html;
}

}  // namespace

std::string samples_section(const Metrics& metrics) {
  if (metrics.samples.empty()) return {};
  std::string texts;
  std::vector<std::pair<std::int64_t, Judgement>> judgements;
  const std::vector<std::size_t> shown = spread(metrics.samples.size(), most_samples);
  for (const std::size_t i : shown) {
    const Sample& sample = metrics.samples[i];
    const std::string_view text = cut(sample.text, longest_sample);
    std::string verdict, examples;
    if (const auto judgement = judge(metrics.header().data_name, sample.text)) {
      judgements.emplace_back(sample.step, *judgement);
      verdict =
          fmt::format("<span class=\"verdict\">{} of {} sentences well formed{}</span>",
                      judgement->well_formed, judgement->sentences,
                      judgement->judged == 0
                          ? ""
                          : fmt::format(", {} of {} true", judgement->right, judgement->judged));
      examples = verdict_examples(*judgement);
    }
    texts += fmt::format(
        "<details{}><summary>After {} updates{}</summary>\n{}<pre>{}</pre>\n{}{}</details>\n",
        i == shown.back() ? " open=\"open\"" : "", grouped(static_cast<double>(sample.step)),
        verdict,
        sample.prompt.empty()
            ? ""
            : "<p>Prompt" + std::string(is_tokens(sample.prompt) ? ", as tokens" : "") +
                  ": <code>" + escape(cut(sample.prompt, longest_sample)) + "</code></p>\n",
        text.empty() ? "(the sample is empty)" : escape(text),
        text.size() < sample.text.size()
            ? fmt::format("<p>The rest, {} bytes, is left out here.</p>\n",
                          sample.text.size() - text.size())
            : "",
        examples);
  }
  std::string html = "<section aria-labelledby=\"samples\">\n<h2 id=\"samples\">Samples</h2>\n";
  if (!judgements.empty()) html += verdict_table(judgements);
  if (shown.size() < metrics.samples.size())
    html += fmt::format("<p>{} of {} samples, evenly spread.</p>\n", shown.size(),
                        metrics.samples.size());
  return html + "<div class=\"samples\">\n" + texts + "</div>\n</section>\n";
}

}  // namespace strata::train
