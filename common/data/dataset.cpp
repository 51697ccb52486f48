#include "common/data/dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <numbers>
#include <stdexcept>
#include <string_view>

#include "common/io/files.h"

namespace strata::data {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::string_view how_to_make =
    "./run data makes one: from your own text (./run data FILE), or the default corpus (./run data "
    "tales)";

void require_directory(const fs::path& directory) {
  std::error_code ignored;
  if (!fs::exists(directory, ignored))
    throw std::runtime_error(
        fmt::format("there is no data set '{}'; {}.", directory.string(), how_to_make));
  if (!fs::is_directory(directory, ignored))
    throw std::runtime_error(fmt::format("'{}' is a file, but a data set is a directory; {}.",
                                         directory.string(), how_to_make));
}

/// Reads members of one JSON object, and names the file and the member when one is wrong.
class Members {
 public:
  Members(const json& object, std::string file, std::string within = "")
      : object_(object), file_(std::move(file)), within_(std::move(within)) {
    if (!object_.is_object()) refuse(within_.empty() ? "it" : "\"" + within_ + "\"", "an object");
  }

  [[nodiscard]] bool has(const char* key) const { return object_.contains(key); }

  [[nodiscard]] std::string text(const char* key) const {
    const json& value = member(key);
    if (!value.is_string()) refuse(quoted(key), "a text");
    return value.get<std::string>();
  }

  [[nodiscard]] std::uint64_t count(const char* key, std::uint64_t largest) const {
    const json& value = member(key);
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > largest)
      refuse(quoted(key), fmt::format("a whole number from 0 to {}", largest));
    return value.get<std::uint64_t>();
  }

  [[nodiscard]] double amount(const char* key) const {
    const json& value = member(key);
    if (!value.is_number() || !(value.get<double>() >= 0) || !std::isfinite(value.get<double>()))
      refuse(quoted(key), "a number that is not negative");
    return value.get<double>();
  }

  [[nodiscard]] Members object(const char* key) const { return {member(key), file_, key}; }

 private:
  [[nodiscard]] std::string quoted(const std::string& key) const {
    return "\"" + (within_.empty() ? key : within_ + "." + key) + "\"";
  }
  [[nodiscard]] const json& member(const char* key) const {
    if (!object_.contains(key))
      throw std::runtime_error(fmt::format("'{}' has no {}.", file_, quoted(key)));
    return object_.at(key);
  }
  [[noreturn]] void refuse(const std::string& what, const std::string& expected) const {
    throw std::runtime_error(fmt::format("in '{}', {} is not {}.", file_, what, expected));
  }

  const json& object_;
  std::string file_;
  std::string within_;
};

constexpr std::uint64_t any_count = std::uint64_t{1} << 62;

SplitFacts read_split_facts(const Members& split) {
  return {.tokens = split.count("tokens", any_count),
          .bytes = split.count("bytes", any_count),
          .documents = split.count("documents", any_count),
          .shards = split.count("shards", any_count)};
}

json split_json(const SplitFacts& split) {
  return {{"tokens", split.tokens},
          {"bytes", split.bytes},
          {"documents", split.documents},
          {"shards", split.shards}};
}

void compare(const fs::path& directory, const std::string& split, const SplitFacts& facts,
             const std::vector<ShardReader>& shards) {
  std::uint64_t tokens = 0;
  for (const ShardReader& shard : shards) tokens += shard.size();
  if (shards.size() == facts.shards && tokens == facts.tokens) return;
  throw std::runtime_error(fmt::format(
      "'{}' says that the {} split has {} tokens in {} shards, but {} tokens in {} shards are "
      "there: files of two data sets may be mixed up.",
      (directory / "dataset.json").string(), split, facts.tokens, facts.shards, tokens,
      shards.size()));
}

}  // namespace

double nats_per_token(double bits, std::uint64_t tokens) {
  return bits * std::numbers::ln2 / static_cast<double>(tokens);
}

