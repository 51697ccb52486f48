#include "data/tales/ledger.h"

#include <algorithm>

namespace strata::tales {
namespace {

/// Collects conditions: the answer is the least of them, the reason the first that fails.
class Conditions {
 public:
  explicit Conditions(const char*& reason) : reason_(reason) {}
  Conditions& want(Truth truth, const char* reason) {
    if (truth == Truth::no && all_ != Truth::no) reason_ = reason;
    all_ = all_ && truth;
    return *this;
  }
  Conditions& want(bool truth, const char* reason) { return want(tales::truth(truth), reason); }
  operator Truth() const { return all_; }  // NOLINT: a list of conditions is their conjunction

 private:
  Truth all_ = Truth::yes;
  const char*& reason_;
};

}  // namespace

int Ledger::find_name(int name) const {
  for (int s = 0; s < people(); ++s)
    if (people_[s].name == name) return s;
  return -1;
}

int Ledger::find_species(int animal) const {
  for (int s = 0; s < people(); ++s)
    if (people_[s].animal == animal) return s;
  return -1;
}

int Ledger::find_noun(int noun) const {
  for (int o = 0; o < things(); ++o)
    if (things_[o].noun == noun) return o;
  return -1;
}

int Ledger::note_person(int name, bool newcomer) {
  PersonNote note;
  note.name = name;
  const bool known = newcomer || whole_;
  if (known) {
    note.wish = -1;
    note.mood = Mood::none;
    note.mood_told = true;
  }
  const Fact<bool> no_liking = known ? Fact<bool>(false) : Fact<bool>();
  for (PersonNote& other : people_) other.likes.push_back(no_liking);
  note.likes.assign(people_.size() + 1, no_liking);
  note.likes.back() = false;
  people_.push_back(std::move(note));
  return people() - 1;
}

int Ledger::note_thing(int noun, bool newcomer) {
  ThingNote note;
  note.noun = noun;
  if (newcomer || whole_) note.giver = -1;
  things_.push_back(note);
  return things() - 1;
}

Truth Ledger::together(int s, int t) const {
  return s == t ? Truth::yes : same(people_[s].place, people_[t].place);
}

Fact<int> Ledger::spot(int o) const {
  const ThingNote& note = things_[o];
  if (!note.holder) return {};
  return *note.holder < 0 ? note.place : people_[*note.holder].place;
}

Truth Ledger::holds_any(int s) const {
  Truth any = whole_ ? Truth::no : Truth::unknown;
  for (int o = 0; o < things(); ++o) any = any || holds(s, o);
  return any;
}

Truth Ledger::named(int place) const {
  if (std::find(places_.begin(), places_.end(), place) != places_.end()) return Truth::yes;
  return whole_ ? Truth::no : Truth::unknown;
}

bool Ledger::room_for_place() const {
  return static_cast<int>(places_.size()) < language_.limits.places;
}

Truth Ledger::lies_by(int s, int o) const {
  return holds(-1, o) && same(things_[o].place, people_[s].place);
}

// ------------------------------------------------------------------------------------------------
// What is possible

Truth Ledger::possible(Act act, const Claim& claim, const char** reason) const {
  const char* ignored = nullptr;
  const char*& why = reason == nullptr ? ignored : *reason;
  if (is_question(act)) return question_claim(act, claim, why);
  switch (act) {
    case Act::own:
    case Act::lie:
    case Act::see:
    case Act::take:
    case Act::put:
    case Act::give:
    case Act::ask:
    case Act::want:
      return thing_claim(act, claim, why);
    case Act::play:
    case Act::laugh:
    case Act::journey:
      return pair_claim(act, claim, why);
    default:
      return people_claim(act, claim, why);
  }
}

Truth Ledger::people_claim(Act act, const Claim& c, const char*& reason) const {
  Conditions all(reason);
  switch (act) {
    case Act::befriend:
    case Act::settle:
    case Act::arrive:
      all.want(people() < language_.limits.people, "the story has all its people already");
      if (act == Act::settle)
        all.want(named(c.p) == Truth::yes || room_for_place(), "the story has all its places");
      if (act == Act::arrive && c.p >= 0)
        all.want(subject && *subject >= 0 ? at(*subject, c.p) : Truth::unknown,
                 "nobody comes but to where the story is");
      return all;
    case Act::like:
      return all.want(c.s != c.t, "nobody is said to like themselves")
          .want(!likes(c.s, c.t), "that is so already");
    case Act::go:
      return all.want(!at(c.s, c.p), "the person is there already")
          .want(named(c.p) == Truth::yes || room_for_place(), "the story has all its places");
    case Act::meet:
      return all.want(c.s != c.t, "nobody meets themselves")
          .want(same<Act>(last_act, Act::go), "nobody has just gone anywhere")
          .want(same<int>(subject, c.s), "somebody else has just gone there")
          .want(together(c.s, c.t), "the other is not there");
    case Act::thank:
      all.want(c.s != c.t, "nobody thanks themselves")
          .want(same<Act>(last_act, Act::give), "nobody has just given anything");
      if (last_act == Act::give)
        all.want(last.s == c.t && last.t == c.s, "the gift was not between these two");
      return all;
    case Act::feel: {
      const Fact<Mood>& mood = people_[c.s].mood;
      return all.want(!same<Mood>(mood, Mood::none), "nothing has moved that person yet")
          .want(same<bool>(people_[c.s].mood_told, false), "that has been told already");
    }
    case Act::dawn:
      all.want(c.s == 0 || !whole_, "the day begins with the first person of the story");
      return all.want(at(c.s, c.p), "the person is elsewhere");
    case Act::sleep:
    case Act::sleep_with:
      all.want(at(c.s, c.p), "the person is elsewhere");
      if (act == Act::sleep) all.want(!holds_any(c.s), "the person holds something");
      return all;
    default:
      return all;
  }
}

Truth Ledger::thing_claim(Act act, const Claim& c, const char*& reason) const {
  Conditions all(reason);
  switch (act) {
    case Act::own:
    case Act::lie:
      all.want(things() < language_.limits.things, "the story has all its things already");
      if (act == Act::lie) all.want(named(c.p), "the story has not spoken of that place");
      return all;
    case Act::see:
      return all.want(same<Act>(last_act, Act::go), "nobody has just gone anywhere")
          .want(same<int>(subject, c.s), "somebody else has just gone there")
          .want(lies_by(c.s, c.o), "the thing does not lie there");
    case Act::take:
      return all.want(lies_by(c.s, c.o), "the thing does not lie there");
    case Act::put:
      all.want(holds(c.s, c.o), "the person does not have the thing");
      if (c.p >= 0) all.want(at(c.s, c.p), "the person is elsewhere");
      return all;
    case Act::give:
      return all.want(c.s != c.t, "nobody gives to themselves")
          .want(holds(c.s, c.o), "the giver does not have the thing")
          .want(together(c.s, c.t), "the two are not together");
    case Act::ask:
      return all.want(c.s != c.t, "nobody asks themselves")
          .want(holds(c.t, c.o), "the other does not have the thing")
          .want(together(c.s, c.t), "the two are not together")
          .want(same<int>(people_[c.s].wish, c.o), "the asker does not want the thing");
    case Act::want:
      return all.want(same<int>(people_[c.s].wish, -1), "the person wants something already")
          .want(!holds(c.s, c.o), "the person has the thing");
    default:
      return all;
  }
}

Truth Ledger::pair_claim(Act act, const Claim& c, const char*& reason) const {
  Conditions all(reason);
  all.want(c.s != c.t, "a pair is two people")
      .want(c.s < c.t || !whole_, "a pair is named in the order in which its people came in");
  if (c.s == c.t) return all;
  all.want(together(c.s, c.t), "the two are not together");
  switch (act) {
    case Act::play:
      all.want(holds(c.s, c.o) || holds(c.t, c.o), "neither has the thing");
      break;
    case Act::journey:
      return all.want(likes(c.s, c.t) && likes(c.t, c.s), "the two do not like each other")
          .want(!at(c.s, c.p), "the two are there already")
          .want(named(c.p) == Truth::yes || room_for_place(), "the story has all its places");
    default:
      break;
  }
  if (c.p >= 0) all.want(at(c.s, c.p), "the two are elsewhere");
  return all;
}

Truth Ledger::question_claim(Act act, const Claim& c, const char*& reason) const {
  Conditions all(reason);
  switch (act) {
    case Act::ask_presence:
    case Act::ask_crowd:
      return all.want(named(c.p), "the story has not spoken of that place");
    case Act::ask_giver:
      return all.want(holds(c.t, c.o), "that person does not have the thing")
          .want(!same<int>(things_[c.o].giver, -1), "nobody gave that person the thing");
    case Act::ask_mood:
      return all.want(!same<Mood>(people_[c.s].mood, Mood::none),
                      "nothing has moved that person yet");
    default:
      return all;
  }
}

// ------------------------------------------------------------------------------------------------
// What becomes of the world

void Ledger::learn(Act act, const Claim& claim) {
  if (!whole_) presuppose(act, claim);
  if (claim.p >= 0) name_place(claim.p);
  change(act, claim);
  turn_attention(act, claim);
  last_act = act;
  last = claim;
}

/// What must have been so before, in case that the reader has not been told.
void Ledger::presuppose(Act act, const Claim& c) {
  switch (act) {
    case Act::arrive:
      if (c.p >= 0 && subject && *subject >= 0) people_[*subject].place = c.p;
      break;
    case Act::see:
    case Act::take:
      things_[c.o].holder = -1;
      if (things_[c.o].place) people_[c.s].place = things_[c.o].place;
      if (people_[c.s].place) things_[c.o].place = people_[c.s].place;
      break;
    case Act::put:
    case Act::dawn:
    case Act::sleep:
    case Act::sleep_with:
      if (act == Act::put) things_[c.o].holder = c.s;
      if (c.p >= 0) people_[c.s].place = c.p;
      break;
    case Act::ask:
      things_[c.o].holder = c.t;
      people_[c.s].wish = c.o;
      bring_together(c.s, c.t);
      break;
    case Act::give:
    case Act::consent:
      things_[c.o].holder = c.s;
      bring_together(c.s, c.t);
      break;
    case Act::ask_giver:
      things_[c.o].holder = c.t;
      break;
    case Act::meet:
      bring_together(c.s, c.t);
      break;
    case Act::play:
    case Act::laugh:
    case Act::journey:
      bring_together(c.s, c.t);
      if (act == Act::journey) people_[c.s].likes[c.t] = people_[c.t].likes[c.s] = true;
      if (act != Act::journey && c.p >= 0) people_[c.s].place = people_[c.t].place = c.p;
      break;
    default:
      break;
  }
}

void Ledger::forget() {
  for (int s = 0; s < people(); ++s) {
    PersonNote& note = people_[s];
    note.place.reset();
    note.wish.reset();
    note.mood.reset();
    note.mood_told.reset();
    for (int t = 0; t < people(); ++t)
      if (t != s) note.likes[t].reset();
  }
  for (ThingNote& note : things_) {
    note.holder.reset();
    note.place.reset();
    note.giver.reset();
  }
  subject.reset();
  focus = -1;
  pair = {-1, -1};
  last_act.reset();
}

void Ledger::bring_together(int s, int t) {
  if (!people_[s].place) people_[s].place = people_[t].place;
  if (!people_[t].place) people_[t].place = people_[s].place;
}

void Ledger::name_place(int place) {
  if (named(place) != Truth::yes) places_.push_back(place);
}

void Ledger::feel(int s, Mood mood) {
  people_[s].mood = mood;
  people_[s].mood_told = false;
}

void Ledger::acquire(int s, int o) {
  things_[o].holder = s;
  things_[o].giver = -1;
  for (int x = 0; x < people(); ++x) {
    PersonNote& person = people_[x];
    if (!person.wish) {  // may or may not have wanted it
      person.mood.reset();
      person.mood_told.reset();
    } else if (*person.wish == o) {
      feel(x, x == s ? Mood::happy : Mood::sad);
    }
    if (x == s && person.wish == o) person.wish = -1;
  }
}

void Ledger::hand_over(int from, int to, int o) {
  acquire(to, o);
  things_[o].giver = from;
  people_[to].likes[from] = true;
  feel(to, Mood::happy);
  feel(from, Mood::proud);
}

void Ledger::change(Act act, const Claim& c) {
  switch (act) {
    case Act::open:
    case Act::settle:
    case Act::arrive:
      people_[c.s].place = c.p;
      break;
    case Act::befriend:
      people_[c.t].place = people_[c.s].place;
      people_[c.s].likes[c.t] = people_[c.t].likes[c.s] = true;
      break;
    case Act::own:
      things_[c.o].holder = c.s;
      break;
    case Act::lie:
      things_[c.o].holder = -1;
      things_[c.o].place = c.p;
      break;
    case Act::like:
      people_[c.s].likes[c.t] = true;
      break;
    case Act::want:
      people_[c.s].wish = c.o;
      break;
    case Act::go:
      people_[c.s].place = c.p;
      break;
    case Act::journey:
      people_[c.s].place = people_[c.t].place = c.p;
      break;
    case Act::take:
      acquire(c.s, c.o);
      break;
    case Act::put:
      things_[c.o].holder = -1;
      things_[c.o].giver = -1;
      things_[c.o].place = people_[c.s].place;
      break;
    case Act::give:
    case Act::consent:
      hand_over(c.s, c.t, c.o);
      break;
    case Act::refuse:
      people_[c.t].wish = -1;
      people_[c.t].likes[c.s] = false;
      feel(c.t, Mood::sad);
      break;
    case Act::play:
      feel(c.s, Mood::happy);
      feel(c.t, Mood::happy);
      break;
    case Act::feel:
      people_[c.s].mood_told = true;
      break;
    default:
      break;
  }
}

void Ledger::turn_attention(Act act, const Claim& c) {
  focus = -1;
  pair = {-1, -1};
  if (is_question(act) || is_answer(act)) return;
  if (act == Act::lie || act == Act::noon || act == Act::dusk) return;
  int actor = c.s, other = c.t;
  if (act == Act::befriend) std::swap(actor, other);
  subject = actor;
  if (act == Act::play || act == Act::laugh || act == Act::journey)
    pair = {c.s, c.t};
  else if (act != Act::dawn && (other < 0 || female(other) != female(actor)))
    focus = actor;
}

}  // namespace strata::tales
