// The world of a story, as its teller knows it: who is where, who has what, who likes whom.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "data/tales/language.h"

namespace strata::tales {

inline constexpr int nobody = -1;
inline constexpr int nothing = -1;
inline constexpr int nowhere = -1;
inline constexpr int max_people = 4;

/// What a sentence is about: two people, a thing, a place (indices; -1 where there is none), and
/// how likely that is among the meanings of its act.
struct Meaning {
  int s = nobody;
  int t = nobody;
  int o = nothing;
  int p = nowhere;
  std::uint32_t weight = 1;
};

/// Name, animal, trait and place are indices into the lists of the language.
struct Person {
  int name;
  int animal;
  int trait;
  int place;
  int wish = nothing;
  Mood mood = Mood::none;
  bool mood_told = true;
  std::array<bool, max_people> likes{};
};

struct Thing {
  int adjective;
  int noun;
  int holder;
  int place;  ///< where it lies; of no meaning while somebody holds it
  int giver = nobody;
};

class World {
 public:
  std::vector<Person> people;  ///< in the order in which they came in
  std::vector<Thing> things;
  std::vector<int> known_places;  ///< those named so far

  Phase phase = Phase::setting;
  int steps = 0;  ///< sentences in this phase; a question and its answer are one step
  int weather = -1;
  Act last_act = Act::open;
  Meaning last;                     ///< what the last sentence was about
  std::uint32_t asked = 0;          ///< questions of this phase, a bit each
  int subject = nobody;             ///< who acted last
  int focus = nobody;               ///< whom "he" or "she" would mean
  std::array<int, 2> pair{-1, -1};  ///< whom "they" would mean

  [[nodiscard]] bool together(int s, int t) const { return people[s].place == people[t].place; }
  [[nodiscard]] bool knows(int place) const;
  [[nodiscard]] int spot(int o) const;  ///< where a thing is, held or not
  [[nodiscard]] bool holds_any(int s) const;

  /// What a sentence changes.
  void apply(Act act, const Meaning& meaning, const Language& language);

 private:
  void learn(int place);
  void feel(int s, Mood mood);
  void acquire(int s, int o);
  void hand_over(int from, int to, int o);
  void change(Act act, const Meaning& meaning);
  void turn_attention(Act act, const Meaning& meaning, const Language& language);
};

}  // namespace strata::tales
