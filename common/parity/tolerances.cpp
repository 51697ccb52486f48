#include "common/parity/tolerances.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "common/io/files.h"

namespace strata::parity {

// The error of an element of logits or of a gradient is |difference| / (|reference| + r), where r is
// the root mean square of the reference tensor: relative for large elements, and against the
// tensor's own scale for small ones, whose rounding comes from the larger terms that made them.
//
// Two measurements stand behind the numbers. PyTorch's fp32 is at most 5e-6 from its float64 on the
// models of tests/fixtures/gpt2, whose files state the figures. And stage 01 built with -ffast-math
// (other orders of summation, another square root), in lock-step with itself built strictly
// (L4,C128, 1024 tokens a step), is at most 6.3e-6 off in gradients, 2e-6 in logits, 3e-8 in the
// norm. The distance grows with the length of the sums, so a factor of about ten is left.
const std::vector<Tolerance>& default_tolerances() {
  static const std::vector<Tolerance> tolerances{
      {"tokens", 0, "exact: both stages must have trained on the same tokens"},
      {"before", 0,
       "exact: in lock-step the second stage starts from the first one's bits (--replay)"},
      {"logits", 2e-5, "rounding through all blocks; 2e-6 measured"},
      {"loss", 3e-6,
       "relative; a row's is the logarithm of a sum of V terms (below 2e-6 for V = 50257), and "
       "the errors of a mean over B*T rows cancel; 3e-9 measured for V = 256"},
      {"losses", 2e-2,
       "relative, of runs that go freely: correct runs drift apart, because AdamW turns the "
       "rounding noise of gradients that are zero in exact arithmetic into updates of full "
       "size; 1e-8 after 60 steps, and growing with their number"},
      {"norm", 2e-6,
       "relative; rounding of the gradients, which cancels in the sum; 3e-8 measured"},
      {"norm.own", 2e-6,
       "relative; the norm that a trace states against that of its gradients, summed in double"},
      {"grad.wte", 5e-5,
       "sums over B*T rows, to which the classifier and the embedding add up in different orders"},
      {"grad.wpe", 5e-5, "sums over B rows of a gradient that came through all blocks"},
      {"grad.ln.weight", 5e-5, "sums over B*T rows of products that may cancel"},
      {"grad.ln.bias", 5e-5, "sums over B*T rows"},
      {"grad.linear.weight", 1e-4,
       "sums over B*T rows of products that may cancel; the queries' and keys' part of c_attn "
       "is the difference of larger terms (softmax) and the worst of all: 6.3e-6 measured"},
      {"grad.linear.bias", 5e-5, "sums over B*T rows"},
      {"grad.key_bias", 1e-6,
       "zero in exact arithmetic, because a bias of the keys adds the same to all scores of a "
       "query and softmax ignores that: what either trace has is rounding, and is held against "
       "the norm of the gradient of the whole c_attn.bias; 2e-9 measured"},
      {"adamw.m", 6,
       "in units of 2^-24 of the terms that were added: the roundings of scale, betas, products "
       "and sum; 2.3 measured"},
      {"adamw.v", 8,
       "in units of 2^-24 of the terms that were added: as for m, and the square doubles them; "
       "2.2 measured"},
      {"adamw.param", 4,
       "in units of 2^-24 of the new weight and of eight times the terms of the update: the "
       "weight is rounded once or twice, the update in each of its operations; 1 measured, 2.1 "
       "with the square root of -ffast-math"},
  };
  return tolerances;
}

Tolerances::Tolerances() {
  for (const Tolerance& tolerance : default_tolerances())
    values_.emplace(tolerance.kind, tolerance.value);
}

Tolerances::Tolerances(const std::filesystem::path& path) : Tolerances() {
  const auto fail = [&](const std::string& what) {
    throw std::runtime_error("the tolerances in '" + path.string() + "' " + what);
  };
  const nlohmann::json json = nlohmann::json::parse(io::read_file(path), nullptr, false);
  if (!json.is_object()) fail("are not a JSON object of kinds and numbers");
  for (const auto& [kind, value] : json.items()) {
    const auto found = values_.find(kind);
    if (found == values_.end())
      fail("name the kind '" + kind + "', which does not exist (strata-parity --kinds lists them)");
    if (!value.is_number() || !std::isfinite(value.get<double>()) || value.get<double>() < 0)
      fail("give the kind '" + kind + "' something other than a number that is not negative");
    found->second = value.get<double>();
  }
}

double Tolerances::operator[](std::string_view kind) const {
  const auto found = values_.find(kind);
  if (found == values_.end()) throw std::logic_error("no tolerance for " + std::string(kind));
  return found->second;
}

std::string_view gradient_kind(std::string_view parameter) {
  const bool weight = parameter.ends_with(".weight");
  if (parameter == "wte.weight") return "grad.wte";
  if (parameter == "wpe.weight") return "grad.wpe";
  if (parameter.find("ln_") != std::string_view::npos)
    return weight ? "grad.ln.weight" : "grad.ln.bias";
  return weight ? "grad.linear.weight" : "grad.linear.bias";
}

}  // namespace strata::parity
