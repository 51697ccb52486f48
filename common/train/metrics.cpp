#include "common/train/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "common/io/files.h"
#include "common/train/text.h"

namespace strata::train {
namespace {

// Settings in the order in which the run wrote them.
using Json = nlohmann::ordered_json;

/// A line that is JSON but not what the format says.
struct BadLine : std::runtime_error {
  using std::runtime_error::runtime_error;
};

double number(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return absent;
  if (!found->is_number()) throw BadLine(key);
  return found->get<double>();
}

std::string string(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return {};
  if (!found->is_string()) throw BadLine(key);
  return found->get<std::string>();
}

std::int64_t step_of(const Json& object) {
  const double step = number(object, "step");
  if (!(step >= 0 && step <= 9e15 && step == static_cast<double>(static_cast<std::int64_t>(step))))
    throw BadLine("step");
  return static_cast<std::int64_t>(step);
}

const Json& child(const Json& object, const char* key) {
  static const Json nothing = Json::object();
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return nothing;
  if (!found->is_object() && !found->is_array()) throw BadLine(key);
  return *found;
}

RunHeader header_of(const Json& line) {
  RunHeader header;
  header.step = step_of(line);
  header.steps = number(line, "steps");
  header.time = number(line, "time");
  header.stage = string(line, "stage");
  const Json& model = child(line, "model");
  header.layers = number(model, "L");
  header.channels = number(model, "C");
  header.heads = number(model, "H");
  header.max_seq = number(model, "T");
  header.vocab = number(model, "V");
  header.padded_vocab = number(model, "Vp");
  header.parameters = number(model, "parameters");
  header.batch = number(line, "batch");
  header.seq = number(line, "seq");
  header.accum = number(line, "accum");
  header.tokens_per_step = number(line, "tokens_per_step");
  header.threads = number(line, "threads");
  header.entropy_train = number(line, "entropy_train");
  header.entropy_val = number(line, "entropy_val");
  const Json& data = child(line, "data");
  header.data_name = string(data, "name");
  header.train_tokens = number(data, "train_tokens");
  header.val_tokens = number(data, "val_tokens");
  for (const Json& item : child(line, "memory")) {
    if (!item.is_object()) throw BadLine("memory");
    header.memory.push_back({string(item, "name"), number(item, "bytes")});
  }
  for (const auto& [flag, value] : child(line, "settings").items())
    header.settings.emplace_back(
        flag, value.is_string() ? value.get<std::string>()
                                : value.dump(-1, ' ', false, Json::error_handler_t::replace));
  return header;
}

/// Sorts by step and keeps the last of each.
template <class Record>
void keep_latest(std::vector<Record>& records) {
  const auto by_step = [](const Record& a, const Record& b) { return a.step < b.step; };
  if (!std::is_sorted(records.begin(), records.end(), by_step))
    std::stable_sort(records.begin(), records.end(), by_step);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < records.size(); ++i) {
    if (i + 1 < records.size() && records[i + 1].step == records[i].step) continue;
    if (kept != i) records[kept] = std::move(records[i]);
    ++kept;
  }
  records.resize(kept);
}

class Reader {
 public:
  /// False if the line is not one that a run writes.
  bool add(std::string_view line) {
    Json object = Json::parse(line.begin(), line.end(), nullptr, /*allow_exceptions=*/false);
    if (object.is_discarded() && !is_utf8(line)) {
      const std::string mended = replace_invalid_utf8(line);
      object = Json::parse(mended, nullptr, false);
    }
    if (!object.is_object()) return false;
    try {
      return add(object);
    } catch (const BadLine&) {
      return false;
    }
  }

  /// For a line that `add` refused: was it begun, broken off and followed by a whole one?
  bool add_restarted(std::string_view line) {
    int tries = 0;
    for (std::size_t at = line.find("{\"", 1); at != std::string_view::npos && tries < 64;
         at = line.find("{\"", at + 1), ++tries)
      if (add(line.substr(at))) return true;
    return false;
  }

