// strata-data as it is used: its words, its exit codes, and what is left when it is killed.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <random>

#include "common/data/inspect.h"
#include "common/data/prepare.h"
#include "tests/catch.h"
#include "tests/temporary_directory.h"

namespace {

namespace fs = std::filesystem;
using strata::io::read_file;
using strata::io::write_file;
using strata::tests::contains;
using strata::tests::TemporaryDirectory;

const std::string tool = std::string(STRATA_BIN) + "/strata-data";

struct Outcome {
  int code = 0;
  std::string output;  // both streams
};

Outcome shell(const std::string& command) {
  std::FILE* pipe = ::popen(("{ " + command + "; } 2>&1").c_str(), "r");
  REQUIRE(pipe != nullptr);
  Outcome outcome;
  std::array<char, 4096> buffer{};
  while (const std::size_t n = std::fread(buffer.data(), 1, buffer.size(), pipe))
    outcome.output.append(buffer.data(), n);
  const int status = ::pclose(pipe);
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return outcome;
}

std::string text_of(std::size_t bytes) {
  std::mt19937_64 random(bytes);
  std::string text;
  while (text.size() < bytes) {
    for (int word = 0; word < 12; ++word) text += "word" + std::to_string(random() % 500) + " ";
    text += "\n";
  }
  return text;
}

/// A small data set at `directory`/set, made by the tool.
std::string make_set(const TemporaryDirectory& directory) {
  write_file(directory / "text", text_of(20'000));
  const std::string set = (directory / "set").string();
  const Outcome made =
      shell(tool + " prepare --vocab-size 400 --out " + set + " " + (directory / "text").string());
  REQUIRE(made.code == 0);
  CHECK_THAT(made.output, contains("400 tokens") && contains("is ready"));
  return set;
}

TEST_CASE("prepare, info, encode and decode work together") {
  const TemporaryDirectory directory;
  const std::string set = make_set(directory);
  const Outcome info = shell(tool + " info " + set);
  CHECK(info.code == 0);
  CHECK_THAT(info.output, contains("train") && contains("bytes a token") && contains("checked"));
  const std::string text = "word7 <|endoftext|> \xc3\xa9\xff!";
  const Outcome ids = shell(tool + " encode --data " + set + " '" + text + "'");
  CHECK(ids.code == 0);
  CHECK(ids.output.find_first_not_of("0123456789,\n") == std::string::npos);
  CHECK(
      shell("printf '%s' '" + text + "' | " + tool + " encode --tokenizer " + set + " -").output ==
      ids.output);
  CHECK(shell(tool + " encode --data " + set + " --text '" + text + "' | " + tool +
              " decode --data " + set + " -")
            .output == text);
  CHECK(shell(tool + " encode --data " + set + " --special '<|endoftext|>'").output == "399\n");
  CHECK(shell(tool + " encode --data " + set + " ''").output == "\n");
}

TEST_CASE("what goes wrong is one sentence and a code") {
  const TemporaryDirectory directory;
  const std::string set = make_set(directory);
  struct Case {
    std::string arguments, sentence;
    int code;
  };
  const std::vector<Case> cases{
      {"", "A subcommand is required", 2},
      {"prepare --out x", "INPUT (a text file or a directory) is required", 2},
      {"prepare text", "--out is required", 2},
      {"prepare --out x --vocab-size many text", "--vocab-size", 2},
      {"prepare --out x --split-documents page text", "page not in {endoftext,file}", 2},
      {"prepare --out x absent", "there is no file or directory 'absent'", 1},
      {"info absent", "there is no data set 'absent'; ./run data makes one", 1},
      {"encode --data absent text", "absent", 1},
      {"decode --data " + set + " 1,2,-3", "'-3' is not a token id", 1},
      {"decode --data " + set + " 4294967296", "'4294967296' is not a token id", 1},
      {"decode --data " + set + " 1,400", "400", 1},
  };
  for (const Case& wrong : cases) {
    const Outcome outcome =
        shell("cd " + directory.path().string() + " && " + tool + " " + wrong.arguments);
    CAPTURE(wrong.arguments);
    CHECK(outcome.code == wrong.code);
    CHECK_THAT(outcome.output, contains("strata-data: error: ") && contains(wrong.sentence));
    CHECK(std::count(outcome.output.begin(), outcome.output.end(), '\n') == 1);
    CHECK_FALSE(fs::exists(directory / "x"));
  }
}

TEST_CASE("info finds one wrong token among many") {
  const TemporaryDirectory directory;
  const fs::path set = make_set(directory);
  std::string bytes = read_file(set / "train_000000.bin");
  bytes[1024 + 2 * 1234 + 1] = 0x55;
  write_file(set / "train_000000.bin", bytes);
  const Outcome info = shell(tool + " info " + set.string());
  CHECK(info.code == 1);
  CHECK_THAT(info.output, contains("at position 1234") && contains("has 400 tokens"));
}

/// Starts `strata-data prepare` in the background.
pid_t start_preparing(const fs::path& set, const fs::path& text) {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child != 0) return child;
  if (std::freopen("/dev/null", "w", stdout) == nullptr) ::_exit(126);
  if (std::freopen("/dev/null", "w", stderr) == nullptr) ::_exit(126);
  ::execl(tool.c_str(), "strata-data", "prepare", "--vocab-size", "500", "--out", set.c_str(),
          text.c_str(), static_cast<char*>(nullptr));
  ::_exit(127);
}

int wait_for(pid_t child) {
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return status;
}

TEST_CASE("a run killed at any moment leaves the old data set or the new one, whole") {
  const TemporaryDirectory directory;
  const fs::path set = make_set(directory);
  const auto old_facts = strata::data::inspect(set);
  write_file(directory / "text", text_of(4'000'000));
  std::mt19937_64 random(1);
  int killed = 0;
  for (int round = 0; round < 12; ++round) {
    const pid_t child = start_preparing(set, directory / "text");
    ::usleep(static_cast<useconds_t>(random() % 400'000));
    ::kill(child, SIGKILL);
    killed += WIFSIGNALED(wait_for(child));
    const auto facts = strata::data::inspect(set);
    CHECK((facts == old_facts || facts.vocab_size == 500));
  }
  CHECK(killed > 0);
  CHECK(wait_for(start_preparing(set, directory / "text")) == 0);
  CHECK(strata::data::inspect(set).vocab_size == 500);
  CHECK_FALSE(fs::exists(directory / "set.tmp"));
}

TEST_CASE("a run stopped by Ctrl-C cleans up and leaves nothing") {
  const TemporaryDirectory directory;
  write_file(directory / "text", text_of(12'000'000));
  int code = 0;
  for (int attempt = 0; code == 0 && attempt < 20; ++attempt) {
    const pid_t child = start_preparing(directory / "other", directory / "text");
    for (int wait = 0; wait < 20'000 && !fs::exists(directory / "other.tmp"); ++wait)
      ::usleep(5'000);
    REQUIRE(::kill(child, SIGINT) == 0);
    const int status = wait_for(child);
    REQUIRE(WIFEXITED(status));
    code = WEXITSTATUS(status);
    if (code == 0) fs::remove_all(directory / "other");  // it was done before the signal: again
  }
  CHECK(code == 130);
  CHECK_FALSE(fs::exists(directory / "other"));
  CHECK_FALSE(fs::exists(directory / "other.tmp"));
}

}  // namespace
