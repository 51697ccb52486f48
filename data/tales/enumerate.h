// Choosers that look at every choice: all of them in turn, or those that another chooser makes.
#pragma once

#include <vector>

#include "data/tales/chooser.h"

namespace strata::tales {

/// One choice among several, as it fell.
struct Choice {
  std::vector<std::uint32_t> weights;
  std::uint32_t total;
  std::size_t chosen;

  [[nodiscard]] double probability() const { return static_cast<double>(weights[chosen]) / total; }
};

/// Goes through all ways to choose, depth first:
///
///     EnumeratingChooser chooser;
///     do { use(tell_story(language, chooser), chooser.probability()); } while (chooser.next());
class EnumeratingChooser final : public Chooser {
 public:
  /// The choices made since the last `next`.
  [[nodiscard]] const std::vector<Choice>& choices() const { return path_; }
  /// The first of them that differs from what was chosen the time before.
  [[nodiscard]] std::size_t first_new() const { return first_new_; }
  /// The probability of all of them together.
  [[nodiscard]] double probability() const {
    double product = 1;
    for (const Choice& choice : path_) product *= choice.probability();
    return product;
  }

  /// Turns to the next way; false after the last.
  bool next() {
    reset_bits();
    depth_ = 0;
    while (!path_.empty()) {
      Choice& last = path_.back();
      if (advance(last)) {
        first_new_ = path_.size() - 1;
        return true;
      }
      path_.pop_back();
    }
    return false;
  }

 private:
  std::size_t pick(std::span<const std::uint32_t> weights, std::uint32_t total) override {
    if (depth_ == path_.size()) {
      Choice choice{{weights.begin(), weights.end()}, total, 0};
      if (weights[0] == 0) advance(choice);
      path_.push_back(std::move(choice));
    }
    return path_[depth_++].chosen;
  }

  /// To the next option that is possible at all.
  static bool advance(Choice& choice) {
    while (++choice.chosen < choice.weights.size())
      if (choice.weights[choice.chosen] != 0) return true;
    return false;
  }

  std::vector<Choice> path_;
  std::size_t depth_ = 0;
  std::size_t first_new_ = 0;
};

/// Leaves every choice to `source`, and writes down how it fell.
class RecordingChooser final : public Chooser {
 public:
  explicit RecordingChooser(Chooser& source) : source_(source) {}
  [[nodiscard]] const std::vector<Choice>& choices() const { return choices_; }

 private:
  std::size_t pick(std::span<const std::uint32_t> weights, std::uint32_t total) override {
    const std::size_t chosen = source_.choose(weights);
    choices_.push_back({{weights.begin(), weights.end()}, total, chosen});
    return chosen;
  }

  Chooser& source_;
  std::vector<Choice> choices_;
};

}  // namespace strata::tales
