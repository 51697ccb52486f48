#include "common/parity/trace.h"

#include <charconv>
#include <cmath>
#include <numbers>
#include <stdexcept>
#include <string_view>

namespace strata::parity {
namespace {

/// Reads a whole text as a number.
template <typename T>
std::optional<T> parse(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::string step_name(std::uint64_t step, const std::string& name) {
  return "step." + std::to_string(step) + "." + name;
}

Trace::Trace(const std::filesystem::path& path) : file_(path) {
  constexpr std::string_view prefix = "step.";
  for (const io::Tensor& tensor : file_.tensors()) {
    if (tensor.name == "losses") continue;
    const std::string_view name = tensor.name;
    const std::size_t dot = name.find('.', prefix.size());
    std::optional<std::uint64_t> step;
    if (name.starts_with(prefix) && dot != std::string_view::npos)
      step = parse<std::uint64_t>(name.substr(prefix.size(), dot - prefix.size()));
    if (!step || step_name(*step, "") != name.substr(0, dot + 1))
      throw std::runtime_error("the file '" + path.string() + "' has the tensor '" + tensor.name +
                               "', which a trace has not; is it a trace?");
    steps_.insert(*step);
  }
}

bool Trace::replayed() const {
  const auto found = file_.metadata().find("replayed");
  return found != file_.metadata().end() && found->second == "yes";
}

std::vector<std::string> Trace::names(std::uint64_t step) const {
  const std::string prefix = step_name(step, "");
  std::vector<std::string> names;
  for (const io::Tensor& tensor : file_.tensors())
    if (tensor.name.starts_with(prefix)) names.push_back(tensor.name.substr(prefix.size()));
  return names;
}

std::set<std::string> Trace::parameters(std::uint64_t step) const {
  std::set<std::string> parameters;
  for (const std::string& name : names(step))
    for (const std::string_view role : {"grad.", "before.param.", "before.m.", "before.v.",
                                        "after.param.", "after.m.", "after.v."})
      if (name.starts_with(role)) parameters.insert(name.substr(role.size()));
  return parameters;
}

std::optional<std::string> Trace::setting(const std::string& flag) const {
  const auto found = file_.metadata().find("setting." + flag);
  if (found == file_.metadata().end()) return std::nullopt;
  return found->second;
}

double Trace::number(const std::string& flag) const {
  const std::optional<std::string> text = setting(flag);
  const std::optional<double> value = text ? parse<double>(*text) : std::nullopt;
  if (!value)
    throw std::runtime_error("the trace '" + file_.path().string() + "' states " +
                             (text ? "'" + *text + "' as" : "no") + " setting " + flag +
                             ", and the update cannot be checked without that number");
  return *value;
}

UpdateSettings Trace::update(std::uint64_t step) const {
  const std::string schedule = setting("schedule").value_or("");
  const auto count = [&](const char* flag) { return static_cast<std::uint64_t>(number(flag)); };
  double share = 1;
  try {
    share = schedule_share(schedule, step, count("steps"), count("warmup"), number("final-lr"));
  } catch (const std::invalid_argument&) {
    throw std::runtime_error("the trace '" + file_.path().string() + "' states the schedule '" +
                             schedule + "', expected constant, cosine, linear or wsd");
  }
  UpdateSettings update{.lr = number("lr") * share,
                        .beta1 = number("beta1"),
                        .beta2 = number("beta2"),
                        .eps = number("eps"),
                        .weight_decay = number("weight-decay"),
                        .clip = number("clip"),
                        .count = step + 1};
  // Steps that were skipped made no update; a trace that knows of them counts for us.
  if (file_.find(step_name(step, "updates")) != nullptr)
    update.count = static_cast<std::uint64_t>(scalar(step_name(step, "updates"))) + 1;
  return update;
}

bool Trace::may_skip() const {
  for (const char* flag : {"skip-loss-z", "skip-norm-z"})
    if (setting(flag) && number(flag) > 0) return true;
  return false;
}

double Trace::scalar(const std::string& name) const {
  const io::Tensor& tensor = file_.at(name);
  if (tensor.elements != 1)
    throw std::runtime_error("the tensor '" + name + "' of the trace '" + file_.path().string() +
                             "' has the shape " + io::to_string(tensor.shape) +
                             " instead of one element");
  return file_.read_doubles(name)[0];
}

double schedule_share(const std::string& schedule, std::uint64_t step, std::uint64_t steps,
                      std::uint64_t warmup, double final_share) {
  if (step < warmup) return static_cast<double>(step + 1) / static_cast<double>(warmup);
  // How much of the way from `begin` to the last step lies behind, 0 to 1.
  const auto behind = [&](std::uint64_t begin) {
    if (step <= begin) return 0.0;
    if (step + 1 >= steps) return 1.0;
    return static_cast<double>(step - begin) / static_cast<double>(steps - 1 - begin);
  };
  double height = 1;
  if (schedule == "cosine") {
    height = (1 + std::cos(std::numbers::pi * behind(warmup))) / 2;
  } else if (schedule == "linear") {
    height = 1 - behind(warmup);
  } else if (schedule == "wsd") {
    // The last fifth of the run, and one step at least.
    const std::uint64_t descent =
        std::max(warmup, std::min(steps * 4 / 5, steps - std::min<std::uint64_t>(steps, 2)));
    height = 1 - std::sqrt(behind(descent));
  } else if (schedule != "constant") {
    throw std::invalid_argument("unknown schedule " + schedule);
  }
  return height + (1 - height) * final_share;
}

}  // namespace strata::parity
