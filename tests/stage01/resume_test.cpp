// A run that was stopped goes on as if it never had been; and what a run keeps and refuses.

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/stage01/run_support.h"

namespace {

using namespace strata::tests;

/// Loss, learning rate and skipped steps of a run from step `from` on, the later line of a step.
std::map<int, std::string> history(const fs::path& out, int from = 0) {
  std::istringstream lines(strata::io::read_file(out / "metrics.jsonl"));
  std::map<int, std::string> steps;
  for (std::string line; std::getline(lines, line);) {
    if (line.empty()) continue;
    auto json = nlohmann::json::parse(line);
    if (json.at("kind") != "train" || json.at("step") < from) continue;
    json.erase("seconds");
    steps[json.at("step")] = json.dump();
  }
  return steps;
}

/// Only checkpoint `step` of the run `from`, as if the rest had been lost.
void keep_only(const fs::path& from, const fs::path& to, int step) {
  fs::create_directories(to);
  fs::copy(from / step_name(step), to / step_name(step), fs::copy_options::recursive);
}

/// The differences between the end of a run of `steps` steps and of one that was stopped at
/// `stop` and resumed; empty if there are none.
std::string resumed_differences(const Workshop& workshop, int stop, int steps,
                                const Arguments& settings, const Arguments& resumed_with = {}) {
  fs::remove_all(workshop("whole"));
  fs::remove_all(workshop("parts"));
  trained(workshop.tiny(settings) + Arguments{"--steps", std::to_string(steps), "--out",
                                              workshop("whole"), "--checkpoint-every",
                                              std::to_string(stop)});
  keep_only(workshop("whole"), workshop("parts"), stop);
  trained(Arguments{"--resume", "--out", workshop("parts")} + resumed_with);
  CHECK(checkpoints(workshop("parts")).size() == checkpoints(workshop("whole")).size());
  const std::string end = "/" + step_name(steps);
  std::string differences =
      checkpoint_differences(workshop("whole") + end, workshop("parts") + end);
  if (history(workshop("whole"), stop) != history(workshop("parts"), stop))
    differences += "history";
  CHECK(history(workshop("parts")).size() == static_cast<std::size_t>(steps - stop));
  return differences;
}

TEST_CASE("a resumed run ends with the bits of one that was never stopped") {
  const Workshop workshop;  // 75 + 43 windows of 16 tokens: an epoch ends inside step 29 of 4
  CHECK(resumed_differences(workshop, 5, 12, {}) == "");
  CHECK(resumed_differences(workshop, 29, 40, {"--schedule", "linear"}) == "");
  CHECK(resumed_differences(workshop, 7, 20,
                            {"--schedule", "wsd", "--accum", "3", "--batch", "2"}) == "");
  CHECK(resumed_differences(workshop, 33, 35, {"--schedule", "constant", "--warmup", "40"}) == "");
  CHECK(resumed_differences(workshop, 3, 9,
                            {"--overfit", "--seq", "11", "--val-every", "2", "--sample-every", "2",
                             "--sample-tokens", "5"}) == "");
}

TEST_CASE("a resumed run goes on with the windows of the outlier detector") {
  const Workshop workshop;
  const Arguments settings{"--skip-loss-z", "1.2", "--skip-norm-z", "1.5", "--lr", "1e-3"};
  CHECK(resumed_differences(workshop, 140, 170, settings) == "");
  int skipped = 0;  // otherwise this would show nothing
  for (const auto& [step, line] : history(workshop("whole"), 140))
    skipped += line.find("\"skipped\":true") != std::string::npos;
  CHECK(skipped > 0);
  CHECK(skipped < 30);
}

TEST_CASE("the comparison of resumed runs can fail") {
  const Workshop workshop;
  CHECK_THAT(resumed_differences(workshop, 5, 12, {}, {"--lr", "3.0001e-3"}),
             contains("model.safetensors") && contains("history"));
  CHECK_THAT(resumed_differences(workshop, 5, 12, {}, {"--data-seed", "2"}), contains("history"));
}

TEST_CASE("a run may be resumed twice, with more threads, and for more steps") {
  const Workshop workshop;
  const Arguments settings{"--schedule", "constant", "--threads", "1"};
  trained(workshop.tiny(settings) + Arguments{"--steps", "9", "--out", workshop("whole")});
  trained(workshop.tiny(settings) + Arguments{"--steps", "2", "--out", workshop("parts")});
  trained({"--resume", "--out", workshop("parts"), "--steps", "5", "--threads", "2"});
  trained({"--resume", "--out", workshop("parts"), "--steps", "9"});
  CHECK(checkpoint_differences(workshop("whole") + "/step_00000009",
                               workshop("parts") + "/step_00000009") == "");
  CHECK(history(workshop("whole")) == history(workshop("parts")));
  CHECK(checkpoints(workshop("parts")) ==
        std::vector<std::string>{"step_00000002", "step_00000005", "step_00000009"});
}

/// Waits until the run has logged some steps; false if it never does.
bool under_way(Child& run, const fs::path& out) {
  for (int i = 0; i < 20'000 && !run.ended(); ++i) {
    if (fs::exists(out / "metrics.jsonl") && fs::file_size(out / "metrics.jsonl") > 3000)
      return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

TEST_CASE("Ctrl-C and SIGTERM save a checkpoint, exit with 130, and --resume goes on from there") {
  for (const int signal : {SIGINT, SIGTERM}) {
    const Workshop workshop;
    const Arguments settings = workshop.tiny({"--schedule", "constant"});
    Outcome outcome;
    {
      Child run(
          strata01_command(settings + Arguments{"--steps", "1000000", "--out", workshop("parts")}));
      REQUIRE(under_way(run, workshop("parts")));
      run.send(signal);
      outcome = run.wait(60);
    }
    CHECK(outcome.code == 130);
    CHECK_THAT(outcome.out, contains("interrupted after step") && contains("--resume goes on"));
    CHECK(outcome.err == "");
    const auto saved = checkpoints(workshop("parts"));
    REQUIRE(saved.size() == 1);
    const int step = std::stoi(saved[0].substr(5)), end = step + 7;
    trained({"--resume", "--out", workshop("parts"), "--steps", std::to_string(end)});
    trained(settings + Arguments{"--steps", std::to_string(end), "--out", workshop("whole")});
    CHECK(checkpoint_differences(workshop("whole") + "/" + step_name(end),
                                 workshop("parts") + "/" + step_name(end)) == "");
  }
}

TEST_CASE("a run on another data set is not resumed") {
  const Workshop workshop;
  trained(workshop.tiny({"--out", workshop("out"), "--steps", "3"}));
  write_data_set(workshop("other"), {1205, 702});
  const Outcome outcome =
      strata01({"--resume", "--out", workshop("out"), "--steps", "5", "--data", workshop("other")});
  CHECK(outcome.code == 1);
  CHECK_THAT(outcome.err, contains("was trained on 1906 tokens, but --data has 1907") &&
                              contains("another data set") &&
                              contains("--init instead of --resume"));
  CHECK(checkpoints(workshop("out")) == std::vector<std::string>{"step_00000003"});
}

TEST_CASE("a run is not resumed for fewer steps than it has done") {
  const Workshop workshop;
  trained(workshop.tiny({"--out", workshop("out"), "--steps", "6"}));
  const Outcome outcome = strata01({"--resume", "--out", workshop("out"), "--steps", "4"});
  CHECK(outcome.code == 1);
  CHECK_THAT(outcome.err, contains("--steps is 4, but the run has done 6 steps"));
  // Exactly as many is a run that is finished.
  CHECK(strata01({"--resume", "--out", workshop("out")}).code == 0);
  CHECK(checkpoints(workshop("out")) == std::vector<std::string>{"step_00000006"});
}

TEST_CASE("a directory with a run in it is not written to without --resume") {
  const Workshop workshop;
  trained(workshop.tiny({"--out", workshop("out"), "--steps", "3"}));
  const std::string before = strata::io::read_file(workshop("out") + "/metrics.jsonl");
  const auto refused = [&] {
    const Outcome outcome = strata01(workshop.tiny({"--out", workshop("out"), "--steps", "3"}));
    CHECK(outcome.code == 1);
    CHECK_THAT(outcome.err, contains("--out: '" + workshop("out") + "' holds a run already") &&
                                contains("--resume"));
  };
  refused();
  CHECK(strata::io::read_file(workshop("out") + "/metrics.jsonl") == before);
  fs::remove_all(workshop("out") + "/step_00000003");
  refused();  // by its metrics
}

TEST_CASE("the resume flag says what it misses") {
  const Workshop workshop;
  const auto error = [&](const Arguments& flags) {
    const Outcome outcome = strata01(Arguments{"--resume", "--data", workshop.data} + flags);
    CHECK(outcome.code == 1);
    return outcome.err;
  };
  CHECK_THAT(error({}), contains("--resume needs --out"));
  CHECK_THAT(error({"--out", workshop("none")}),
             contains("--resume needs --out, the directory of a run"));
  CHECK_FALSE(fs::exists(workshop("none")));
  fs::create_directories(workshop("empty"));
  CHECK_THAT(error({"--out", workshop("empty")}), contains("there is no checkpoint in"));
  fs::create_directories(workshop("empty") + "/step_00000004.tmp");
  CHECK_THAT(error({"--out", workshop("empty")}), contains("there is no checkpoint in"));
}

TEST_CASE("retention keeps the newest checkpoints, and the milestones for ever") {
  const auto kept = [](const Arguments& settings) {
    const Workshop workshop;
    trained(workshop.tiny(settings) +
            Arguments{"--out", workshop("out"), "--steps", "17", "--checkpoint-every", "2"});
    std::vector<int> steps;
    for (const std::string& name : checkpoints(workshop("out")))
      steps.push_back(std::stoi(name.substr(5)));
    for (const fs::path& path : fs::directory_iterator(workshop("out")))
      CHECK(path.extension() != ".tmp");
    return steps;
  };
  CHECK(kept({"--keep", "0"}) == std::vector{2, 4, 6, 8, 10, 12, 14, 16, 17});
  CHECK(kept({"--keep", "1"}) == std::vector{17});
  CHECK(kept({"--keep", "3"}) == std::vector{14, 16, 17});
  CHECK(kept({"--keep", "2", "--keep-every", "4"}) == std::vector{4, 8, 12, 16, 17});
  CHECK(kept({"--keep", "1", "--keep-every", "6"}) == std::vector{6, 12, 17});
  CHECK(kept({"--keep", "99"}).size() == 9);
}

TEST_CASE("a checkpoint is a model to start from, and has all that a reader needs") {
  const Workshop workshop;
  trained(workshop.tiny({"--out", workshop("out"), "--steps", "3"}));
  const fs::path saved = fs::path(workshop("out")) / "step_00000003";
  for (const char* name : {"model.safetensors", "config.json", "tokenizer.bin", "state.json",
                           "optimizer-00000-of-00001.safetensors"})
    CHECK(fs::exists(saved / name));
  CHECK(strata::io::read_file(saved / "tokenizer.bin") == byte_tokenizer());
  trained(workshop.tiny({"--init", saved.string(), "--steps", "2", "--trace", workshop("trace")}));
  const strata::io::Safetensors trace(workshop("trace")), model(saved / "model.safetensors");
  CHECK(trace.read<float>("step.0.before.param.wte.weight") == model.read<float>("wte.weight"));
  const Outcome sampled = strata01({"--sample", "--init", saved.string(), "--sample-tokens", "9"});
  CHECK(sampled.code == 0);
}

}  // namespace
