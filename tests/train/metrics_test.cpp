#include "common/train/metrics.h"

#include <cmath>
#include <string>

#include "common/train/summary.h"
#include "tests/catch.h"
#include "tests/train/lines.h"

using strata::tests::contains;
using strata::tests::end_line;
using strata::tests::run_line;
using strata::tests::sample_line;
using strata::tests::train_line;
using strata::tests::val_line;
using strata::train::Metrics;
using strata::train::parse_metrics;
using strata::train::summarise;
using strata::train::Summary;

namespace {

Metrics parse(const std::string& text) { return parse_metrics(text, "'metrics.jsonl'"); }

}  // namespace

TEST_CASE("a run's lines are read as they are written") {
  const Metrics metrics =
      parse(run_line() + val_line(0, "7.5") + train_line(0, "7.25") + train_line(1, "6", true) +
            sample_line(2, "Mia said \\\"no\\\".") + end_line(2));
  REQUIRE(metrics.runs.size() == 1);
  CHECK(metrics.header().stage == "01");
  CHECK(metrics.header().parameters == 167552);
  CHECK(metrics.header().settings.size() == 3);
  CHECK(metrics.header().memory.at(1).bytes == 3145728);
  REQUIRE(metrics.train.size() == 2);
  CHECK(metrics.train[0].loss == 7.25);
  CHECK(metrics.train[1].skipped);
  CHECK(metrics.train[1].tokens == 200);
  CHECK(metrics.validation.at(0).loss == 7.5);
  CHECK(metrics.samples.at(0).text == "Mia said \"no\".");
  CHECK(metrics.ended);
  CHECK_FALSE(metrics.truncated);
  CHECK(metrics.damaged_lines == 0);
  CHECK(metrics.superseded == 0);
}

TEST_CASE("the headline is what one computes by hand") {
  const Metrics metrics =
      parse(run_line() + val_line(0, "7.5") + train_line(0, "7") + train_line(1, "5", true) +
            train_line(2, "null") + train_line(3, "2.25") + val_line(4, "2.125") + end_line(4));
  const Summary summary = summarise(metrics);
  CHECK(summary.updates == 4);
  CHECK(summary.skipped == 1);
  CHECK(summary.not_finite == 1);
  CHECK(summary.val_loss == 2.125);
  CHECK(summary.val_step == 4);
  CHECK(summary.val_excess == 0.625);  // 2.125 - 1.5
  CHECK(summary.train_loss == 2.25);   // 4 steps are not smoothed
  CHECK(summary.train_excess == 1.0);  // 2.25 - 1.25
  CHECK(summary.tokens == 400);
  CHECK(summary.epochs == 0.4);   // 400 of 1000
  CHECK(summary.seconds == 2.0);  // 4 * 0.5
  CHECK(summary.tokens_per_second == 200);
}

TEST_CASE("a validation that is not finite is not the final one") {
  const Summary summary = summarise(parse(run_line() + val_line(2, "3") + val_line(4, "null")));
  CHECK(summary.val_loss == 3);
  CHECK(summary.val_step == 2);
}

TEST_CASE("an empty run has nothing to sum up") {
  const Summary summary = summarise(parse(run_line()));
  CHECK(summary.updates == 0);
  CHECK(std::isnan(summary.val_loss));
  CHECK(std::isnan(summary.tokens_per_second));
}

TEST_CASE("a resume makes void what came after its checkpoint, and later lines win") {
  const Metrics metrics =
      parse(run_line() + train_line(0, "7") + train_line(1, "6") + val_line(2, "5.5") +
            train_line(2, "5") + train_line(3, "4") + val_line(4, "3.5") + end_line(4) +
            run_line(2, 6) + train_line(2, "4.75") + val_line(2, "5.25"));
  REQUIRE(metrics.train.size() == 3);
  CHECK(metrics.train[1].loss == 6);
  CHECK(metrics.train[2].loss == 4.75);
  REQUIRE(metrics.validation.size() == 1);
  CHECK(metrics.validation[0].loss == 5.25);
  CHECK(metrics.superseded == 4);  // steps 2 and 3, the validations at 2 and 4
  CHECK_FALSE(metrics.ended);
  CHECK(metrics.runs.size() == 2);
  CHECK(metrics.header().steps == 6);
}

