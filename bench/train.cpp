#include "bench/train.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <stdexcept>

#include "bench/inputs.h"
#include "bench/machine.h"

namespace strata::bench {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

/// What llm.c's CPU trainer (train_gpt2.c, commit f1e2ace, gcc 12, two threads) took for this step,
/// measured with this method on the machine named.
constexpr double reference_ms = 5240;
constexpr const char* reference_machine =
    "a two-core virtual machine on an AMD EPYC of the Zen 3 generation";

/// The processes of a series that has been disturbed in half its steps or more are repeated, up to
/// this many times the rounds asked for.
constexpr int most_rounds_factor = 2;

bool executable(const fs::path& path) {
  return fs::is_regular_file(path) && ::access(path.c_str(), X_OK) == 0;
}

Series stage_series(const TrainOptions& options, int batch, int seq, int steps) {
  Series series;
  series.name = fmt::format("strata{} B={} T={}", options.stage, batch, seq);
  series.batch = batch;
  series.seq = seq;
  series.steps = steps;
  const fs::path out = options.work / "run";
  series.trainer.name = "strata" + options.stage;
  series.trainer.metrics = out / "metrics.jsonl";
  series.trainer.command.directory = options.work;
  series.trainer.command.threads = options.threads;
  // A run without end: it is stopped when the steps that are timed have been made.
  for (const std::string& argument : {options.trainer.string(),
                                      std::string("--data"),
                                      (options.work / "data").string(),
                                      std::string("--out"),
                                      out.string(),
                                      std::string("--init"),
                                      options.init,
                                      std::string("--batch"),
                                      std::to_string(batch),
                                      std::string("--seq"),
                                      std::to_string(seq),
                                      std::string("--accum"),
                                      std::string("1"),
                                      std::string("--steps"),
                                      std::string("1000000"),
                                      std::string("--val-every"),
                                      std::string("0"),
                                      std::string("--sample-every"),
                                      std::string("0"),
                                      std::string("--checkpoint-every"),
                                      std::string("0"),
                                      std::string("--threads"),
                                      std::to_string(options.threads)})
    series.trainer.command.arguments.push_back(argument);
  return series;
}

Series peer_series(const TrainOptions& options) {
  Series series;
  series.batch = options.batch;
  series.seq = options.seq;
  series.steps = options.steps;
  series.trainer.command.threads = options.threads;
  const fs::path script = options.peer / "bench.sh", llmc = options.peer / "train_gpt2";
  if (executable(script)) {
    series.trainer.name = series.name = "peer";
    series.trainer.command.arguments = {script.string()};
    series.trainer.command.directory = options.peer;
  } else if (executable(llmc)) {
    series.batch = 4;  // fixed in its source
    series.seq = 64;
    series.trainer.name = "llm.c's train_gpt2";
    series.name = "llm.c B=4 T=64";
    series.trainer.command.arguments = {llmc.string()};
    series.trainer.command.directory = options.work / "llmc";
    std::printf("inputs   for llm.c, with a model of random weights (498 MB)\n");
    write_llmc_inputs(options.work / "llmc");
  } else {
    throw std::runtime_error(fmt::format(
        "--peer '{}' has neither a program bench.sh nor llm.c's train_gpt2 (`make train_gpt2`)",
        options.peer.string()));
  }
  return series;
}

Json statistics_json(const Series& series, const Gate& gate) {
  const Statistics found = series.all(gate.foreign_limit);
  Json steps = Json::array();
  for (std::size_t round = 0; round < series.rounds.size(); ++round)
    for (const Step& step : series.rounds[round])
      steps.push_back({{"round", round},
                       {"ms", step.ms},
                       {"foreign", step.foreign},
                       {"kept", step.foreign < gate.foreign_limit}});
  return {{"name", series.name},
          {"batch", series.batch},
          {"seq", series.seq},
          {"ms", found.median},
          {"ms_min", found.low},
          {"ms_max", found.high},
          {"tokens_per_second", found.median > 0 ? 1e3 * series.tokens() / found.median : 0},
          {"kept", found.kept},
          {"measured", found.measured},
          {"disturbed", found.disturbed},
          {"steps", steps}};
}

Json ratio_json(const Ratio& ratio) {
  return {{"name", ratio.name}, {"value", ratio.value}, {"min", ratio.low}, {"max", ratio.high}};
}

/// Runs the series in turn, round by round; more rounds while too few steps are clean.
void measure(std::vector<Series>& series, const TrainOptions& options) {
  const auto enough = [&](const Series& one) {
    return 2 * one.all(options.gate.foreign_limit).kept >= options.rounds * one.steps;
  };
  for (int round = 0; round < most_rounds_factor * options.rounds; ++round) {
    if (round >= options.rounds && std::all_of(series.begin(), series.end(), enough)) return;
    for (Series& one : series) {
      one.rounds.push_back(time_steps(one.trainer, one.steps, options.gate, options.patience));
      std::string times;
      for (const Step& step : one.rounds.back())
        times +=
            fmt::format(" {:.0f}{}", step.ms, step.foreign < options.gate.foreign_limit ? "" : "*");
      std::printf("round %-2d %-24s ms a step:%s\n", round + 1, one.name.c_str(), times.c_str());
      std::fflush(stdout);
    }
  }
}

}  // namespace

Statistics Series::all(double foreign_limit) const {
  std::vector<Step> steps;
  for (const auto& round : rounds) steps.insert(steps.end(), round.begin(), round.end());
  return statistics(steps, foreign_limit);
}

