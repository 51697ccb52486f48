#include "common/train/page.h"

#include <algorithm>
#include <string>
#include <vector>

#include "common/train/figure.h"
#include "common/train/metrics.h"
#include "data/tales/corpus.h"
#include "tests/catch.h"
#include "tests/train/lines.h"
#include "tests/train/xml.h"

using strata::tests::contains;
using strata::tests::end_line;
using strata::tests::run_line;
using strata::tests::sample_line;
using strata::tests::train_line;
using strata::tests::val_line;
using strata::tests::xml_error;
using namespace strata::train;

namespace {

std::string page_of(const std::string& lines) {
  return make_page(parse_metrics(lines, "'metrics.jsonl'"), "a run");
}

/// The first fault of a page that is to be well formed, self-contained and small; else "".
std::string fault_of(const std::string& page) {
  if (const auto error = xml_error(page)) return *error;
  for (const char* outside :
       {"http:", "https:", "//", "src=", "href=", "url(", "<script", "@import"})
    if (page.find(outside) != std::string::npos) return std::string("the page has ") + outside;
  for (const char* bad : {"nan", "inf\"", "-inf", ">inf<"})
    if (page.find(bad) != std::string::npos) return std::string("the page has ") + bad;
  if (page.size() > 2'000'000) return "the page is over 2 MB";
  return {};
}

std::string ordinary_run() {
  return run_line() + val_line(0, "7.5") + train_line(0, "7") + train_line(1, "5") +
         train_line(2, "3") + train_line(3, "2.25") + val_line(4, "2.125") +
         sample_line(4, "Once.") + end_line(4);
}

std::string long_run(int steps) {
  std::string lines = run_line(0, steps);
  for (int step = 0; step < steps; ++step) {
    lines += train_line(step, fmt::format("{:.4f}", 1.25 + 6.0 / (1 + 0.01 * step)));
    if (step % 100 == 0) lines += val_line(step, "2") + sample_line(step, std::string(9000, 'x'));
  }
  return lines;
}

}  // namespace

TEST_CASE("the check of pages finds every kind of fault") {
  const std::string good = page_of(ordinary_run());
  REQUIRE(fault_of(good).empty());
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string page = good;
    const std::size_t at = page.find(from);
    REQUIRE(at != std::string::npos);
    return page.replace(at, from.size(), to);
  };
  CHECK_THAT(fault_of(with("</h1>", "")), contains("closes nothing"));
  CHECK_THAT(fault_of(with("</h1>", " & </h1>")), contains("a bare &"));
  CHECK_THAT(fault_of(with("</h1>", " < </h1>")), contains("no name"));
  CHECK_THAT(fault_of(with("</h1>", "\x01</h1>")), contains("control character"));
  CHECK_THAT(fault_of(with("</h1>", "\xff</h1>")), contains("not UTF-8"));
  CHECK_THAT(fault_of(with("id=\"loss\"", "id=\"samples\"")), contains("an id twice"));
  CHECK_THAT(fault_of(with("</html>\n", "")), contains("never closed"));
  CHECK_THAT(fault_of(with("</h1>", "<img src=\"x\"/></h1>")), contains("src="));
  CHECK_THAT(fault_of(with("M", "Mnan")), contains("nan"));
}

TEST_CASE("the page shows the numbers of the run") {
  const std::string page = page_of(ordinary_run());
  for (const char* part : {"Stage 01 on tales", ">2.1250<", ">0.6250<", ">400<", ">2.0 s<", ">200<",
                           "entropy of the source, 1.5000", "167,552", "parameters", "1.00 MiB",
                           "75.0 %", "2026-11-30 14:25 UTC", "a&lt;b&gt;&amp;&quot;c&quot;", "--lr",
                           "clipped above 1", "read each story from its beginning", "4 of 4"})
    CHECK_THAT(page, contains(part));
  CHECK(page == page_of(ordinary_run()));  // the same bytes again
}

TEST_CASE("every figure draws what it says") {
  const Metrics metrics = parse_metrics(ordinary_run(), "");
  const Figure loss = loss_figure(metrics);
  REQUIRE(loss.curves.size() == 2);  // four steps need no smoothing, so one training curve
  CHECK(loss.curves[0].points.size() == 4);
  CHECK(loss.curves[0].points[3].y == 2.25);
  CHECK(loss.curves[1].points[1].x == 4);
  CHECK(loss.levels.at(0).y == 1.5);
  CHECK(loss.tokens_per_step == 100);
  CHECK(loss.last_x == 4);
  const Figure excess = excess_figure(metrics);
  REQUIRE(excess.curves.size() == 2);
  CHECK(excess.log_y);
  CHECK(excess.curves[0].points[3].y == 1.0);    // 2.25 - 1.25, the training text's entropy
  CHECK(excess.curves[1].points[1].y == 0.625);  // 2.125 - 1.5, the validation text's
}