DataSetFacts read_facts(const fs::path& directory) {
  require_directory(directory);
  const fs::path path = directory / "dataset.json";
  if (!fs::exists(path))
    throw std::runtime_error(fmt::format("'{}' is not a data set: it has no dataset.json; {}.",
                                         directory.string(), how_to_make));
  json parsed;
  try {
    parsed = json::parse(io::MappedFile(path).text());
  } catch (const json::exception& error) {
    throw std::runtime_error(fmt::format("'{}' is not JSON: {}.", path.string(), error.what()));
  }
  const Members all(parsed, path.string());
  const std::uint64_t format = all.count("format", any_count);
  if (format != dataset_format)
    throw std::runtime_error(fmt::format("'{}' has format {}, but this program reads format {}.",
                                         path.string(), format, dataset_format));
  DataSetFacts facts{
      .name = all.text("name"),
      .source = all.text("source"),
      .vocab_size = static_cast<std::uint32_t>(all.count("vocab_size", max_shard_vocabulary)),
      .end_of_text = static_cast<std::uint32_t>(all.count("end_of_text", max_shard_vocabulary)),
      .train = read_split_facts(all.object("train")),
      .val = read_split_facts(all.object("val")),
      .entropy = std::nullopt,
      .fingerprint = all.has("fingerprint") ? all.text("fingerprint") : ""};
  if (facts.end_of_text >= facts.vocab_size)
    throw std::runtime_error(
        fmt::format("in '{}', \"end_of_text\" is {}, which is not under the \"vocab_size\" {}.",
                    path.string(), facts.end_of_text, facts.vocab_size));
  if (all.has("entropy")) {
    const Members entropy = all.object("entropy");
    facts.entropy = {.train_bits = entropy.amount("train_bits"),
                     .val_bits = entropy.amount("val_bits")};
  }
  return facts;
}

void write_facts(const fs::path& directory, const DataSetFacts& facts) {
  nlohmann::ordered_json all{{"format", dataset_format},         {"name", facts.name},
                             {"source", facts.source},           {"vocab_size", facts.vocab_size},
                             {"end_of_text", facts.end_of_text}, {"train", split_json(facts.train)},
                             {"val", split_json(facts.val)}};
  if (facts.entropy)
    all["entropy"] = {{"train_bits", facts.entropy->train_bits},
                      {"val_bits", facts.entropy->val_bits}};
  if (!facts.fingerprint.empty()) all["fingerprint"] = facts.fingerprint;
  // A path or a name may have bytes that are not UTF-8: they become U+FFFD rather than an error.
  const auto replace = nlohmann::ordered_json::error_handler_t::replace;
  io::write_file(directory / "dataset.json", all.dump(2, ' ', false, replace) + "\n");
}

std::vector<ShardReader> open_split(const fs::path& directory, const std::string& split) {
  require_directory(directory);
  std::map<std::uint64_t, fs::path> found;
  for (const auto& entry : fs::directory_iterator(directory))
    if (const auto index = shard_index(entry.path().filename().string(), split))
      found.emplace(*index, entry.path());
  if (found.empty())
    throw std::runtime_error(fmt::format("'{}' has no {} shards ({}, ...); {}.", directory.string(),
                                         split, shard_name(split, 0), how_to_make));
  std::vector<ShardReader> shards;
  for (const auto& [index, path] : found) {
    if (index != shards.size())
      throw std::runtime_error(fmt::format("'{}' is missing, although '{}' is there.",
                                           (directory / shard_name(split, shards.size())).string(),
                                           path.string()));
    shards.emplace_back(path);
  }
  return shards;
}

DataSet open_data_set(const fs::path& directory) {
  DataSet set{.facts = read_facts(directory),
              .train = open_split(directory, "train"),
              .val = open_split(directory, "val")};
  compare(directory, "train", set.facts.train, set.train);
  compare(directory, "val", set.facts.val, set.val);
  return set;
}

}  // namespace strata::data
