// The world of a story as its reader knows it: facts gathered from the sentences read so far, some
// of which may be missing when the reading began in the middle.
//
// It shares the tables of language.h with the storyteller, and nothing else: where the teller lists
// what can happen, the ledger judges one claim at a time.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "data/tales/language.h"

namespace strata::tales {

/// Three values, so that "and" is the smaller.
enum class Truth : std::uint8_t { no, unknown, yes };
constexpr Truth operator&&(Truth a, Truth b) { return a < b ? a : b; }
constexpr Truth operator||(Truth a, Truth b) { return a < b ? b : a; }
constexpr Truth operator!(Truth a) {
  return static_cast<Truth>(static_cast<int>(Truth::yes) - static_cast<int>(a));
}
constexpr Truth truth(bool value) { return value ? Truth::yes : Truth::no; }

/// A fact is a value or is not known.
template <typename Value>
using Fact = std::optional<Value>;

/// Do two facts agree?
template <typename Value>
Truth same(const Fact<Value>& a, const Fact<Value>& b) {
  return a && b ? truth(*a == *b) : Truth::unknown;
}

/// What a sentence says, by indices into the ledger's people and things and the language's places;
/// -1 for what it does not name.
struct Claim {
  int s = -1;
  int t = -1;
  int o = -1;
  int p = -1;
};

struct PersonNote {
  int name = -1;
  Fact<int> animal, trait, place;
  Fact<int> wish;  ///< a thing; -1 for none
  Fact<Mood> mood;
  Fact<bool> mood_told;
  std::vector<Fact<bool>> likes;
};

struct ThingNote {
  int noun = -1;
  Fact<int> adjective;
  Fact<int> holder;  ///< a person; -1 for nobody
  Fact<int> place;   ///< where it lies, if it does
  Fact<int> giver;   ///< who gave it to its holder; -1 for nobody
};

class Ledger {
 public:
  /// A ledger of a `whole` story knows that what it was not told is not so.
  Ledger(const Language& language, bool whole) : language_(language), whole_(whole) {}

  [[nodiscard]] bool whole() const { return whole_; }
  [[nodiscard]] int people() const { return static_cast<int>(people_.size()); }
  [[nodiscard]] int things() const { return static_cast<int>(things_.size()); }
  [[nodiscard]] const PersonNote& person(int s) const { return people_[s]; }
  [[nodiscard]] const ThingNote& thing(int o) const { return things_[o]; }
  [[nodiscard]] bool female(int s) const { return language_.names[people_[s].name].female; }

  /// The person of a name or a species, the thing of a noun; -1 if the ledger has none.
  [[nodiscard]] int find_name(int name) const;
  [[nodiscard]] int find_species(int animal) const;
  [[nodiscard]] int find_noun(int noun) const;

  /// Writes down somebody or something that the text takes for known, or that comes in by it.
  int note_person(int name, bool newcomer);
  int note_thing(int noun, bool newcomer);
  PersonNote& edit_person(int s) { return people_[s]; }
  ThingNote& edit_thing(int o) { return things_[o]; }

  /// Could `act`, which is neither a reply nor a new part of the day, be told of `claim` now?
  /// `reason`, if given, gets the first thing that speaks against it.
  [[nodiscard]] Truth possible(Act act, const Claim& claim, const char** reason = nullptr) const;

  /// Takes it that the sentence is so: what it presupposes, and what it changes.
  void learn(Act act, const Claim& claim);

  /// Gives up every fact that may have changed unseen: who is where, has, wants and likes what.
  void forget();

  [[nodiscard]] Truth together(int s, int t) const;
  [[nodiscard]] Truth at(int s, int place) const { return same<int>(people_[s].place, place); }
  [[nodiscard]] Truth likes(int s, int t) const { return same<bool>(people_[s].likes[t], true); }
  [[nodiscard]] Truth holds(int s, int o) const { return same<int>(things_[o].holder, s); }
  [[nodiscard]] Truth holds_any(int s) const;
  [[nodiscard]] Fact<int> spot(int o) const;   ///< where a thing is, held or not
  [[nodiscard]] Truth named(int place) const;  ///< has the story spoken of this place?
  [[nodiscard]] bool room_for_place() const;

  Fact<int> subject;                 ///< who acted last; -1 for nobody
  int focus = -1;                    ///< whom "he" or "she" means
  std::pair<int, int> pair{-1, -1};  ///< whom "they" means
  Fact<Act> last_act;
  Claim last;

 private:
  [[nodiscard]] Truth people_claim(Act act, const Claim& c, const char*& reason) const;
  [[nodiscard]] Truth thing_claim(Act act, const Claim& c, const char*& reason) const;
  [[nodiscard]] Truth pair_claim(Act act, const Claim& c, const char*& reason) const;
  [[nodiscard]] Truth question_claim(Act act, const Claim& c, const char*& reason) const;
  [[nodiscard]] Truth lies_by(int s, int o) const;

  void presuppose(Act act, const Claim& c);
  void change(Act act, const Claim& c);
  void turn_attention(Act act, const Claim& c);
  void bring_together(int s, int t);
  void name_place(int place);
  void feel(int s, Mood mood);
  void acquire(int s, int o);
  void hand_over(int from, int to, int o);

  const Language& language_;
  bool whole_;
  std::vector<PersonNote> people_;
  std::vector<ThingNote> things_;
  std::vector<int> places_;  ///< those named so far
};

}  // namespace strata::tales
