#include <signal.h>

#include <chrono>
#include <limits>
#include <thread>

#include "bench/quiet.h"
#include "bench/session.h"
#include "bench/steps.h"
#include "bench/train.h"
#include "tests/catch.h"
#include "tests/temporary_directory.h"

using namespace strata::bench;
using strata::tests::contains;
using strata::tests::TemporaryDirectory;

namespace {

Command shell(const std::string& script) { return {{"/bin/sh", "-c", script}, "/", 3}; }

const Gate no_waiting{.longest_wait = 0};

Trainer printing(const std::string& script) { return {"the program", shell(script), {}}; }

/// Three steps and then silence, as a trainer that goes on would be.
const char* three_steps =
    "for ms in 900 20 30.5; do echo \"step 1: train loss 3 (took $ms ms)\"; sleep 0.05; done; "
    "sleep 60";

Series series(int batch, int seq, std::vector<std::vector<Step>> rounds) {
  Series result;
  result.batch = batch;
  result.seq = seq;
  result.rounds = std::move(rounds);
  return result;
}

}  // namespace

TEST_CASE("step times are read from what a trainer prints") {
  CHECK(step_times("step 0: train loss 5.2 (took 812.25 ms)\nval loss 4\n"
                   "step 1: train loss 5.1 (took 30 ms)\nstep 2: (took 9 ms)",
                   false) == std::vector<double>{812.25, 30});
  CHECK(step_times("(took nan ms)\n(took -3 ms)\n(took 3 s)\n(took ms)\n(took ", false).empty());
}

TEST_CASE("step times are read from metrics.jsonl") {
  CHECK(
      step_times("{\"kind\":\"run\",\"step\":0}\n{\"kind\":\"train\",\"step\":0,\"seconds\":0.5}\n"
                 "rubbish\n{\"kind\":\"val\",\"seconds\":9}\n"
                 "{\"kind\":\"train\",\"seconds\":null}\n{\"kind\":\"train\",\"seconds\":2}\n"
                 "{\"kind\":\"train\",\"seconds\":1",
                 true) == std::vector<double>{500, 2000});
}

TEST_CASE("the share of others is the machine's busy time less our own") {
  CHECK(foreign_share(60, 40, 1.0, 2, 100) == Approx(0.1));  // 20 ticks of 200
  CHECK(foreign_share(40, 40, 1.0, 2, 100) == 0);
  CHECK(foreign_share(30, 40, 1.0, 2, 100) == 0);  // rounding must not make it negative
  CHECK(foreign_share(200, 0, 1.0, 2, 100) == 1);
  CHECK(foreign_share(9, 0, 0.0, 2, 100) == 0);
}

TEST_CASE("our own work and that of the session count as ours") {
  const auto burn = [](double seconds) {
    const double until = usage_now(0).seconds + seconds;
    while (usage_now(0).seconds < until) {
    }
  };
  const Usage before = usage_now(0);
  burn(0.3);
  CHECK(usage_now(0).ours - before.ours >= 3);  // at least a tenth of it, on a crowded machine

  Session busy(shell("while :; do :; done & while :; do :; done"));
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  const std::int64_t with = usage_now(busy.id()).ours, without = usage_now(0).ours;
  CHECK(with - without >= 3);
}

TEST_CASE("medians and ranges are of the steps free of other load") {
  CHECK(median({3, 1, 2}) == 2);
  CHECK(median({4, 1, 2, 3}) == 2.5);
  const Statistics found = statistics({{100, 0.0}, {110, 0.04}, {500, 0.3}, {120, 0.01}}, 0.05);
  CHECK(found.median == 110);
  CHECK(found.low == 100);
  CHECK(found.high == 120);
  CHECK(found.kept == 3);
  CHECK(found.measured == 4);
  CHECK_FALSE(found.disturbed);
  // The limit itself is too much, and so is a share that is not a number.
  CHECK(
      statistics({{1, 0.0}, {9, 0.05}, {8, std::numeric_limits<double>::quiet_NaN()}}, 0.05).kept ==
      1);
}

TEST_CASE("where every step was disturbed all are used, and that is said") {
  const Statistics found = statistics({{100, 0.5}, {300, 0.6}}, 0.05);
  CHECK(found.disturbed);
  CHECK(found.kept == 0);
  CHECK(found.median == 200);
}

TEST_CASE("ratios are of time per token, their range over rounds") {
  const Series fast = series(4, 64, {{{100, 0}}, {{200, 0}}, {{100, 0}}});     // 256 tokens
  const Series slow = series(1, 1024, {{{800, 0}}, {{800, 0}}, {{1200, 0}}});  // 1024 tokens
  const Ratio found = ratio("x", slow, fast, 0.05);
  CHECK(found.value == 2);  // (800 / 1024) / (100 / 256)
  CHECK(found.low == 1);
  CHECK(found.high == 3);
  // A round in which one of them was disturbed tells nothing of the range.
  const Series disturbed = series(4, 64, {{{100, 0}}, {{200, 0.5}}, {{100, 0}}});
  CHECK(ratio("x", slow, disturbed, 0.05).low == 2);
}

TEST_CASE("a session shows each line as it is printed, and dies with its object") {
  pid_t process = 0;
  {
    Session session(shell("echo threads $OMP_NUM_THREADS; exec sleep 60"));
    process = session.id();
    for (int i = 0; i < 500 && session.output().empty(); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    CHECK(session.output() == "threads 3\n");
    CHECK(session.running());
  }
  CHECK(::kill(process, 0) != 0);
}

TEST_CASE("the first step of a process is dropped, and the process is stopped after the last") {
  const auto before = std::chrono::steady_clock::now();
  const std::vector<Step> steps = time_steps(printing(three_steps), 2, no_waiting, 30);
  REQUIRE(steps.size() == 2);
  CHECK(steps[0].ms == 20);
  CHECK(steps[1].ms == 30.5);
  CHECK(std::chrono::steady_clock::now() - before < std::chrono::seconds(30));
}

TEST_CASE("a trainer that ends early or falls silent is given up with a sentence") {
  CHECK_THROWS_WITH(
      time_steps(printing("echo '(took 5 ms)'; echo no data here"), 2, no_waiting, 30),
      contains("the program ended after 1 of 3 steps; its last line is: no data here"));
  CHECK_THROWS_WITH(time_steps(printing("exit 3"), 2, no_waiting, 30), contains("printed nothing"));
  CHECK_THROWS_WITH(time_steps(printing("sleep 60"), 2, no_waiting, 0.3),
                    contains("showed no step for"));
  CHECK_THROWS_WITH(time_steps({"it", {{"/nonexistent"}, "/", 1}, {}}, 2, no_waiting, 30),
                    contains("it ended after 0 of 3 steps"));
}