TEST_CASE("steps are put in order and the later of two wins, wherever it stands") {
  const Metrics metrics = parse(train_line(2, "2") + train_line(0, "9") + train_line(1, "3") +
                                train_line(0, "8") + train_line(2, "1"));
  REQUIRE(metrics.train.size() == 3);
  CHECK(metrics.train[0].loss == 8);
  CHECK(metrics.train[1].loss == 3);
  CHECK(metrics.train[2].loss == 1);
}

TEST_CASE("a killed run's last line may break off at any byte") {
  const std::string whole = run_line() + train_line(0, "7") + val_line(1, "6");
  const std::string last = train_line(1, "5");
  for (std::size_t size = 1; size + 2 < last.size(); ++size) {
    const Metrics metrics = parse(whole + last.substr(0, size));
    CHECK(metrics.truncated);
    CHECK(metrics.train.size() == 1);
    CHECK(metrics.damaged_lines == 0);
  }
  // Only the line end is missing: the line counts.
  const Metrics metrics = parse(whole + last.substr(0, last.size() - 1));
  CHECK_FALSE(metrics.truncated);
  CHECK(metrics.train.size() == 2);
}

TEST_CASE("a line that a resume wrote behind half a line is still read") {
  const std::string half = train_line(1, "5").substr(0, 31);
  const Metrics metrics =
      parse(run_line() + train_line(0, "7") + half + run_line(1) + train_line(1, "4"));
  CHECK(metrics.runs.size() == 2);
  CHECK(metrics.train.at(1).loss == 4);
  CHECK(metrics.damaged_lines == 1);
  CHECK(metrics.first_damaged == 3);
}

TEST_CASE("damaged lines are counted and passed over") {
  const char* damaged[] = {
      "nonsense",
      "{",
      "[1,2]",
      "42",
      "null",
      "\"train\"",
      R"({"step":3})",
      R"({"kind":7,"step":3})",
      R"({"kind":"train","step":-1,"loss":3})",
      R"({"kind":"train","step":1.5,"loss":3})",
      R"({"kind":"train","step":1e300,"loss":3})",
      R"({"kind":"train","loss":3})",
      R"({"kind":"train","step":1,"loss":"3"})",
      R"({"kind":"val","step":1,"loss":[3]})",
      R"({"kind":"sample","step":1,"text":4})",
      R"({"kind":"run","step":0,"model":3})",
      R"({"kind":"run","step":0,"memory":[4]})",
      R"({"kind":"sample","step":1,"text":"\ud800"})",
  };
  for (const char* line : damaged) {
    INFO(line);
    const Metrics metrics = parse(run_line() + line + "\n" + train_line(0, "7"));
    CHECK(metrics.damaged_lines == 1);
    CHECK(metrics.first_damaged == 2);
    CHECK(metrics.train.size() == 1);
    CHECK(metrics.runs.size() == 1);
  }
  // A kind of a later version is no damage.
  CHECK(parse(run_line() + "{\"kind\":\"weather\"}\n").damaged_lines == 0);
}

TEST_CASE("bytes that are not UTF-8 do not cost a sample its line") {
  const Metrics metrics = parse(run_line() + sample_line(1, "a\xff\xc3(b"));
  CHECK(metrics.samples.at(0).text == "a\xef\xbf\xbd\xef\xbf\xbd(b");
}

TEST_CASE("files that are no run's are refused in a sentence") {
  CHECK_THROWS_WITH(parse(""), contains("'metrics.jsonl' is empty"));
  CHECK_THROWS_WITH(parse("\n\n"), contains("no line that a Strata run writes"));
  CHECK_THROWS_WITH(parse("step 1: loss 3\n"), contains("it has 1 other line"));
  CHECK_THROWS_WITH(parse("{\"loss\":3}\n{\"loss\":2}\n"), contains("it has 2 other lines"));
  CHECK_THROWS_WITH(parse(std::string(4096, '\0')), contains("no line that a Strata run writes"));
}
