// What a run does when the machine lets it down: killed, the disk full, the memory short.

#include <sys/mount.h>
#include <sys/stat.h>

#include "tests/stage01/run_support.h"
#include "tests/stage01/stage01.h"

namespace {

using namespace strata::tests;

/// Loads a checkpoint of a tiny run as --resume does, and samples' tokenizer with it; throws if any
/// part of it is not whole.
void load(const fs::path& checkpoint) {
  stage01::Model model(stage01::read_config(checkpoint), 1, 1, true);
  stage01::State state;
  stage01::load_state(checkpoint, model, state, 1906);
  stage01::Settings settings;
  stage01::load_settings(checkpoint / "state.json", settings);
  stage01::Tokenizer tokenizer(checkpoint / "tokenizer.bin");
  if (step_name(state.step) != checkpoint.filename())
    throw std::runtime_error(checkpoint.string() + " holds step " + std::to_string(state.step));
  for (const char* name : {"model.safetensors", "optimizer-00000-of-00001.safetensors"})
    strata::io::Safetensors complete(checkpoint /
                                     name);  // our other reader: no byte too few or many
}

TEST_CASE(
    "after SIGKILL at any moment every finished checkpoint loads, and the run goes on exactly") {
  const Workshop workshop;
  const Arguments settings = workshop.tiny({"--schedule", "constant", "--warmup", "0"});
  const std::string out = workshop("out");
  std::mt19937 random(2026);
  std::string newest;
  int killed_in_writing = 0;
  for (int round = 0; round < 20; ++round) {
    const Arguments start =
        newest.empty() ? settings + Arguments{"--out", out} : Arguments{"--resume", "--out", out};
    Child run(strata01_command(start + Arguments{"--steps", "1000000", "--checkpoint-every", "1",
                                                 "--keep", round % 2 == 0 ? "2" : "4"}));
    // Not before the run has saved something, then within the time of several checkpoints.
    for (int i = 0; i < 60'000 && !run.ended(); ++i) {
      if (fs::exists(out) && !checkpoints(out).empty() && checkpoints(out).back() > newest) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 60'000));
    run.send(SIGKILL);
    const Outcome outcome = run.wait();
    INFO("round " << round << ": " << outcome.err);
    REQUIRE(outcome.signal == SIGKILL);  // it did not end by itself
    const auto saved = checkpoints(out);
    REQUIRE(!saved.empty());
    for (const std::string& name : saved) {
      INFO(name);
      CHECK_NOTHROW(load(fs::path(out) / name));
    }
    CHECK(saved.back() > newest);
    newest = saved.back();
    for (const fs::path& path : fs::directory_iterator(out))
      killed_in_writing += path.extension() == ".tmp";
  }
  CHECK(killed_in_writing > 0);  // otherwise the moments were badly chosen

  const int end = std::stoi(newest.substr(5)) + 2;
  trained({"--resume", "--out", out, "--steps", std::to_string(end), "--keep", "1"});
  trained(settings + Arguments{"--steps", std::to_string(end), "--out", workshop("whole")});
  CHECK(checkpoint_differences(workshop("whole") + "/" + step_name(end),
                               out + "/" + step_name(end)) == "");
}

TEST_CASE("a checkpoint that is not whole does not load") {
  const Workshop workshop;
  trained(workshop.tiny({"--out", workshop("out"), "--steps", "2"}));
  const fs::path good = fs::path(workshop("out")) / "step_00000002";
  CHECK_NOTHROW(load(good));
  int broken = 0;
  for (const fs::path& file : fs::directory_iterator(good)) {
    const fs::path copy = fs::path(workshop("copy")) / "step_00000002";
    for (const bool removed : {true, false}) {
      fs::remove_all(copy);
      fs::create_directories(copy.parent_path());
      fs::copy(good, copy);
      if (removed)
        fs::remove(copy / file.filename());
      else
        fs::resize_file(copy / file.filename(), fs::file_size(file) - 4);
      INFO(file.filename());
      CHECK_THROWS(load(copy));
      ++broken;
    }
  }
  CHECK(broken == 10);
}

/// A file system in memory of a given size, if this process may mount one.
struct SmallDisk {
  fs::path path;
  bool mounted;
  SmallDisk(const fs::path& at, const std::string& size) : path(at) {
    fs::create_directories(path);
    mounted = ::mount("tmpfs", path.c_str(), "tmpfs", 0, ("size=" + size).c_str()) == 0;
  }
  ~SmallDisk() {
    if (mounted) ::umount2(path.c_str(), MNT_DETACH);
  }
};

TEST_CASE("a full disk ends the run with the file's name, and the checkpoints before load") {
  const Workshop workshop;
  // A checkpoint of the tiny model has about 430 kB: two fit, a third does not.
  const SmallDisk disk(workshop("disk"), "1200k");
  if (!disk.mounted) {
    WARN("not tried: this process may not mount a small tmpfs (it would have to be root)");
    return;
  }
  const std::string out = (disk.path / "out").string();
  const Outcome outcome = strata01(
      workshop.tiny({"--steps", "40", "--out", out, "--checkpoint-every", "10", "--keep", "0"}));
  CHECK(outcome.code == 1);
  CHECK_THAT(outcome.err, contains("strata01: error: the checkpoint of step 30 was not saved") &&
                              contains("those before it are untouched") &&
                              contains("cannot write '" + out + "/step_00000030.tmp/") &&
                              contains("No space left on device"));
  REQUIRE(checkpoints(out) == std::vector<std::string>{"step_00000010", "step_00000020"});
  for (const std::string& name : checkpoints(out)) CHECK_NOTHROW(load(fs::path(out) / name));
  CHECK_FALSE(fs::exists(out + "/step_00000030.tmp"));  // its space is free again

  fs::remove_all(out + "/step_00000010");  // what a person would do
  trained({"--resume", "--out", out, "--steps", "30"});
  CHECK_NOTHROW(load(fs::path(out) / "step_00000030"));
}

TEST_CASE("a disk that is full to the last byte stops the metrics in words") {
  const Workshop workshop;
  const SmallDisk disk(workshop("disk"), "64k");
  if (!disk.mounted) {
    WARN("not tried: this process may not mount a small tmpfs (it would have to be root)");
    return;
  }
  const std::string out = (disk.path / "out").string();
  const Outcome outcome = strata01(workshop.tiny({"--steps", "5000", "--out", out}));
  CHECK(outcome.code == 1);
  CHECK_THAT(outcome.err,
             contains("cannot write '" + out + "/metrics.jsonl': No space left on device"));
}

TEST_CASE("a trace that cannot be written is an error that names it") {
  const Workshop workshop;
  const Outcome full = strata01(workshop.tiny({"--steps", "1", "--trace", "/dev/full"}));
  CHECK(full.code == 1);
  CHECK_THAT(full.err, contains("cannot write '/dev/full': No space left on device"));
  const Outcome nowhere =
      strata01(workshop.tiny({"--steps", "1", "--trace", workshop("no/where")}));
  CHECK(nowhere.code == 1);
  CHECK_THAT(nowhere.err, contains("cannot create '" + workshop("no/where") + "': No such file"));
}

TEST_CASE("an --out that cannot be made or written is an error that names it") {
  const Workshop workshop;
  strata::io::write_file(workshop("file"), "not a directory");
  const Outcome below = strata01(workshop.tiny({"--out", workshop("file") + "/out"}));
  CHECK(below.code == 1);
  CHECK_THAT(below.err, contains("strata01: error: ") && contains(workshop("file") + "/out"));
  const Outcome file = strata01(workshop.tiny({"--out", workshop("file")}));
  CHECK(file.code == 1);
  CHECK_THAT(file.err, contains(workshop("file")));
  if (::geteuid() == 0) return;  // nothing is forbidden to root
  fs::create_directories(workshop("locked"));
  ::chmod(workshop("locked").c_str(), 0500);
  for (const std::string& out : {workshop("locked"), workshop("locked") + "/out"}) {
    const Outcome outcome = strata01(workshop.tiny({"--out", out}));
    CHECK(outcome.code == 1);
    CHECK_THAT(outcome.err, contains(workshop("locked")) && contains("ermission denied"));
  }
}

TEST_CASE(
    "a model that the machine has no memory for is refused at once, before any of it is taken") {
  const Workshop workshop;
  const Arguments huge = workshop.tiny({"--init", "gpt3:c12288"});
  const auto check = [&](const Arguments& flags, const char* sentence) {
    const Outcome outcome = strata01(flags);
    INFO(outcome.err);
    CHECK(outcome.code == 1);
    CHECK_THAT(outcome.err, contains(sentence));
    CHECK(outcome.seconds < (STRATA_UNDER_ASAN ? 10 : 1));
    return outcome.out;
  };
  const char* const sentence = "MiB of memory, but only";
  CHECK_THAT(check(huge, sentence), contains("gradients") && contains("activations"));
  check(huge + Arguments{"--plan"}, sentence);
  check(workshop.tiny({"--init", "d12", "--batch", "1000000", "--seq", "1024"}), sentence);
  check(workshop.tiny({"--init", "L1000,C131072,H131072,T1048576,V16777216", "--seq", "0",
                       "--batch", "1000000", "--plan"}),
        "needs more memory than any machine has");
}

TEST_CASE("the memory plan is printed and nothing else done by --plan, without any data") {
  const Workshop workshop;
  fs::remove_all(workshop.data);
  const Outcome outcome = trained(workshop.tiny({"--plan", "--out", workshop("out")}));
  CHECK_THAT(outcome.out, contains("parameters") && contains("gradients") && contains("AdamW m") &&
                              contains("AdamW v") && contains("activations") &&
                              contains("together"));
}

TEST_CASE("too little memory for the process is one clear sentence") {
  if (STRATA_UNDER_ASAN) {
    WARN("not tried: AddressSanitizer itself needs terabytes of address space");
    return;
  }
  const Workshop workshop;
  // 300 MB of address space: d12 has more parameters than that, the other has large activations.
  for (const char* init : {"d12,V257", "L2,C64,H64,T1024,V257"}) {
    const Outcome outcome =
        Child(strata01_command(workshop.tiny({"--init", init, "--seq", "16", "--threads", "1",
                                              "--batch", init[0] == 'd' ? "1" : "4000"})),
              300'000'000)
            .wait();
    INFO(init << ": " << outcome.err << " signal " << outcome.signal);
    CHECK(outcome.code == 1);
    CHECK_THAT(outcome.err, contains("strata01: error: not enough memory"));
    CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1);
  }
}

}  // namespace
