#include "common/parity/compare.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <set>

#include "common/parity/adamw.h"

namespace strata::parity {
namespace {

constexpr std::uint64_t chunk = 1 << 16;

/// Calls `use(a, b)` with each pair of elements of two tensors of equal size, in order.
template <typename Use>
void for_each_pair(const Trace& a, const Trace& b, const std::string& name, Use use) {
  const std::uint64_t elements = a.file().at(name).elements;
  for (std::uint64_t first = 0; first < elements; first += chunk) {
    const std::uint64_t count = std::min(chunk, elements - first);
    const std::vector<double> x = a.file().read_doubles(name, first, count);
    const std::vector<double> y = b.file().read_doubles(name, first, count);
    for (std::uint64_t i = 0; i < count; ++i) use(x[i], y[i]);
  }
}

double sum_of_squares(const Trace& trace, const std::string& name) {
  double sum = 0;
  for_each_pair(trace, trace, name, [&](double x, double) { sum += x * x; });
  return sum;
}

bool same_value(const std::string& a, const std::string& b) {
  double x = 0;
  double y = 0;
  const auto parsed = [](const std::string& text, double& value) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size();
  };
  return parsed(a, x) && parsed(b, y) ? x == y : a == b;
}

/// The comparison at work: it fills a Comparison.
class Comparer {
 public:
  Comparer(const Trace& a, const Trace& b, const Tolerances& tolerances)
      : a_(a), b_(b), tolerances_(tolerances) {}

  Comparison run() {
    compare_settings();
    compare_losses();
    std::set<std::uint64_t> steps = a_.steps();
    steps.insert(b_.steps().begin(), b_.steps().end());
    for (const std::uint64_t step : steps) {
      if (!a_.steps().contains(step) || !b_.steps().contains(step))
        problem("step " + std::to_string(step) + " is missing in " +
                (a_.steps().contains(step) ? "B" : "A"));
      else
        compare_step(step);
    }
    if (steps.empty()) problem("neither trace holds a step");
    if (comparison_.rows.empty()) problem("nothing was compared");
    return std::move(comparison_);
  }

 private:
  void problem(const std::string& sentence) { comparison_.problems.push_back(sentence); }

  void row(std::optional<std::uint64_t> step, const std::string& name, std::string_view kind,
           const char* sides, const io::Shape& shape, const Difference& difference) {
    comparison_.rows.push_back({step, name, std::string(kind), sides, shape, difference});
  }

  /// Traces of runs with different settings differ for a reason that is no fault of a stage.
  void compare_settings() {
    for (const char* flag : {"batch", "seq", "accum", "steps", "lr", "schedule", "warmup",
                             "final-lr", "weight-decay", "beta1", "beta2", "eps", "clip"}) {
      const std::optional<std::string> x = a_.setting(flag);
      const std::optional<std::string> y = b_.setting(flag);
      if (x.has_value() != y.has_value() || (x && !same_value(*x, *y)))
        problem(std::string("the setting ") + flag + " is " + x.value_or("missing") + " in A and " +
                y.value_or("missing") + " in B");
    }
  }

  /// True if both have the tensor with one shape; else it is a problem, named.
  bool comparable(const std::string& name) {
    const io::Tensor* x = a_.file().find(name);
    const io::Tensor* y = b_.file().find(name);
    if (x == nullptr || y == nullptr) {
      problem(name + " is missing in " + (x != nullptr ? "B" : y != nullptr ? "A" : "both"));
      return false;
    }
    if (x->shape != y->shape) {
      problem(name + " has the shape " + io::to_string(x->shape) + " in A and " +
              io::to_string(y->shape) + " in B");
      return false;
    }
    return true;
  }

  void compare_losses() {
    // A replayed trace lists the losses of the traced steps only; those are compared as "loss".
    if (a_.replayed() || b_.replayed() || !comparable("losses")) return;
    Measurement measurement(tolerances_["losses"]);
    for_each_pair(a_, b_, "losses",
                  [&](double x, double y) { measurement.add(y, x, std::abs(x)); });
    row(std::nullopt, "losses", "losses", "A:B", a_.file().at("losses").shape,
        measurement.result());
  }

  /// The kind of a tensor of a step that is compared between the traces as it stands; empty for the
  /// state after the step, which each trace must explain by itself.
  static std::string_view kind_of(std::string_view name) {
    if (name == "tokens" || name == "logits" || name == "loss" || name == "norm") return name;
    if (name == "updates" || name.starts_with("before.")) return "before";
    if (name.starts_with("grad.")) return gradient_kind(name.substr(5));
    if (name.starts_with("after.")) return "";
    return "unknown";
  }

  void compare_step(std::uint64_t step) {
    std::set<std::string> names;
    for (const Trace* trace : {&a_, &b_})
      for (const std::string& name : trace->names(step)) names.insert(name);
    // What a step must have, even where neither trace has it.
    for (const char* name : {"tokens", "logits", "loss", "norm"}) names.insert(name);
    std::set<std::string> parameters = a_.parameters(step);
    parameters.merge(b_.parameters(step));
    if (parameters.empty()) problem("step " + std::to_string(step) + " has no parameters");
    for (const std::string& parameter : parameters)
      for (const char* role : {"grad.", "before.param.", "before.m.", "before.v.", "after.param.",
                               "after.m.", "after.v."})
        names.insert(role + parameter);
    const std::size_t problems_before = comparison_.problems.size();
    const std::size_t rows_before = comparison_.rows.size();
    for (const std::string& name : names) compare_tensor(step, name);
    for (std::size_t i = rows_before; i < comparison_.rows.size(); ++i)
      if (comparison_.rows[i].kind == "before" && !comparison_.rows[i].difference.passed())
        return problem("step " + std::to_string(step) +
                       " does not start from the same state in both traces, so that its results "
                       "cannot be compared; B has to be made by --replay of A");
    if (comparison_.problems.size() == problems_before) {
      check_own(a_, step, parameters, "A");
      check_own(b_, step, parameters, "B");
    }
  }

