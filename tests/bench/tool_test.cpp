// strata-bench as a tool, with programs that only pretend to train.
#include <fmt/format.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "common/io/files.h"
#include "tests/catch.h"
#include "tests/temporary_directory.h"

namespace fs = std::filesystem;
using strata::io::read_file;
using strata::io::write_file;
using strata::tests::contains;
using strata::tests::TemporaryDirectory;

namespace {

/// Writes metrics as a stage does: 0.25 ms a token at any length, the first step slower.
const char* fake_trainer = R"sh(#!/bin/bash
out='' seq=0 batch=0
while (($#)); do
  case $1 in --out) out=$2 ;; --seq) seq=$2 ;; --batch) batch=$2 ;; esac
  shift
done
mkdir -p "$out"
echo "a line for people"
for step in 0 1 2 3 4 5 6 7 8 9; do
  ms=$((batch * seq / 4)) && ((step > 0)) || ms=9999
  printf '{"kind":"train","step":%d,"seconds":%d.%03d}\n' $step $((ms / 1000)) $((ms % 1000)) >>"$out/metrics.jsonl"
  sleep 0.03
done
sleep 60
)sh";

const char* fake_peer = R"sh(#!/bin/bash
for ms in 8888 128 128 128 128 128; do echo "(took $ms ms)";
sleep 0.03; done
sleep 60
)sh";

void write_program(const fs::path& path, const std::string& text) {
  write_file(path, text);
  fs::permissions(path, fs::perms::owner_all);
}

struct Outcome {
  int code = -1;
  std::string out, err;
};

Outcome bench(const TemporaryDirectory& work, const std::string& arguments) {
  const std::string command = fmt::format("cd '{0}' && {1}/strata-bench {2} >stdout 2>stderr",
                                          work.path().string(), STRATA_BIN, arguments);
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_file(work / "stdout"),
          read_file(work / "stderr")};
}

const std::string common =
    "train 01 --trainer ./trainer --work work --out results/x.json --max-wait 0 --vocab 300 "
    "--rounds 2 --steps 2 --long-seq 512 --commit abc ";

}  // namespace

TEST_CASE("the bench times a stage and a peer in alternation and records what it found") {
  const TemporaryDirectory work;
  write_program(work / "trainer", fake_trainer);
  fs::create_directory(work / "other");
  write_program(work / "other" / "bench.sh", fake_peer);
  const Outcome outcome = bench(work, common + "--peer other");
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  const auto results = nlohmann::json::parse(read_file(work / "results" / "x.json"));
  CHECK(results["commit"] == "abc");
  CHECK(results["machine"]["processors"].get<int>() >= 1);
  REQUIRE(results["series"].size() == 3);
  CHECK(results["series"][0]["ms"] == 64);  // 4 * 64 / 4; the first step's 9999 is not in it
  CHECK(results["series"][0]["ms_max"] == 64);
  CHECK(results["series"][0]["tokens_per_second"] == 4000);
  CHECK(results["series"][1]["ms"] == 128);  // the peer
  CHECK(results["series"][2]["ms"] == 128);  // 512 / 4
  CHECK(results["series"][2]["measured"].get<int>() >= 2);
  CHECK(results["ratios_per_token"][0]["value"] == 2);
  CHECK(results["ratios_per_token"][1]["value"] == 1);
  CHECK_FALSE(results.contains("reference"));  // a measured peer says more
  CHECK_THAT(outcome.out, contains("peer / strata01 B=4 T=64") && contains("2.00"));
  CHECK_FALSE(fs::exists(work / "work" / "run"));
}

TEST_CASE("the figure on record is quoted only for the step that it is of") {
  const TemporaryDirectory work;
  write_program(work / "trainer", fake_trainer);
  const auto results_with = [&](const std::string& flags) {
    const Outcome outcome =
        bench(work, fmt::format("train 01 --trainer ./trainer --work work --out x.json "
                                "--max-wait 0 --vocab 300 --rounds 1 --steps 1 --long-seq 0 {}",
                                flags));
    REQUIRE(outcome.code == 0);
    CHECK((outcome.out.find("only about the same machine") != std::string::npos) == flags.empty());
    return nlohmann::json::parse(read_file(work / "x.json"));
  };
  const auto results = results_with("");
  CHECK(results["series"].size() == 1);
  CHECK(results["reference"]["ms"] == 5240);
  for (const char* flags : {"--threads 1", "--batch 2", "--seq 32", "--init d24"})
    CHECK_FALSE(results_with(flags).contains("reference"));
}

TEST_CASE("the bench refuses in a sentence what it cannot time") {
  const TemporaryDirectory work;
  const Outcome absent = bench(work, common);
  CHECK(absent.code == 1);
  CHECK_THAT(absent.err, contains("strata-bench: error: there is no program '"));
  write_program(work / "trainer", "#!/bin/sh\necho 'strata01: error: no such model'\nexit 1\n");
  const Outcome failing = bench(work, common);
  CHECK(failing.code == 1);
  CHECK_THAT(failing.err,
             contains("ended after 0 of 3 steps; its last line is: strata01: error: no "
                      "such model"));
  const Outcome no_peer = bench(work, common + "--peer work");
  CHECK(no_peer.code == 1);
  CHECK_THAT(no_peer.err, contains("has neither a program bench.sh nor llm.c's train_gpt2"));
  CHECK(bench(work, "").code == 2);
  CHECK(bench(work, common + "--rounds 0").code == 2);
  CHECK(bench(work, common + "--vocab 3").code == 2);
}