Ratio ratio(const std::string& name, const Series& slow, const Series& fast, double foreign_limit) {
  const auto per_token = [](const Statistics& found, const Series& of) {
    return found.median / of.tokens();
  };
  Ratio result{name};
  const Statistics all_slow = slow.all(foreign_limit), all_fast = fast.all(foreign_limit);
  if (!(all_fast.median > 0)) return result;
  result.value = per_token(all_slow, slow) / per_token(all_fast, fast);
  std::vector<double> clean, any;
  for (std::size_t round = 0; round < std::min(slow.rounds.size(), fast.rounds.size()); ++round) {
    const Statistics a = statistics(slow.rounds[round], foreign_limit);
    const Statistics b = statistics(fast.rounds[round], foreign_limit);
    if (!(b.median > 0)) continue;
    any.push_back(per_token(a, slow) / per_token(b, fast));
    if (!a.disturbed && !b.disturbed) clean.push_back(any.back());
  }
  const std::vector<double>& rounds = clean.empty() ? any : clean;
  if (rounds.empty()) return result;
  result.low = *std::min_element(rounds.begin(), rounds.end());
  result.high = *std::max_element(rounds.begin(), rounds.end());
  return result;
}

std::vector<Series> plan_series(const TrainOptions& options) {
  if (!executable(options.trainer))
    throw std::runtime_error(
        fmt::format("there is no program '{}' to time", options.trainer.string()));
  std::vector<Series> series = {stage_series(options, options.batch, options.seq, options.steps)};
  if (!options.peer.empty()) series.push_back(peer_series(options));
  if (options.long_seq > 0)  // such a step is long: half as many do
    series.push_back(stage_series(options, 1, options.long_seq, std::max(1, options.steps / 2)));
  write_data_set(options.work / "data", options.vocab, 305'260, 32'768);
  return series;
}

Json bench_train(const TrainOptions& options) {
  std::vector<Series> series = plan_series(options);
  measure(series, options);
  const Gate& gate = options.gate;
  Json results_of_series = Json::array(), ratios = Json::array();
  for (const Series& one : series) results_of_series.push_back(statistics_json(one, gate));
  if (!options.peer.empty())
    ratios.push_back(ratio_json(ratio(fmt::format("{} / {}", series[1].name, series[0].name),
                                      series[1], series[0], gate.foreign_limit)));
  if (options.long_seq > 0)
    ratios.push_back(ratio_json(ratio(fmt::format("T={} / T={}", options.long_seq, options.seq),
                                      series.back(), series[0], gate.foreign_limit)));
  const Machine machine = this_machine();
  Json results = {
      {"format", 1},
      {"what", "train " + options.stage},
      {"date", utc_now()},
      {"commit", options.commit},
      {"machine",
       {{"processor", machine.processor},
        {"processors", machine.processors},
        {"memory_bytes", machine.memory_bytes},
        {"system", machine.system},
        {"compiler", machine.compiler}}},
      {"settings",
       {{"init", options.init}, {"threads", options.threads}, {"vocab", options.vocab}}},
      {"method",
       {{"rounds", options.rounds},
        {"steps_a_process", options.steps},
        {"first_step_dropped", true},
        {"quiet_share", gate.quiet_share},
        {"longest_wait_s", gate.longest_wait},
        {"foreign_limit", gate.foreign_limit}}},
      {"series", results_of_series},
      {"ratios_per_token", ratios}};
  if (options.peer.empty() && options.init == "d12" && options.batch == 4 && options.seq == 64 &&
      options.threads == 2)
    results["reference"] = {{"name", "llm.c train_gpt2.c, B=4 T=64, two threads, gcc 12"},
                            {"ms", reference_ms},
                            {"machine", reference_machine}};
  return results;
}

std::string table(const Json& results) {
  const Json& machine = results["machine"];
  std::string text = fmt::format(
      "\n{}, {} with {} threads, commit {}\n{}, {} processors, {}\n\n"
      "{:<26}{:>10}  {:<17}{:>10}   {}\n",
      results["what"].get<std::string>(), results["settings"]["init"].get<std::string>(),
      results["settings"]["threads"].get<int>(), results["commit"].get<std::string>(),
      machine["processor"].get<std::string>(), machine["processors"].get<int>(),
      machine["compiler"].get<std::string>(), "", "ms a step", "[min..max]", "tokens/s",
      "steps kept");
  bool disturbed = false;
  for (const Json& one : results["series"]) {
    disturbed = disturbed || one["disturbed"].get<bool>();
    text += fmt::format(
        "{:<26}{:>10.1f}  {:<17}{:>10.1f}   {} of {}{}\n", one["name"].get<std::string>(),
        one["ms"].get<double>(),
        fmt::format("[{:.1f}..{:.1f}]", one["ms_min"].get<double>(), one["ms_max"].get<double>()),
        one["tokens_per_second"].get<double>(), one["kept"].get<int>(), one["measured"].get<int>(),
        one["disturbed"].get<bool>() ? " (!)" : "");
  }
  text += "\ntime a token, as a ratio\n";
  for (const Json& one : results["ratios_per_token"])
    text += fmt::format("{:<36}{:>6.2f}  [{:.2f}..{:.2f}] over rounds\n",
                        one["name"].get<std::string>(), one["value"].get<double>(),
                        one["min"].get<double>(), one["max"].get<double>());
  if (results.contains("reference")) {
    const Json& reference = results["reference"];
    text += fmt::format(
        "{:<36}{:>6.2f}  against {:.0f} ms measured on\n{:<44}{};\n{:<44}it says "
        "something only about the same machine\n",
        "llm.c as on record / this",
        reference["ms"].get<double>() / results["series"][0]["ms"].get<double>(),
        reference["ms"].get<double>(), "", reference["machine"].get<std::string>(), "");
  }
  if (disturbed)
    text += "(!) no step was free of other load: these figures are of a busy machine.\n";
  return text;
}

}  // namespace strata::bench