  void compare_tensor(std::uint64_t step, const std::string& name) {
    const std::string full = step_name(step, name);
    if (!comparable(full)) return;
    const std::string_view kind = kind_of(name);
    if (kind.empty()) return;
    if (kind == "unknown") return problem(full + " is no tensor of a trace");
    if (name.starts_with("grad.") && name.ends_with(".attn.c_attn.bias"))
      return compare_qkv_bias(step, name);
    const double squares = sum_of_squares(a_, full);
    if (name.starts_with("grad.") && squares == 0)
      return problem(full + " is all zero in A, so that there is nothing to compare");
    const io::Tensor& tensor = a_.file().at(full);
    const double rms = std::sqrt(squares / static_cast<double>(tensor.elements));
    Measurement measurement(tolerances_[kind]);
    for_each_pair(a_, b_, full,
                  [&](double x, double y) { measurement.add(y, x, scale(kind, x, rms)); });
    row(step, name, kind, "A:B", tensor.shape, measurement.result());
  }

  /// What an element's difference is divided by. Single numbers are relative to themselves.
  static double scale(std::string_view kind, double reference, double rms) {
    if (kind == "loss" || kind == "norm") return std::abs(reference);
    return std::abs(reference) + rms;
  }

  /// The gradient of c_attn.bias: its middle third belongs to the keys, and is rounding noise.
  void compare_qkv_bias(std::uint64_t step, const std::string& name) {
    const std::string full = step_name(step, name);
    const io::Tensor& tensor = a_.file().at(full);
    const std::uint64_t third = tensor.elements / 3;
    const auto is_key = [&](std::uint64_t i) { return i >= third && i < 2 * third; };
    double squares = 0;
    double key_squares = 0;
    std::uint64_t i = 0;
    for_each_pair(a_, a_, full,
                  [&](double x, double) { (is_key(i++) ? key_squares : squares) += x * x; });
    if (squares == 0)
      return problem(full + " is all zero in A, so that there is nothing to compare");
    const double rms = std::sqrt(squares / static_cast<double>(tensor.elements - third));
    const double norm = std::sqrt(squares + key_squares);
    const std::string_view kind = gradient_kind(name.substr(5));
    Measurement rest(tolerances_[kind]);
    Measurement keys(tolerances_["grad.key_bias"]);
    i = 0;
    for_each_pair(a_, b_, full, [&](double x, double y) {
      if (!is_key(i++)) return rest.add(y, x, scale(kind, x, rms));
      const double larger = std::isnan(x) || std::abs(x) > std::abs(y) ? std::abs(x) : std::abs(y);
      keys.add_with_error(y, x, larger / norm);
    });
    row(step, name + " [query, value]", kind, "A:B", {tensor.elements - third}, rest.result());
    row(step, name + " [key]", "grad.key_bias", "A:B", {third}, keys.result());
  }

  /// A trace against its own arithmetic: the norm of its gradients, and its AdamW.
  void check_own(const Trace& trace, std::uint64_t step, const std::set<std::string>& parameters,
                 const char* side) {
    double squares = 0;
    for (const std::string& parameter : parameters)
      squares += sum_of_squares(trace, step_name(step, "grad." + parameter));
    const double norm = trace.scalar(step_name(step, "norm"));
    Measurement own_norm(tolerances_["norm.own"]);
    own_norm.add(norm, std::sqrt(squares), std::sqrt(squares));
    row(step, "norm", "norm.own", side, {1}, own_norm.result());
    const UpdateSettings settings = trace.update(step);
    const std::vector<std::string> names(parameters.begin(), parameters.end());
    const bool skipped =
        (trace.may_skip() || !std::isfinite(norm)) && unchanged(trace, step, names);
    for (const std::string& parameter : names) {
      if (!same_shapes(trace, step, parameter)) continue;
      if (skipped) continue;
      const bool matrix = trace.file().at(step_name(step, "grad." + parameter)).shape.size() >= 2;
      const UpdateCheck check = check_update(trace, step, parameter, settings, matrix, tolerances_);
      const io::Shape& shape = trace.file().at(step_name(step, "grad." + parameter)).shape;
      row(step, "after.m." + parameter, "adamw.m", side, shape, check.m);
      row(step, "after.v." + parameter, "adamw.v", side, shape, check.v);
      row(step, "after.param." + parameter, "adamw.param", side, shape, check.param);
    }
  }

  bool same_shapes(const Trace& trace, std::uint64_t step, const std::string& parameter) {
    const io::Shape& shape = trace.file().at(step_name(step, "grad." + parameter)).shape;
    for (const char* role :
         {"before.param.", "before.m.", "before.v.", "after.param.", "after.m.", "after.v."}) {
      const std::string name = step_name(step, role + parameter);
      if (trace.file().at(name).shape == shape) continue;
      problem(name + " has another shape than the gradient of " + parameter);
      return false;
    }
    return true;
  }

  const Trace& a_;
  const Trace& b_;
  const Tolerances& tolerances_;
  Comparison comparison_;
};

}  // namespace

bool Comparison::passed() const {
  return !rows.empty() && problems.empty() &&
         std::all_of(rows.begin(), rows.end(),
                     [](const Row& row) { return row.difference.passed(); });
}

Comparison compare(const Trace& a, const Trace& b, const Tolerances& tolerances) {
  return Comparer(a, b, tolerances).run();
}

}  // namespace strata::parity
