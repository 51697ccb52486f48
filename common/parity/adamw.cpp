#include "common/parity/adamw.h"

#include <algorithm>
#include <cmath>

namespace strata::parity {
namespace {

/// The relative rounding error of fp32.
constexpr double unit = 0x1p-24;
/// Smaller numbers are subnormal in fp32, and a program may flush them to zero.
constexpr double smallest_normal = 0x1p-126;

/// An element before and after the update, with the terms whose rounding the results carry.
struct Element {
  double m, v, param;
  double m_terms, v_terms, param_terms;
};

class Recomputation {
 public:
  Recomputation(const UpdateSettings& settings, double norm, bool decay)
      : s_(settings), decay_(decay ? settings.weight_decay : 0) {
    scale_ = s_.clip > 0 && norm > s_.clip ? s_.clip / norm : 1;
    correction1_ = 1 - std::pow(s_.beta1, static_cast<double>(s_.count));
    correction2_ = 1 - std::pow(s_.beta2, static_cast<double>(s_.count));
  }

  [[nodiscard]] Element operator()(double param, double m, double v, double gradient) const {
    const double g = scale_ * gradient;
    Element e{};
    e.m = s_.beta1 * m + (1 - s_.beta1) * g;
    e.v = s_.beta2 * v + (1 - s_.beta2) * g * g;
    // 1 - beta taken in fp32 has the absolute error of beta: 1/2 in the units of the sum.
    e.m_terms = std::abs(s_.beta1 * m) + (1.5 - s_.beta1) * std::abs(g);
    e.v_terms = s_.beta2 * v + (1.5 - s_.beta2) * g * g;
    const double divisor = std::sqrt(e.v / correction2_) + s_.eps;
    e.param = param - s_.lr * (e.m / correction1_ / divisor + decay_ * param);
    // The divisor's relative error is half of v's, which is largest where v is all new gradient.
    const double v_share = (1.5 - s_.beta2) / (1 - s_.beta2);
    const double update = e.m_terms + std::abs(e.m) * v_share / 2;
    e.param_terms = std::abs(e.param) +
                    8 * s_.lr * (update / correction1_ / divisor + decay_ * std::abs(param));
    return e;
  }

 private:
  UpdateSettings s_;
  double decay_;
  double scale_ = 1;
  double correction1_ = 1;
  double correction2_ = 1;
};

constexpr std::uint64_t chunk = 1 << 16;

}  // namespace

UpdateCheck check_update(const Trace& trace, std::uint64_t step, const std::string& parameter,
                         const UpdateSettings& settings, bool decay, const Tolerances& tolerances) {
  const Recomputation recompute(settings, trace.scalar(step_name(step, "norm")), decay);
  Measurement m(tolerances["adamw.m"]);
  Measurement v(tolerances["adamw.v"]);
  Measurement param(tolerances["adamw.param"]);
  const auto name = [&](const char* role) { return step_name(step, role + parameter); };
  const std::uint64_t elements = trace.file().at(name("grad.")).elements;
  for (std::uint64_t first = 0; first < elements; first += chunk) {
    const std::uint64_t count = std::min(chunk, elements - first);
    const auto read = [&](const char* role) {
      return trace.file().read_doubles(name(role), first, count);
    };
    const std::vector<double> gradient = read("grad.");
    const std::vector<double> p0 = read("before.param."), p1 = read("after.param.");
    const std::vector<double> m0 = read("before.m."), m1 = read("after.m.");
    const std::vector<double> v0 = read("before.v."), v1 = read("after.v.");
    for (std::uint64_t i = 0; i < count; ++i) {
      const Element e = recompute(p0[i], m0[i], v0[i], gradient[i]);
      m.add(m1[i], e.m, unit * e.m_terms + smallest_normal);
      v.add(v1[i], e.v, unit * e.v_terms + smallest_normal);
      param.add(p1[i], e.param, unit * e.param_terms + smallest_normal);
    }
  }
  return {m.result(), v.result(), param.result()};
}

bool unchanged(const Trace& trace, std::uint64_t step, const std::vector<std::string>& parameters) {
  for (const std::string& parameter : parameters)
    for (const std::string role : {"param.", "m.", "v."}) {
      const auto before = trace.file().at(step_name(step, "before." + role + parameter)).bytes;
      const auto after = trace.file().at(step_name(step, "after." + role + parameter)).bytes;
      if (!std::equal(before.begin(), before.end(), after.begin(), after.end())) return false;
    }
  return true;
}

}  // namespace strata::parity