  Metrics finish() {
    const std::size_t before = lines();
    keep_latest(metrics_.train);
    keep_latest(metrics_.validation);
    keep_latest(metrics_.samples);
    metrics_.superseded += static_cast<std::int64_t>(before - lines());
    return std::move(metrics_);
  }

  Metrics& metrics() { return metrics_; }

 private:
  bool add(const Json& line) {
    const std::string kind = string(line, "kind");
    if (kind == "train") {
      const auto skipped = line.find("skipped");
      metrics_.train.push_back({step_of(line), number(line, "loss"), number(line, "lr"),
                                number(line, "norm"), number(line, "tokens"),
                                number(line, "seconds"),
                                skipped != line.end() && skipped->is_boolean() && *skipped});
    } else if (kind == "val") {
      metrics_.validation.push_back({step_of(line), number(line, "loss")});
    } else if (kind == "sample") {
      metrics_.samples.push_back({step_of(line), string(line, "prompt"), string(line, "text")});
    } else if (kind == "run") {
      RunHeader header = header_of(line);
      forget_after(header.step);
      metrics_.runs.push_back(std::move(header));
      metrics_.ended = false;
    } else if (kind == "end") {
      metrics_.ended = true;
      metrics_.end_seconds = number(line, "seconds");
    } else {
      return !kind.empty();  // a kind that a later version added
    }
    return true;
  }

  std::size_t lines() const {
    return metrics_.train.size() + metrics_.validation.size() + metrics_.samples.size();
  }

  /// What a resume from `step` makes void. Validation and samples at `step` itself were made by the
  /// very weights that the resume starts from.
  void forget_after(std::int64_t step) {
    const std::size_t before = lines();
    std::erase_if(metrics_.train, [&](const TrainStep& line) { return line.step >= step; });
    std::erase_if(metrics_.validation, [&](const Validation& line) { return line.step > step; });
    std::erase_if(metrics_.samples, [&](const Sample& line) { return line.step > step; });
    metrics_.superseded += static_cast<std::int64_t>(before - lines());
  }

  Metrics metrics_;
};

}  // namespace

const RunHeader& Metrics::header() const {
  static const RunHeader none;
  return runs.empty() ? none : runs.back();
}

Metrics parse_metrics(std::string_view text, const std::string& name) {
  Reader reader;
  Metrics& metrics = reader.metrics();
  std::int64_t number = 0, understood = 0;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const bool complete = end != std::string_view::npos;
    std::string_view line = text.substr(0, end);
    text.remove_prefix(complete ? end + 1 : text.size());
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    if (reader.add(line)) {
      ++understood;
      continue;
    }
    understood += reader.add_restarted(line);
    if (!complete) {
      metrics.truncated = true;
    } else if (metrics.damaged_lines++ == 0) {
      metrics.first_damaged = number;
    }
  }
  if (number == 0) throw std::runtime_error(name + " is empty: the run has not written a line yet");
  if (understood == 0)
    throw std::runtime_error(fmt::format(
        "{} has no line that a Strata run writes (a JSON object with \"kind\"); it has {} other {}",
        name, number, number == 1 ? "line" : "lines"));
  return reader.finish();
}

Metrics read_metrics(const std::filesystem::path& run_directory) {
  const std::string shown = fmt::format("'{}'", run_directory.string());
  std::error_code ignored;
  if (!std::filesystem::exists(run_directory, ignored))
    throw std::runtime_error("there is no run directory " + shown);
  if (!std::filesystem::is_directory(run_directory, ignored))
    throw std::runtime_error(shown + " is not a directory; expected the directory of a run");
  const std::filesystem::path file = run_directory / "metrics.jsonl";
  if (!std::filesystem::exists(file, ignored))
    throw std::runtime_error(shown + " has no metrics.jsonl; expected the directory of a run");
  const io::MappedFile mapped(file);
  return parse_metrics(mapped.text(), fmt::format("'{}'", file.string()));
}

}  // namespace strata::train
