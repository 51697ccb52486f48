// From meanings to words.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "data/tales/chooser.h"
#include "data/tales/world.h"

namespace strata::tales {

/// Writes the sentences of one story into a string; asks the chooser wherever there are several
/// ways to say the same.
class Pen {
 public:
  Pen(const Language& language, const World& world, Chooser& chooser, std::string& text)
      : language_(language), world_(world), chooser_(chooser), text_(text) {}

  /// Appends a sentence that says that `act` happens as `meaning` has it, with a space or, before a
  /// new phase, a line break in front. The world must be as it is before the sentence, but hold the
  /// new person or thing that comes in by it.
  void write(Act act, const Meaning& meaning);

 private:
  void slot(std::string_view name, Act act, const Meaning& meaning);
  void mention(int person, bool pronoun_allowed);
  void mention_pair(const Meaning& meaning);
  void gait(int person);
  void deed(int person);
  void list(Act act, const Meaning& meaning);
  void things_of(int person);
  void series(const std::vector<std::string>& items);

  [[nodiscard]] const std::string& name(int person) const {
    return language_.names[world_.people[person].name].text;
  }
  [[nodiscard]] bool female(int person) const {
    return language_.names[world_.people[person].name].female;
  }
  [[nodiscard]] std::string thing(int o) const;

  const Language& language_;
  const World& world_;
  Chooser& chooser_;
  std::string& text_;
  std::vector<std::uint32_t> weights_;
};

}  // namespace strata::tales