TEST_CASE("a figure puts its points where they belong") {
  Figure figure;
  figure.curves.push_back({"", Stroke::solid, {{0, 0}, {10, 100}}});
  figure.last_x = 10;
  const std::string svg = render(figure, {372, 266}, "x");
  // 54 to 354 across, 222 up to 22; the axis runs 5 % beyond both values: 100 + 2 * 5 high.
  CHECK_THAT(svg, contains("d=\"M54.0 212.9L354.0 31.1\""));
}

TEST_CASE("runs of every odd shape make a sound page") {
  const std::pair<const char*, std::string> runs[] = {
      {"only a header", run_line()},
      {"no header", train_line(0, "3") + train_line(1, "2")},
      {"one step", run_line() + train_line(0, "3")},
      {"one validation", run_line() + val_line(0, "3")},
      {"only an end", end_line(0)},
      {"one sample", run_line() + sample_line(0, "")},
      {"no finite loss", run_line() + train_line(0, "null") + train_line(1, "null")},
      {"losses beyond reason",
       run_line() + train_line(0, "1e300") + train_line(1, "-1e300") + train_line(2, "0")},
      {"below the entropy", run_line() + train_line(0, "1") + val_line(1, "1.4")},
      {"all steps skipped", run_line() + train_line(0, "3", true) + train_line(1, "3", true)},
      {"a header of nulls",
       R"({"kind":"run","step":0,"steps":null,"model":null,"memory":null,"settings":null,"data":null})"
       "\n" +
           train_line(0, "3")},
      {"hostile numbers",
       R"({"kind":"run","step":0,"steps":1e308,"time":1e308,"tokens_per_step":-1e308,"threads":1e308,)"
       R"("model":{"parameters":1e308,"H":0,"C":-1},"memory":[{"name":"x","bytes":1e308},)"
       R"({"name":"y","bytes":-1},{"name":"z","bytes":1e308}],"data":{"train_tokens":0}})"
       "\n" +
           train_line(0, "3") + train_line(9, "3")},
      {"a step far away", run_line() + train_line(2000000000, "3")},
      {"killed", ordinary_run() + "{\"kind\":\"tr"},
      {"long", long_run(3000)},
  };
  for (const auto& [name, lines] : runs) {
    INFO(name);
    CHECK(fault_of(page_of(lines)) == "");
  }
}

TEST_CASE("the page says in words what is wrong with its file") {
  CHECK_THAT(page_of(run_line() + train_line(0, "3")), contains("1 of 4 steps"));
  CHECK_THAT(page_of(ordinary_run() + "{\"kind\":\"tr"), contains("is cut off"));
  CHECK_THAT(page_of(run_line() + "rubbish\n"),
             contains("One line of metrics.jsonl could not be read"));
  CHECK_THAT(page_of(ordinary_run() + run_line(2)), contains("resumed from a checkpoint"));
  CHECK_THAT(page_of(run_line() + val_line(1, "1.5")), contains("not come to its end"));
  CHECK_THAT(page_of(run_line() + train_line(0, "null") + train_line(1, "2")),
             contains("In 1 step the loss was not a finite number"));
}

TEST_CASE("a hostile sample is text on the page and nothing else") {
  const std::string page =
      page_of(run_line() + sample_line(1, "</pre><script>x()</script>\\u0000\\u202e\xff"));
  CHECK(fault_of(page) == "");
  CHECK_THAT(page, contains("&lt;/pre&gt;&lt;script&gt;x()"));
}

TEST_CASE("of many and long samples the page shows a few, cut") {
  const std::string page = page_of(long_run(5000));
  CHECK_THAT(page, contains("24 of 50 samples"));
  CHECK_THAT(page, contains("The rest, 3000 bytes, is left out here."));
}

TEST_CASE("a million steps make a page of ordinary size") {
  Metrics metrics = parse_metrics(run_line(0, 1000000), "");
  for (int step = 0; step < 1000000; ++step)
    metrics.train.push_back(
        {step, 2 + 1e-3 * (step % 97), 1e-3, 1, 100.0 * (step + 1), 0.1, false});
  metrics.train[654321].loss = 3.5;
  const std::string page = make_page(metrics, "long");
  CHECK(fault_of(page) == "");
  CHECK(page.size() < 500'000);
  const std::vector<Point> raw = loss_figure(metrics).curves.at(0).points;
  CHECK(std::any_of(raw.begin(), raw.end(), [](const Point& p) { return p.y == 3.5; }));
}
