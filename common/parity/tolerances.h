// How far two traces may be apart: one number for each kind of tensor, with the reason for it.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace strata::parity {

/// The largest error allowed for one kind of tensor, in the unit that the kind's reason states.
struct Tolerance {
  std::string_view kind;
  double value;
  std::string_view reason;
};

/// The tolerances between two fp32 stages, in the order of the table.
[[nodiscard]] const std::vector<Tolerance>& default_tolerances();

/// A tolerance for every kind: the default ones, or others read from a file.
class Tolerances {
 public:
  /// The default ones.
  Tolerances();
  /// The default ones, replaced where the JSON object in the file, {"kind": number, ...}, says so.
  /// Throws std::runtime_error naming the file for an unknown kind or anything but a finite number
  /// that is not negative.
  explicit Tolerances(const std::filesystem::path& path);

  /// Throws std::logic_error for a kind that does not exist.
  [[nodiscard]] double operator[](std::string_view kind) const;

 private:
  std::map<std::string, double, std::less<>> values_;
};

/// The kind of the gradient of the parameter with that name, for example "grad.linear.weight".
[[nodiscard]] std::string_view gradient_kind(std::string_view parameter);

}  // namespace strata::parity
