#include <sys/wait.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <nlohmann/json.hpp>

#include "common/io/files.h"
#include "common/parity/compare.h"
#include "common/parity/report.h"
#include "tests/catch.h"
#include "tests/parity/synthetic_trace.h"
#include "tests/temporary_directory.h"

namespace {

using namespace strata::parity;
using strata::io::read_file;
using strata::io::write_file;
using strata::tests::Behaviour;
using strata::tests::contains;
using strata::tests::SyntheticTrace;
using strata::tests::TemporaryDirectory;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

/// A stage that differs by what fp32 rounding does.
const Behaviour rounding{.noise = 1e-7};

/// A synthetic trace as a file.
class Written {
 public:
  explicit Written(const SyntheticTrace& trace) : trace_((trace.write(path()), path())) {}
  operator const Trace&() const { return trace_; }

 private:
  [[nodiscard]] std::filesystem::path path() const { return directory_ / "trace"; }
  TemporaryDirectory directory_;
  Trace trace_;
};

Comparison compared(const SyntheticTrace& a, const SyntheticTrace& b,
                    const Tolerances& tolerances = {}) {
  return compare(Written(a), Written(b), tolerances);
}

/// The names of the rows that failed, and the problems, in one text for tests to search.
std::string failures(const Trace& a, const Trace& b) {
  const Comparison comparison = compare(a, b, Tolerances());
  std::string text;
  for (const Row& row : comparison.rows)
    if (!row.difference.passed()) text += row.sides + " " + row.name + "\n";
  for (const std::string& problem : comparison.problems) text += problem + "\n";
  CHECK(comparison.passed() == text.empty());
  return text;
}

std::string failures(const SyntheticTrace& a, const SyntheticTrace& b) {
  return failures(Written(a), Written(b));
}
std::string failures(const SyntheticTrace& b) { return failures(SyntheticTrace(), b); }

TEST_CASE("a trace agrees with itself") { CHECK(failures(SyntheticTrace()) == ""); }

TEST_CASE("a stage that differs by rounding agrees") {
  CHECK(failures(SyntheticTrace(rounding)) == "");
  CHECK(failures(SyntheticTrace(rounding), SyntheticTrace()) == "");
}

TEST_CASE("NaN and infinity anywhere in either trace fail") {
  const SyntheticTrace trace;
  const Written good(trace);
  for (const auto& [name, tensor] : trace.tensors) {
    if (name.ends_with("tokens")) continue;
    INFO(name);
    for (const double bad : {nan, infinity}) {
      SyntheticTrace changed = trace;
      changed[name].values.back() = bad;
      const Written mutant(changed);
      CHECK_FALSE(compare(good, mutant, {}).passed());
      CHECK_FALSE(compare(mutant, good, {}).passed());
      CHECK_FALSE(compare(mutant, mutant, {}).passed());
    }
  }
}

TEST_CASE("a wrong number anywhere fails") {
  const SyntheticTrace trace;
  const Written good(trace);
  for (const auto& [name, tensor] : trace.tensors) {
    SyntheticTrace mutant = trace;
    mutant[name].values[tensor.values.size() / 2] += name.ends_with("tokens") ? 1
                                                     : name == "losses"       ? 0.1
                                                                              : 0.01;
    INFO(name);
    CHECK_FALSE(compare(good, Written(mutant), {}).passed());
  }
}

TEST_CASE("a tensor that either trace misses fails, and so does one that both miss") {
  const SyntheticTrace trace;
  const Written good(trace);
  for (const auto& [name, tensor] : trace.tensors) {
    SyntheticTrace changed = trace;
    changed.tensors.erase(name);
    const Written mutant(changed);
    INFO(name);
    CHECK_THAT(failures(good, mutant), contains(name + " is missing in B"));
    CHECK_THAT(failures(mutant, good), contains(name + " is missing in A"));
    CHECK_THAT(failures(mutant, mutant), contains(name + " is missing in both"));
  }
}

TEST_CASE("zeros in place of a gradient fail") {
  SyntheticTrace mutant;
  for (double& x : mutant["step.0.grad.h.0.mlp.c_fc.weight"].values) x = 0;
  CHECK_THAT(failures(mutant), contains("A:B grad.h.0.mlp.c_fc.weight"));
  CHECK_THAT(failures(mutant, mutant), contains("all zero in A"));
}

TEST_CASE("a shifted row fails") {
  SyntheticTrace mutant;
  auto& values = mutant["step.3.grad.wte.weight"].values;
  std::rotate(values.begin() + 4, values.begin() + 5, values.begin() + 8);
  CHECK_THAT(failures(mutant), contains("A:B grad.wte.weight"));
}

TEST_CASE("two swapped tensors fail") {
  SyntheticTrace gradients;
  std::swap(gradients["step.0.grad.h.0.ln_1.bias"], gradients["step.0.grad.h.0.ln_2.bias"]);
  CHECK_THAT(failures(gradients), contains("A:B grad.h.0.ln_1.bias"));
  SyntheticTrace states;
  std::swap(states["step.3.after.m.h.0.ln_1.bias"], states["step.3.after.m.h.0.ln_2.bias"]);
  CHECK_THAT(failures(states), contains("B after.m.h.0.ln_1.bias"));
}

TEST_CASE("a bias gradient left at zero fails") {
  SyntheticTrace mutant;
  for (double& x : mutant["step.0.grad.h.0.attn.c_proj.bias"].values) x = 0;
  CHECK_THAT(failures(mutant), contains("A:B grad.h.0.attn.c_proj.bias"));
}

TEST_CASE("a gradient that ignores accumulation fails") {
  CHECK_THAT(failures(SyntheticTrace({.gradient_factor = 2})),
             contains("A:B grad.wte.weight") && contains("A:B norm"));
}

TEST_CASE("AdamW with the wrong number of the step fails, in either trace") {
  // Step 0 would divide by zero, step 3 is a matter of the bias correction only.
  const SyntheticTrace mutant({.stale_steps = 1});
  CHECK_THAT(failures(mutant), contains("B after.param.wte.weight"));
  CHECK_THAT(failures(mutant, SyntheticTrace()), contains("A after.param.wte.weight"));
}

TEST_CASE("a step whose update did not happen fails, unless outliers may be skipped") {
  SyntheticTrace mutant;
  for (auto& [name, tensor] : mutant.tensors)
    if (name.starts_with("step.3.after."))
      tensor = mutant["step.3.before." + name.substr(std::string("step.3.after.").size())];
  CHECK_THAT(failures(mutant), contains("B after.param.wte.weight") && contains("B after.m.wte"));
  mutant.metadata["setting.skip-norm-z"] = "3";
  CHECK(failures(mutant) == "");
  // An update of some tensors only is no skipped step.
  mutant["step.3.after.m.wte.weight"].values[0] += 0.01;
  CHECK_THAT(failures(mutant), contains("B after.param.wpe.weight"));
}

TEST_CASE("decay where it should not be, and none where it should be, fail") {
  const std::string on_biases = failures(SyntheticTrace({.decay_biases = true}));
  CHECK_THAT(on_biases, contains("B after.param.h.0.ln_1.bias") && contains("c_attn.bias"));
  CHECK(on_biases.find("wte.weight") == std::string::npos);
  const std::string nowhere = failures(SyntheticTrace({.decay_matrices = false}));
  CHECK_THAT(nowhere, contains("B after.param.wte.weight"));
  CHECK(nowhere.find("bias") == std::string::npos);
}

TEST_CASE("clipping left out fails") {
  CHECK_THAT(failures(SyntheticTrace({.clip = false})), contains("B after.m.wte.weight"));
}

TEST_CASE("the key bias may have any rounding noise, and nothing more") {
  const std::string bias = "step.0.grad.h.0.attn.c_attn.bias";
  SyntheticTrace mutant;
  mutant[bias].values[5] = 1e-5;
  CHECK_THAT(failures(mutant), contains("A:B grad.h.0.attn.c_attn.bias [key]"));
  CHECK_THAT(failures(mutant, SyntheticTrace()), contains("[key]"));
  CHECK_THAT(failures(mutant, mutant), contains("[key]"));
}

TEST_CASE("traces that start from different states are told to be replayed") {
  SyntheticTrace mutant;
  mutant["step.3.before.v.wte.weight"].values[0] *= 1.000001;
  CHECK_THAT(failures(mutant), contains("step 3 does not start from the same state"));
}

TEST_CASE("different shapes, steps and settings fail") {
  SyntheticTrace shape;
  shape["step.0.logits"].shape = {2, 2, 7, 3};
  CHECK_THAT(failures(shape), contains("step.0.logits has the shape [2, 2, 3, 7] in A and"));
  SyntheticTrace step;
  std::erase_if(step.tensors, [](const auto& entry) { return entry.first.starts_with("step.3."); });
  CHECK_THAT(failures(step), contains("step 3 is missing in B"));
  SyntheticTrace setting;
  setting.metadata["setting.beta2"] = "0.999";
  CHECK_THAT(failures(setting), contains("the setting beta2 is 0.95 in A and 0.999 in B"));
  SyntheticTrace same_setting;
  same_setting.metadata["setting.lr"] = "1e-2";
  CHECK(failures(same_setting) == "");
  SyntheticTrace extra;
  extra.tensors["step.0.after.m.h.1.ln_1.bias"] = extra["step.0.after.m.h.0.ln_1.bias"];
  CHECK_THAT(failures(extra), contains("step.0.after.m.h.1.ln_1.bias is missing in A") &&
                                  contains("step.0.grad.h.1.ln_1.bias is missing in both"));
}

TEST_CASE("traces that hold nothing fail") {
  SyntheticTrace empty;
  empty.tensors.clear();
  CHECK_THAT(failures(empty, empty),
             contains("neither trace holds a step") && contains("nothing was compared"));
  SyntheticTrace losses_only;
  std::erase_if(losses_only.tensors, [](const auto& entry) { return entry.first != "losses"; });
  CHECK_THAT(failures(losses_only, losses_only), contains("neither trace holds a step"));
}

TEST_CASE("a replayed trace need not have the losses of a run, but must have those of its steps") {
  SyntheticTrace replayed;
  replayed.metadata["replayed"] = "yes";
  replayed["losses"] = {{2}, {3, 2.7}};
  CHECK(failures(replayed) == "");
  replayed["step.3.loss"].values[0] += 1e-3;
  CHECK_THAT(failures(replayed), contains("A:B loss"));
}

TEST_CASE("a file that is no trace, or misses a setting, is refused by name") {
  const TemporaryDirectory directory;
  SyntheticTrace foreign;
  foreign.tensors["weight"] = {{1}, {1}};
  foreign.write(directory / "foreign");
  CHECK_THROWS_WITH(Trace(directory / "foreign"), contains("foreign' has the tensor 'weight'"));
  SyntheticTrace poor;
  poor.metadata.erase("setting.beta1");
  CHECK_THROWS_WITH(compared(poor, poor), contains("states no setting beta1"));
  SyntheticTrace odd;
  odd.metadata["setting.schedule"] = "sideways";
  CHECK_THROWS_WITH(compared(odd, odd), contains("states the schedule 'sideways'"));
}

TEST_CASE("the comparison measures what it says it measures") {
  Measurement measurement(0.5);
  for (const auto& [value, reference] : {std::pair(1.0, 1.0), {2.0, 4.0}, {3.0, 3.5}})
    measurement.add(value, reference, 2);
  const Difference d = measurement.result();
  CHECK(d.elements == 3);
  CHECK(d.max_abs == 2);
  CHECK(d.max_rel == 0.5);
  CHECK(d.error == 1);
  CHECK(d.first_bad == std::uint64_t{1});
  CHECK(d.ulps[0] == 1);
  CHECK(d.ulps[6] == 2);
  CHECK(d.cosine == Approx((1 + 8 + 10.5) / std::sqrt(14 * 29.25)));
  CHECK_FALSE(Measurement(1).result().passed());
  CHECK(ulp_distance(1, std::nextafter(1.0F, 2.0F)) == 1);
  CHECK(ulp_distance(0.0, -0.0) == 0);
  CHECK(ulp_distance(0x1p-149, -0x1p-149) == 2);
  CHECK(ulp_distance(nan, 1) == std::numeric_limits<std::uint64_t>::max());
}

TEST_CASE("the schedules are warm-up, then a descent that reaches the final share") {
  CHECK(schedule_share("constant", 0, 100, 10, 0.1) == Approx(0.1));
  CHECK(schedule_share("constant", 99, 100, 10, 0.1) == 1);
  CHECK(schedule_share("cosine", 10, 100, 10, 0.1) == 1);
  CHECK(schedule_share("cosine", 99, 100, 10, 0.1) == Approx(0.1));
  CHECK(schedule_share("linear", 50, 101, 0, 0) == Approx(0.5));
  CHECK(schedule_share("wsd", 80, 100, 10, 0) == 1);
  CHECK(schedule_share("wsd", 99, 100, 10, 0) == Approx(0.0).margin(1e-12));
  CHECK_THROWS_WITH(schedule_share("cosin", 20, 100, 10, 0), contains("cosin"));
}

TEST_CASE("tolerances can be replaced from a file, and a wrong file is refused in words") {
  const TemporaryDirectory directory;
  const auto file = directory / "tolerances.json";
  write_file(file, R"({"grad.wte": 0.5, "logits": 0})");
  const Tolerances tolerances(file);
  CHECK(tolerances["grad.wte"] == 0.5);
  CHECK(tolerances["grad.wpe"] == Tolerances()["grad.wpe"]);
  CHECK_FALSE(compared(SyntheticTrace(), SyntheticTrace(rounding), tolerances).passed());
  const std::pair<const char*, const char*> wrong[] = {
      {"[]", "are not a JSON object"},
      {"{", "are not a JSON object"},
      {R"({"grad.wtf": 1})", "name the kind 'grad.wtf', which does not exist"},
      {R"({"grad.wte": "1"})", "something other than a number"},
      {R"({"grad.wte": -1})", "something other than a number"},
      {R"({"grad.wte": null})", "something other than a number"}};
  for (const auto& [text, sentence] : wrong) {
    write_file(file, text);
    CHECK_THROWS_WITH(Tolerances(file), contains("tolerances.json'") && contains(sentence));
  }
}

TEST_CASE("the table names what fails and where, and the JSON holds every tensor") {
  SyntheticTrace mutant;
  mutant["step.0.logits"].values[3 * 7 + 2] = nan;
  const Comparison comparison = compared(SyntheticTrace(), mutant);
  CHECK_THAT(table(comparison, false), contains("logits") && contains("[0, 1, 0, 2]") &&
                                           contains("FAIL") && contains("1 beyond"));
  CHECK_THAT(table(comparison, true), contains("grad.h.0.mlp.c_fc.bias"));
  const auto json = nlohmann::json::parse(to_json(comparison));
  CHECK(json.at("passed") == false);
  CHECK(json.at("rows").size() == comparison.rows.size());
  CHECK(json.at("rows").at(0).at("kind") == "losses");
}

/// Runs the tool and returns its exit status and what it printed.
std::pair<int, std::string> tool(const std::string& arguments) {
  std::FILE* pipe = ::popen((STRATA_BIN "/strata-parity " + arguments + " 2>&1").c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::string output;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) output += static_cast<char>(c);
  return {WEXITSTATUS(::pclose(pipe)), output};
}

TEST_CASE(
    "strata-parity returns 0 for agreement, 1 for disagreement and bad files, 2 for bad usage") {
  const TemporaryDirectory directory;
  SyntheticTrace().write(directory / "a");
  SyntheticTrace(rounding).write(directory / "b");
  SyntheticTrace({.clip = false}).write(directory / "c");
  const std::string a = (directory / "a").string() + " ";
  const auto [agreed, table_text] = tool(a + (directory / "b").string());
  CHECK(agreed == 0);
  CHECK_THAT(table_text, contains("PASS"));
  const std::string json = (directory / "json").string();
  CHECK(tool(a + (directory / "c").string() + " --json " + json).first == 1);
  CHECK(nlohmann::json::parse(read_file(json)).at("passed") == false);
  const auto [missing, sentence] = tool(a + "/nowhere");
  CHECK(missing == 1);
  CHECK_THAT(sentence, contains("strata-parity: error: cannot open '/nowhere'"));
  CHECK(tool(a).first == 2);
  CHECK(tool("--no-such-flag").first == 2);
  CHECK_THAT(tool("--kinds").second, contains("grad.key_bias"));
}

}  // namespace
