// strata-report as a tool, and the verdicts on samples of tales.
#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "common/io/files.h"
#include "common/train/verdict.h"
#include "data/tales/corpus.h"
#include "tests/catch.h"
#include "tests/temporary_directory.h"
#include "tests/train/lines.h"
#include "tests/train/xml.h"

namespace fs = std::filesystem;
using strata::io::read_file;
using strata::io::write_file;
using strata::tests::contains;
using strata::tests::end_line;
using strata::tests::run_line;
using strata::tests::TemporaryDirectory;
using strata::tests::train_line;
using strata::tests::xml_error;
using strata::train::judge;

namespace {

struct Outcome {
  int code = -1;
  std::string out, err;
};

Outcome report(const TemporaryDirectory& work, const std::string& arguments) {
  const std::string command = fmt::format("{}/strata-report {} >'{}' 2>'{}'", STRATA_BIN, arguments,
                                          (work / "stdout").string(), (work / "stderr").string());
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_file(work / "stdout"),
          read_file(work / "stderr")};
}

std::string quoted(const fs::path& path) { return fmt::format("'{}'", path.string()); }

/// The first story of the default corpus.
std::string story(const TemporaryDirectory& work) {
  strata::tales::write_corpus(strata::tales::default_language(), {.seed = 3, .stories = 1},
                              work / "story", work / "facts");
  return read_file(work / "story");
}

}  // namespace

TEST_CASE("strata-report writes the page of a run and names it") {
  const TemporaryDirectory work;
  write_file(work / "metrics.jsonl", run_line() + train_line(0, "3") + end_line(1));
  const Outcome plain = report(work, quoted(work.path()));
  CHECK(plain.code == 0);
  CHECK(plain.out == "report   " + (work / "report.html").string() + "\n");
  CHECK(plain.err.empty());
  const std::string page = read_file(work / "report.html");
  CHECK_FALSE(xml_error(page).has_value());
  CHECK_THAT(page, contains(work.path().filename().string()));

  CHECK(report(work, quoted(work.path()) + " --out " + quoted(work / "other.html")).code == 0);
  CHECK(read_file(work / "other.html") == page);
}

TEST_CASE("strata-report says that a killed run's last line was left out") {
  const TemporaryDirectory work;
  write_file(work / "metrics.jsonl", run_line() + train_line(0, "3") + "{\"kind\":\"tra");
  const Outcome outcome = report(work, quoted(work.path()));
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.err, contains("the last line of metrics.jsonl is cut off"));
}

TEST_CASE("strata-report refuses what is no run in one sentence, and leaves an old page alone") {
  const TemporaryDirectory work;
  write_file(work / "report.html", "old");
  write_file(work / "file", "x");
  fs::create_directory(work / "empty");
  fs::create_directory(work / "odd");
  fs::create_directory(work / "odd" / "metrics.jsonl");
  const auto refused = [&](const fs::path& where, const std::string& sentence) {
    INFO(where << ": " << sentence);
    const Outcome outcome = report(work, quoted(where));
    CHECK(outcome.code == 1);
    CHECK(outcome.out.empty());
    CHECK_THAT(outcome.err, contains("strata-report: error: ") && contains(sentence));
    CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1);
    CHECK(read_file(work / "report.html") == "old");
  };
  refused(work / "nowhere", "there is no run directory");
  refused(work / "file", "is not a directory");
  refused(work / "empty", "has no metrics.jsonl");
  refused(work / "odd", "is not a regular file");
  write_file(work / "metrics.jsonl", "");
  refused(work.path(), "is empty");
  write_file(work / "metrics.jsonl", "a,b\n1,2\n");
  refused(work.path(), "no line that a Strata run writes");
  write_file(work / "metrics.jsonl", run_line());
  const Outcome unwritable =
      report(work, quoted(work.path()) + " --out " + quoted(work / "no" / "x"));
  CHECK(unwritable.code == 1);
  CHECK_THAT(unwritable.err, contains("cannot create"));
}

TEST_CASE("strata-report explains a wrong command line") {
  const TemporaryDirectory work;
  CHECK(report(work, "").code == 2);
  CHECK(report(work, "--colour red " + quoted(work.path())).code == 2);
  CHECK(report(work, "--help").code == 0);
}

TEST_CASE("the parser's verdict tells a true story from a garbled one") {
  const TemporaryDirectory work;
  const std::string good = story(work);
  const auto praised = judge("tales", good);
  REQUIRE(praised.has_value());
  CHECK(praised->sentences > 3);
  CHECK(praised->well_formed == praised->sentences);
  CHECK(praised->right == praised->judged);
  CHECK(praised->first_malformed.empty());

  const std::size_t at = good.find(". ") + 2;
  const auto garbled =
      judge("tales", fmt::format("{}Wug the \xff of. {}", good.substr(0, at), good.substr(at)));
  REQUIRE(garbled.has_value());
  CHECK(garbled->sentences == praised->sentences + 1);
  CHECK(garbled->well_formed == praised->well_formed);
  CHECK_THAT(garbled->first_malformed, contains("Wug the"));
}

TEST_CASE("only tales has a parser, and any bytes may be given to it") {
  CHECK_FALSE(judge("shakespeare", "The end.").has_value());
  REQUIRE(judge("tales", "").has_value());
  CHECK(judge("tales", "")->sentences == 0);
  CHECK(judge("tales", std::string("\0\xff<", 3)).has_value());
}

TEST_CASE("the page carries the verdict on each sample") {
  const TemporaryDirectory work;
  std::string escaped;
  for (const char c : story(work)) {
    if (c == '\n') {
      escaped += "\\n";
    } else {
      if (c == '"') escaped += '\\';
      escaped += c;
    }
  }
  write_file(work / "metrics.jsonl", run_line() +
                                         strata::tests::sample_line(1, "Nobody wugs the. A. ") +
                                         strata::tests::sample_line(2, escaped));
  REQUIRE(report(work, quoted(work.path())).code == 0);
  const std::string page = read_file(work / "report.html");
  CHECK_THAT(page, contains("<th scope=\"col\" class=\"number\">well formed</th>"));
  CHECK_THAT(page, contains("<td class=\"number\">100 %</td><td class=\"number\">100 %</td>"));
  CHECK_THAT(page, contains("First sentence outside the language: <q>"));
}
