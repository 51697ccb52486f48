// strata-tales as its users meet it.
#include <sys/wait.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "common/io/files.h"
#include "tests/catch.h"
#include "tests/temporary_directory.h"

namespace {

using strata::io::read_file;
using strata::io::write_file;
using strata::tests::contains;
using strata::tests::TemporaryDirectory;

struct Run {
  int code;
  std::string out;
  std::string error;
};

/// Runs strata-tales with arguments for the shell.
Run run(const std::string& arguments) {
  const TemporaryDirectory directory;
  const std::string out = directory / "out", error = directory / "error";
  const int status =
      std::system((STRATA_BIN "/strata-tales " + arguments + " >" + out + " 2>" + error).c_str());
  return {WEXITSTATUS(status), read_file(out), read_file(error)};
}

nlohmann::json json(const std::string& text) { return nlohmann::json::parse(text); }

TEST_CASE("write, then measure: the text has the bits that its facts state") {
  const TemporaryDirectory directory;
  const std::string file = directory / "tales.txt";
  CHECK(run("write --stories 300 --seed 5 --out " + file).code == 0);
  const nlohmann::json facts = json(read_file(file + ".json"));
  CHECK(facts["seed"] == 5);
  CHECK(facts["stories"] == 300);
  CHECK(facts["documents"] == 300);
  CHECK(facts["bits_per_byte"].get<double>() ==
        Approx(facts["bits"].get<double>() / facts["bytes"].get<double>()));

  const nlohmann::json measured = json(run("measure " + file).out);
  CHECK(measured["stories"] == 300);
  CHECK(measured["bytes"] == facts["bytes"]);
  CHECK(measured["words"] == facts["words"]);
  const double bits = facts["bits"];
  CHECK(std::abs(measured["bits"].get<double>() - bits) <= 1e-9 * bits);

  const Run checked = run("check --complete <" + file);
  CHECK(json(checked.out)["share_true"] == 1);
  CHECK(json(checked.out)["finished_stories"] == 300);
  CHECK_THAT(checked.error, contains("100.0 % well formed, 100.0 % true"));
}

TEST_CASE("a corpus can be written in parts, and to a size") {
  const TemporaryDirectory directory;
  const std::string all = directory / "all", a = directory / "a", b = directory / "b";
  run("write --stories 20 --out " + all);
  run("write --stories 12 --out " + a);
  run("write --stories 8 --first 12 --out " + b);
  CHECK(read_file(all) == read_file(a) + "<|endoftext|>\n" + read_file(b));

  const std::string sized = directory / "sized", facts = directory / "facts";
  CHECK(run("write --bytes 5000 --out " + sized + " --facts " + facts).code == 0);
  CHECK(json(read_file(facts))["bytes"] >= 5000);
  CHECK(json(read_file(facts))["bytes"] < 7000);
  CHECK(read_file(all).find(read_file(sized)) == 0);
}

TEST_CASE("check shows the first fault of a text") {
  const TemporaryDirectory directory;
  const std::string file = directory / "text";
  write_file(file,
             "Mia was a brave fox who lived by the river. Tom had a hat. Tom had a red hat. \xff!");
  const Run result = run("check " + file);
  CHECK(result.code == 0);
  CHECK(json(result.out)["sentences"] == 4);
  CHECK(json(result.out)["first_malformed"]["sentence"] == "Tom had a hat.");
  CHECK(json(result.out)["first_untrue"]["sentence"] == "Tom had a red hat.");
  CHECK_THAT(result.error, contains("4 sentences: 50.0 % well formed, 25.0 % true"));
}

TEST_CASE("bad flags and files give one sentence and a code") {
  const TemporaryDirectory directory;
  const std::string out = " --out " + (directory / "x").string();
  write_file(directory / "prose", "It was the best of times.\n");
  struct Case {
    std::string arguments;
    int code;
    std::string sentence;
  };
  const std::vector<Case> cases = {
      {"", 2, "subcommand is required"},
      {"tell", 2, "required"},
      {"write" + out, 2, "write wants either --stories N or --bytes N."},
      {"write --stories 3", 2, "--out is required"},
      {"write --stories 0" + out, 2, "--stories wants a whole number from 1 to"},
      {"write --stories 5k" + out, 2, "not '5k'"},
      {"write --stories 99999999999999999999" + out, 2, "not '99999999999999999999'"},
      {"write --stories 2 --seed -1" + out, 2, "--seed wants a whole number from 0 to"},
      {"write --stories 2 --bytes 2" + out, 2, "excludes"},
      {"write --stories 2 --facts " + (directory / "x").string() + out, 2, "the same file"},
      {"write --stories 2 --wrong 1" + out, 2, "--wrong"},
      {"write --stories 2 --out /nowhere/x", 1, "cannot create '/nowhere/x.tmp': No such file"},
      {"check " + (directory / "absent").string(), 1, "absent': No such file or directory"},
      {"measure " + directory.path().string(), 1, "is not a regular file"},
      {"measure " + (directory / "prose").string(), 1,
       "story 1 is not one of the language: 'It was the best of times.' could not have been "
       "written: no sentence of the language has this form"}};
  for (const Case& c : cases) {
    INFO(c.arguments);
    const Run result = run(c.arguments);
    CHECK(result.code == c.code);
    CHECK(result.error.find("strata-tales: error: ") == 0);
    CHECK_THAT(result.error, contains(c.sentence));
    CHECK(std::count(result.error.begin(), result.error.end(), '\n') == 1);
    CHECK(result.out == "");
  }
  CHECK_FALSE(std::filesystem::exists(directory / "x"));
  CHECK(run("--help").code == 0);
  CHECK_THAT(run("write --help").out, contains("--stories"));
}

}  // namespace
