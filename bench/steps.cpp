#include "bench/steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <thread>

#include "bench/quiet.h"

namespace strata::bench {
namespace {

std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The last line that says anything, for an error message.
std::string last_line(std::string_view text) {
  while (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  const std::size_t begin = text.rfind('\n');
  const std::string line(begin == std::string_view::npos ? text : text.substr(begin + 1));
  return line.empty() ? "it printed nothing" : "its last line is: " + line;
}

std::optional<double> time_in_metrics(std::string_view line) {
  const auto json = nlohmann::json::parse(line.begin(), line.end(), nullptr, false);
  if (!json.is_object() || json.value("kind", "") != "train") return std::nullopt;
  const auto seconds = json.find("seconds");
  if (seconds == json.end() || !seconds->is_number()) return std::nullopt;
  return 1e3 * seconds->get<double>();
}

std::optional<double> time_in_output(const std::string& line) {
  const std::size_t at = line.find("(took ");
  if (at == std::string::npos) return std::nullopt;
  char* end = nullptr;
  const double ms = std::strtod(line.c_str() + at + 6, &end);
  if (!(ms > 0) || std::string_view(end).substr(0, 4) != " ms)") return std::nullopt;
  return ms;
}

/// Follows one run and notes the load at the end of each step.
class Follower {
 public:
  Follower(const Trainer& trainer, double patience)
      : trainer_(trainer), patience_(patience), session_(trainer.command) {
    moments_.push_back(usage_now(session_.id()));
  }

  std::vector<Step> follow(std::size_t count) {
    std::vector<Step> steps;
    while (steps.size() < count) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      const bool running = session_.running();
      const std::string& output = session_.output();
      const std::vector<double> times = trainer_.metrics.empty()
                                            ? step_times(output, false)
                                            : step_times(contents(trainer_.metrics), true);
      if (times.size() > steps.size()) {
        const Usage now = usage_now(session_.id());
        const double foreign = foreign_share(since(now), now);
        while (steps.size() < times.size()) steps.push_back({times[steps.size()], foreign});
        moments_.push_back(now);
      }
      if (steps.size() >= count) break;
      if (!running)
        throw std::runtime_error(fmt::format("{} ended after {} of {} steps; {}", trainer_.name,
                                             steps.size(), count, last_line(output)));
      if (usage_now(0).seconds - moments_.back().seconds > patience_)
        throw std::runtime_error(fmt::format("{} showed no step for {:.0f} s; {}", trainer_.name,
                                             patience_, last_line(output)));
    }
    steps.resize(count);
    return steps;
  }

 private:
  /// The end of the step before, or of an earlier one: over less than 0.2 s, ticks of 10 ms say
  /// little.
  [[nodiscard]] const Usage& since(const Usage& now) const {
    for (auto moment = moments_.rbegin(); moment != moments_.rend(); ++moment)
      if (now.seconds - moment->seconds >= 0.2) return *moment;
    return moments_.front();
  }

  const Trainer& trainer_;
  double patience_;
  Session session_;
  std::vector<Usage> moments_;
};

}  // namespace

std::vector<double> step_times(std::string_view text, bool metrics) {
  std::vector<double> times;
  for (std::size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
    const std::string line(text.substr(0, end));
    text.remove_prefix(end + 1);
    if (const auto ms = metrics ? time_in_metrics(line) : time_in_output(line))
      times.push_back(*ms);
  }
  return times;
}

std::vector<Step> time_steps(const Trainer& trainer, int count, const Gate& gate, double patience) {
  if (!trainer.metrics.empty()) std::filesystem::remove_all(trainer.metrics.parent_path());
  wait_until_quiet(gate.quiet_share, gate.longest_wait);
  std::vector<Step> steps = Follower(trainer, patience).follow(static_cast<std::size_t>(count) + 1);
  steps.erase(steps.begin());
  if (!trainer.metrics.empty()) std::filesystem::remove_all(trainer.metrics.parent_path());
  return steps;
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

Statistics statistics(const std::vector<Step>& steps, double foreign_limit) {
  std::vector<double> kept;
  for (const Step& step : steps)
    if (step.foreign < foreign_limit) kept.push_back(step.ms);
  Statistics result;
  result.measured = static_cast<int>(steps.size());
  result.kept = static_cast<int>(kept.size());
  result.disturbed = kept.empty() && !steps.empty();
  if (result.disturbed)
    for (const Step& step : steps) kept.push_back(step.ms);
  if (kept.empty()) return result;
  result.median = median(kept);
  result.low = *std::min_element(kept.begin(), kept.end());
  result.high = *std::max_element(kept.begin(), kept.end());
  return result;
}

}  // namespace strata::bench
