// Hugging Face's transformers opens our checkpoints and computes our logits. Needs a Python with torch
// and transformers, found as python3 or named by STRATA_ORACLE_PYTHON; skipped without one.

#include <cstdlib>

#include "tests/stage01/run_support.h"

namespace {

using namespace strata::tests;

const char* const oracle = R"(
import sys
import torch
from safetensors.torch import load_file, save_file
from transformers import GPT2LMHeadModel

directory, trace, out = sys.argv[1:]
model, info = GPT2LMHeadModel.from_pretrained(directory, output_loading_info=True)
missing = [name for name in info["missing_keys"] if name != "lm_head.weight"]
assert not missing and not info["unexpected_keys"] and not info["mismatched_keys"], info
tokens = load_file(trace)["step.0.tokens"]
with torch.no_grad():
    logits = model.eval()(tokens[0, :, :-1].long()).logits
save_file({"logits": logits.double().contiguous()}, out)
)";

Outcome python(const Arguments& arguments) {
  const char* named = std::getenv("STRATA_ORACLE_PYTHON");
  return Child(Arguments{"/usr/bin/env", "PYTHONWARNINGS=ignore", "HF_HUB_OFFLINE=1",
                         named != nullptr ? named : "python3"} +
               arguments)
      .wait(300);
}

/// The largest difference of the logits of the same tokens.
double worst_difference(const fs::path& theirs, const fs::path& trace) {
  const auto a = strata::io::Safetensors(theirs).read_doubles("logits");
  const auto b = strata::io::Safetensors(trace).read_doubles("step.0.logits");
  REQUIRE(a.size() == b.size());
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!(std::abs(a[i] - b[i]) <= worst)) worst = std::abs(a[i] - b[i]);
  return worst;
}

TEST_CASE("transformers opens our checkpoints, with our logits") {
  if (const Outcome outcome = python({"-c", "import torch, transformers"}); outcome.code != 0) {
    WARN("not tried: no Python with torch and transformers (python3, or STRATA_ORACLE_PYTHON)");
    return;
  }
  const Workshop workshop;
  strata::io::write_file(workshop("oracle.py"), oracle);
  // Awkward sizes, and enough steps that no weight is at its first value.
  trained(workshop.tiny({"--init", "L3,C30,H5,T23,V261", "--steps", "30", "--lr", "1e-2", "--out",
                         workshop("out"), "--checkpoint-every", "15"}));
  const auto trace = [&](const std::string& step) {
    trained(workshop.tiny(
        {"--init", workshop("out") + "/" + step, "--steps", "1", "--trace", workshop(step)}));
    return workshop(step);
  };
  const std::string ours = trace("step_00000030");
  const Outcome outcome =
      python({workshop("oracle.py"), workshop("out") + "/step_00000030", ours, workshop("theirs")});
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  // Two fp32 computations of logits of size about 10.
  CHECK(worst_difference(workshop("theirs"), ours) <= 1e-4);
  // Other weights fail: those of fifteen steps before.
  CHECK_FALSE(worst_difference(workshop("theirs"), trace("step_00000015")) <= 1e-2);
}

}  // namespace
