// The part of the reader that judges replies: answers to questions, and what somebody does who is
// asked for a thing.
#include <algorithm>

#include "data/tales/reader.h"

namespace strata::tales {
namespace {

using Form = Mention::Form;
constexpr const char* wrong_answer = "the answer is not so";

}  // namespace

void StoryReader::reply(const Reading& reading, Claim& claim, Finding& finding) {
  const Pending asked = *pending_;
  pending_.reset();
  finding.resolved = asked.finding.resolved;
  if (asked.finding.truth == Truth::no)
    finding.want(Truth::no, "what was asked could not be asked");
  else if (!asked.finding.resolved)
    finding.want(Truth::unknown, "it is not clear of whom or what the question spoke");
  if (finding.truth == Truth::no || !finding.resolved) return;

  const Act act = reading.wording->act;
  claim = asked.claim;
  if (is_answer(act)) return answer(reading, claim, finding);
  claim.s = resolve(reading.s, finding);
  claim.t = reading.t.form == Form::none ? asked.claim.s : resolve(reading.t, finding);
  if (finding.truth == Truth::no || !finding.resolved) return;
  finding.want(truth(claim.s == asked.claim.t), "somebody else was asked");
  finding.want(truth(claim.t == asked.claim.s), "somebody else had asked");
  if (finding.truth == Truth::no) return;
  const Truth likes = ledger_.likes(claim.s, claim.t);
  finding.want(act == Act::consent ? likes : !likes,
               "somebody who is asked gives to whom they like, and to nobody else");
  if (reading.possessive >= 0)
    finding.want(truth(ledger_.female(claim.s) == (reading.possessive == 1)),
                 "the pronoun does not fit its person");
}

void StoryReader::answer(const Reading& reading, Claim& claim, Finding& finding) {
  if (reading.s.form == Form::fixed_pronoun)
    finding.want(truth(ledger_.female(claim.s) == (reading.s.value == 1)),
                 "the pronoun does not fit its person");
  if (reading.s.form == Form::bare_name) claim.s = resolve_name(reading.s.value, finding);
  if (finding.truth == Truth::no) return;
  switch (reading.wording->act) {
    case Act::tell_spot_held:
    case Act::tell_spot_free:
    case Act::tell_holder:
    case Act::tell_no_holder:
    case Act::tell_giver:
      return answer_about_thing(reading, claim, finding);
    default:
      return answer_about_person(reading, claim, finding);
  }
}

void StoryReader::answer_about_thing(const Reading& r, Claim& c, Finding& finding) {
  switch (r.wording->act) {
    case Act::tell_spot_held:
      c.p = r.place;
      finding.want(ledger_.holds(c.s, c.o) && ledger_.at(c.s, c.p), wrong_answer);
      return;
    case Act::tell_spot_free:
      c.p = r.place;
      finding.want(ledger_.holds(-1, c.o) && same<int>(ledger_.thing(c.o).place, c.p),
                   wrong_answer);
      return;
    case Act::tell_holder:
      finding.want(ledger_.holds(c.s, c.o), wrong_answer);
      return;
    case Act::tell_no_holder:
      finding.want(ledger_.holds(-1, c.o), wrong_answer);
      return;
    default:
      finding.want(same<int>(ledger_.thing(c.o).giver, c.s), wrong_answer);
  }
}

void StoryReader::answer_about_person(const Reading& r, Claim& c, Finding& finding) {
  const auto likes = [&](int x) { return ledger_.likes(c.s, x); };
  const auto here = [&](int x) { return ledger_.at(x, c.p); };
  switch (r.wording->act) {
    case Act::tell_place:
      c.p = r.place;
      return finding.want(ledger_.at(c.s, c.p), wrong_answer);
    case Act::tell_yes:
      return finding.want(ledger_.at(c.s, c.p), wrong_answer);
    case Act::tell_no: {
      const int asked = c.p;
      c.p = r.place;
      return finding.want(truth(asked != c.p) && ledger_.at(c.s, c.p), wrong_answer);
    }
    case Act::tell_things:
      return check_things(r, c.s, finding);
    case Act::tell_no_things:
      return finding.want(!ledger_.holds_any(c.s), wrong_answer);
    case Act::tell_likes:
    case Act::tell_no_likes:
      return check_names(r.names, likes, finding);
    case Act::tell_crowd_one:
      finding.want(truth(r.names.size() == 1), "'was' is for one person");
      return check_names(r.names, here, finding);
    case Act::tell_crowd_many:
      finding.want(truth(r.names.size() > 1), "'were' is for several people");
      return check_names(r.names, here, finding);
    case Act::tell_crowd_none:
      return check_names(r.names, here, finding);
    case Act::tell_wish:
      c.o = resolve_thing(r.adjective, r.noun, finding);
      if (c.o >= 0) finding.want(same<int>(ledger_.person(c.s).wish, c.o), wrong_answer);
      return;
    case Act::tell_no_wish:
      return finding.want(same<int>(ledger_.person(c.s).wish, -1), wrong_answer);
    case Act::tell_self: {
      const PersonNote& person = ledger_.person(c.s);
      return finding.want(same<int>(person.trait, r.trait) && same<int>(person.animal, r.species),
                          wrong_answer);
    }
    default:
      finding.want(same<Mood>(ledger_.person(c.s).mood, static_cast<Mood>(r.mood)), wrong_answer);
  }
}

/// The list must hold everything that `holder` has, in the order in which it came into the story.
void StoryReader::check_things(const Reading& reading, int holder, Finding& finding) {
  std::vector<int> listed;
  for (const auto& [adjective, noun] : reading.things) {
    const int o = resolve_thing(adjective, noun, finding);
    if (finding.truth == Truth::no) return;
    finding.want(ledger_.holds(holder, o), "somebody else has it, or nobody");
    finding.want(truth(listed.empty() || !ledger_.whole() || listed.back() < o),
                 "the list is out of order");
    listed.push_back(o);
  }
  for (int o = 0; o < ledger_.things(); ++o)
    if (std::find(listed.begin(), listed.end(), o) == listed.end())
      finding.want(!ledger_.holds(holder, o), "the list is not complete");
}

/// The list must name everybody of whom `belongs` is true, in the order in which they came in.
template <typename Belongs>
void StoryReader::check_names(const std::vector<int>& names, Belongs belongs, Finding& finding) {
  std::vector<int> listed;
  for (const int name : names) {
    const int x = resolve_name(name, finding);
    if (finding.truth == Truth::no) return;
    finding.want(belongs(x), wrong_answer);
    finding.want(truth(listed.empty() || !ledger_.whole() || listed.back() < x),
                 "the list is out of order");
    listed.push_back(x);
  }
  for (int x = 0; x < ledger_.people(); ++x)
    if (std::find(listed.begin(), listed.end(), x) == listed.end())
      finding.want(!belongs(x), "the list is not complete");
  if (names.empty() && !ledger_.whole()) finding.want(Truth::unknown, "");
}

/// In a text that begins in the middle, an answer tells what was not known.
void StoryReader::learn_answer(const Reading& r, const Claim& c) {
  if (ledger_.whole()) return;
  switch (r.wording->act) {
    case Act::tell_place:
    case Act::tell_yes:
    case Act::tell_no:
      ledger_.edit_person(c.s).place = c.p;
      break;
    case Act::tell_spot_held:
      ledger_.edit_thing(c.o).holder = c.s;
      ledger_.edit_person(c.s).place = c.p;
      break;
    case Act::tell_spot_free:
      ledger_.edit_thing(c.o).holder = -1;
      ledger_.edit_thing(c.o).place = c.p;
      break;
    case Act::tell_holder:
      ledger_.edit_thing(c.o).holder = c.s;
      break;
    case Act::tell_no_holder:
      ledger_.edit_thing(c.o).holder = -1;
      break;
    case Act::tell_giver:
      ledger_.edit_thing(c.o).giver = c.s;
      break;
    case Act::tell_things:
      for (const auto& [adjective, noun] : r.things)
        ledger_.edit_thing(ledger_.find_noun(noun)).holder = c.s;
      break;
    case Act::tell_likes:
      for (const int name : r.names)
        ledger_.edit_person(c.s).likes[static_cast<std::size_t>(ledger_.find_name(name))] = true;
      break;
    case Act::tell_wish:
      ledger_.edit_person(c.s).wish = c.o;
      break;
    case Act::tell_no_wish:
      ledger_.edit_person(c.s).wish = -1;
      break;
    case Act::tell_self:
      ledger_.edit_person(c.s).trait = r.trait;
      ledger_.edit_person(c.s).animal = r.species;
      break;
    case Act::tell_mood:
      ledger_.edit_person(c.s).mood = static_cast<Mood>(r.mood);
      break;
    default:
      break;
  }
}

}  // namespace strata::tales
