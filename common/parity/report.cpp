#include "common/parity/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

namespace strata::parity {
namespace {

/// Failures that the short table lists one by one.
constexpr std::size_t most_failures = 20;

/// How far a row has come to its tolerance; failed rows are beyond all others.
double severity(const Row& row) {
  const Difference& d = row.difference;
  if (!d.passed()) return std::isnan(d.error) ? 1e300 : 1e200 + d.error;
  return d.tolerance > 0 ? d.error / d.tolerance : 0;
}

/// "[1, 0, 7]": the place of an element in a tensor.
std::string position(std::uint64_t index, const io::Shape& shape) {
  io::Shape place(shape.size());
  for (std::size_t i = shape.size(); i-- > 0;) {
    place[i] = index % shape[i];
    index /= shape[i];
  }
  return io::to_string(place);
}

/// The histogram as percentages; elements that are there but few show as "+".
std::string histogram(const Difference& d) {
  std::string text;
  for (const std::uint64_t count : d.ulps) {
    const double share = 100.0 * static_cast<double>(count) / static_cast<double>(d.elements);
    text += count == 0 ? "   ." : share < 0.5 ? "   +" : fmt::format("{:4.0f}", share);
  }
  return text;
}

std::string line(const Row& row, std::size_t tensors) {
  const Difference& d = row.difference;
  const std::string name =
      tensors > 1 ? fmt::format("{} (worst of {})", row.name, tensors) : row.name;
  return fmt::format(
      "{:>5} {:<3} {:<46} {:<18} {:9.2e} {:9.2e} {:9.2e} {:8.1e} {:>11} {} {:<14} {}\n",
      row.step ? std::to_string(*row.step) : "run", row.sides, name, row.kind, d.max_abs, d.max_rel,
      d.error, d.tolerance, std::isfinite(d.cosine) ? fmt::format("{:.8f}", d.cosine) : "-",
      histogram(d), d.first_bad ? position(*d.first_bad, row.shape) : "-",
      d.passed() ? "ok" : "FAIL");
}

/// For each kind in each step the worst row, with how many there were, in the order of the rows.
std::vector<std::pair<const Row*, std::size_t>> worst_rows(const std::vector<Row>& rows) {
  std::vector<std::pair<const Row*, std::size_t>> worst;
  std::map<std::tuple<std::optional<std::uint64_t>, std::string, std::string>, std::size_t> places;
  for (const Row& row : rows) {
    const auto [place, added] = places.try_emplace({row.step, row.kind, row.sides}, worst.size());
    if (added) worst.emplace_back(&row, 0);
    auto& [shown, tensors] = worst[place->second];
    ++tensors;
    if (severity(row) > severity(*shown)) shown = &row;
  }
  return worst;
}

}  // namespace

std::string table(const Comparison& comparison, bool all) {
  std::string text =
      fmt::format("{:>5} {:<3} {:<46} {:<18} {:>9} {:>9} {:>9} {:>8} {:>11} {:<28} {:<14} {}\n",
                  "step", "of", "tensor", "kind", "max abs", "max rel", "error", "allowed",
                  "cosine", "% ulps 0  1 <4 <16 <256 <64k >", "first bad", "verdict");
  std::size_t failed = 0;
  if (all) {
    for (const Row& row : comparison.rows) text += line(row, 1);
  } else {
    for (const auto& [row, tensors] : worst_rows(comparison.rows)) text += line(*row, tensors);
  }
  for (const Row& row : comparison.rows) {
    if (row.difference.passed() || ++failed > most_failures || all) continue;
    if (failed == 1) text += "\nwhat failed:\n";
    text += line(row, 1);
  }
  if (failed > most_failures && !all)
    text += fmt::format("... and {} more (--all shows every tensor)\n", failed - most_failures);
  for (const std::string& problem : comparison.problems) text += "problem: " + problem + "\n";
  text += fmt::format("{}: {} tensors compared, {} beyond their tolerance, {} problems\n",
                      comparison.passed() ? "PASS" : "FAIL", comparison.rows.size(), failed,
                      comparison.problems.size());
  return text;
}

std::string to_json(const Comparison& comparison) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const Row& row : comparison.rows) {
    const Difference& d = row.difference;
    nlohmann::ordered_json entry{
        {"name", row.name},     {"kind", row.kind},       {"sides", row.sides},
        {"shape", row.shape},   {"elements", d.elements}, {"max_abs", d.max_abs},
        {"max_rel", d.max_rel}, {"error", d.error},       {"tolerance", d.tolerance},
        {"cosine", d.cosine},   {"ulps", d.ulps},         {"passed", d.passed()}};
    entry["step"] = row.step ? nlohmann::ordered_json(*row.step) : nlohmann::ordered_json();
    entry["first_bad"] =
        d.first_bad ? nlohmann::ordered_json(*d.first_bad) : nlohmann::ordered_json();
    rows.push_back(std::move(entry));
  }
  return nlohmann::ordered_json{
      {"passed", comparison.passed()}, {"problems", comparison.problems}, {"rows", std::move(rows)}}
      .dump(1);
}

}  // namespace strata::parity
