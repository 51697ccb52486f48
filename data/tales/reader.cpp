#include "data/tales/reader.h"

namespace strata::tales {
namespace {

using Form = Mention::Form;

/// Does an act of this kind reply to that question or request?
bool replies(Act reply, Act question) {
  switch (question) {
    case Act::ask:
      return reply == Act::consent || reply == Act::refuse;
    case Act::ask_place:
      return reply == Act::tell_place;
    case Act::ask_spot:
      return reply == Act::tell_spot_held || reply == Act::tell_spot_free;
    case Act::ask_holder:
      return reply == Act::tell_holder || reply == Act::tell_no_holder;
    case Act::ask_things:
      return reply == Act::tell_things || reply == Act::tell_no_things;
    case Act::ask_likes:
      return reply == Act::tell_likes || reply == Act::tell_no_likes;
    case Act::ask_wish:
      return reply == Act::tell_wish || reply == Act::tell_no_wish;
    case Act::ask_self:
      return reply == Act::tell_self;
    case Act::ask_presence:
      return reply == Act::tell_yes || reply == Act::tell_no;
    case Act::ask_giver:
      return reply == Act::tell_giver;
    case Act::ask_crowd:
      return reply == Act::tell_crowd_one || reply == Act::tell_crowd_many ||
             reply == Act::tell_crowd_none;
    case Act::ask_mood:
      return reply == Act::tell_mood;
    default:
      return false;
  }
}

bool brings_person(Act act) {
  return act == Act::open || act == Act::befriend || act == Act::settle || act == Act::arrive;
}
bool brings_thing(Act act) { return act == Act::own || act == Act::lie; }

}  // namespace

void StoryReader::Finding::want(Truth condition, const char* why) {
  if (condition < truth) reason = why;
  truth = truth && condition;
}

Verdict StoryReader::read(std::string_view sentence) {
  const std::vector<Reading>& readings = patterns_.read(sentence);
  const bool first = !begun_;
  begun_ = !readings.empty();
  if (readings.empty()) {
    pending_.reset();
    bits_.reset();
    return {.reason = "no sentence of the language has this form"};
  }
  Finding finding;
  Claim claim;
  const Reading* reading = choose(readings);
  if (reading == nullptr) {
    const bool cut_off = first && !ledger_.whole();
    finding.resolved = false;
    finding.want(cut_off ? Truth::unknown : Truth::no,
                 pending_  ? "it does not answer what was asked before"
                 : cut_off ? "the question that it answers is not in the text"
                           : "it is an answer, but nothing was asked");
    pending_.reset();
    return conclude(readings.front(), claim, finding);
  }
  if (pending_)
    reply(*reading, claim, finding);
  else
    tell(*reading, claim, finding);
  return conclude(*reading, claim, finding);
}

const Reading* StoryReader::choose(const std::vector<Reading>& readings) const {
  for (const Reading& reading : readings) {
    const Act act = reading.wording->act;
    if (pending_ ? replies(act, pending_->act) : !is_reply(act)) return &reading;
  }
  return nullptr;
}

/// Makes the verdict, and lets the ledger learn from a sentence that is not false.
Verdict StoryReader::conclude(const Reading& reading, const Claim& understood,
                              const Finding& finding) {
  const Act act = reading.wording->act;
  Claim claim = understood;
  Verdict verdict{.kind = finding.truth == Truth::no        ? Verdict::Kind::untrue
                          : finding.truth == Truth::unknown ? Verdict::Kind::unknown
                                                            : Verdict::Kind::right,
                  .reason = finding.reason,
                  .new_part = act >= Act::dawn && act <= Act::sleep_with,
                  .ends = act == Act::end};
  if (finding.truth != Truth::yes) bits_.reset();
  if (is_question(act) || act == Act::ask) pending_ = Pending{act, claim, finding};
  if (finding.truth == Truth::no) return verdict;
  if (!finding.resolved) {
    if (!is_question(act) && !is_answer(act)) ledger_.forget();
    return verdict;
  }
  if (odds_ != nullptr && bits_) {
    const std::optional<double> bits = odds_->bits(reading, claim, ledger_);
    bits_ = bits ? std::optional<double>(*bits_ + *bits) : std::nullopt;
    odds_->pass(reading);
  }
  bring_in(reading, claim);
  ledger_.learn(act, claim);
  if (is_reply(act)) learn_answer(reading, claim);
  if (act == Act::dawn) phase_ = Phase::day;
  if (act == Act::noon) phase_ = Phase::afternoon;
  if (act == Act::dusk) phase_ = Phase::evening;
  return verdict;
}

// ------------------------------------------------------------------------------------------------
// Sentences that tell or ask

void StoryReader::tell(const Reading& reading, Claim& claim, Finding& finding) {
  const Act act = reading.wording->act;
  check_time(act, finding);
  if (finding.truth == Truth::no) return;
  claim.p = reading.place;
  if (reading.s.form == Form::they || reading.s.form == Form::both_names) {
    resolve_pair(reading.s, claim, finding);
  } else {
    if (reading.s.form != Form::none) claim.s = resolve(reading.s, finding);
    if (reading.t.form != Form::none) claim.t = resolve(reading.t, finding);
  }
  if (reading.noun >= 0 && !brings_thing(act))
    claim.o = resolve_thing(reading.adjective, reading.noun, finding);
  check_newcomers(reading, finding);
  if (finding.truth == Truth::no || !finding.resolved) return;

  const char* reason = "that was told before the text begins";
  finding.want(ledger_.possible(act, claim, &reason), reason);
  check_words(reading, claim, finding);
}

/// Stories begin with an opening and end with an end; the parts of the day follow each other.
void StoryReader::check_time(Act act, Finding& finding) const {
  const bool sleeping = ledger_.last_act == Act::sleep || ledger_.last_act == Act::sleep_with;
  if (ledger_.whole() && ledger_.people() == 0)
    finding.want(truth(act == Act::open), "the story has not begun");
  else
    finding.want(truth(act != Act::open), "the story has begun already");
  finding.want(truth(!sleeping || act == Act::end), "the story is over but for its last words");
  const Fact<Phase> phase = ledger_.whole() && !phase_ ? Fact<Phase>(Phase::setting) : phase_;
  const char* why = "that time of day does not follow";
  if (act == Act::dawn) finding.want(same<Phase>(phase, Phase::setting), why);
  if (act == Act::noon) finding.want(same<Phase>(phase, Phase::day), why);
  if (act == Act::dusk) finding.want(same<Phase>(phase, Phase::afternoon), why);
  if (act == Act::sleep || act == Act::sleep_with)
    finding.want(same<Phase>(phase, Phase::evening), why);
  if (act == Act::end)
    finding.want(ledger_.last_act ? truth(sleeping) : Truth::unknown, "nobody has fallen asleep");
}

/// Names, species and traits are each of one person in a story, nouns of one thing.
void StoryReader::check_newcomers(const Reading& r, Finding& finding) const {
  if (brings_person(r.wording->act)) {
    for (int s = 0; s < ledger_.people(); ++s) {
      const PersonNote& other = ledger_.person(s);
      finding.want(truth(other.name != r.name), "the name is somebody else's");
      finding.want(truth(other.animal != r.species), "the story has such an animal already");
      finding.want(truth(other.trait != r.trait), "somebody else is like that already");
    }
  }
  if (brings_thing(r.wording->act))
    finding.want(truth(ledger_.find_noun(r.noun) < 0), "the story has such a thing already");
}

/// Words that the world determines beside the claim.
void StoryReader::check_words(const Reading& r, const Claim& claim, Finding& finding) {
  const Act act = r.wording->act;
  if (act == Act::feel)
    finding.want(same<Mood>(ledger_.person(claim.s).mood, static_cast<Mood>(r.mood)),
                 "the person feels otherwise");
  if (act == Act::sleep_with) check_things(r, claim.s, finding);
  if (r.gait_of < 0) return;
  const Fact<int> animal = ledger_.person(claim.s).animal;
  const auto gait = [this](int a) { return language_.animals[static_cast<std::size_t>(a)].gait; };
  finding.want(animal ? truth(gait(*animal) == gait(r.gait_of)) : Truth::unknown,
               "that is not how this animal moves");
}

void StoryReader::bring_in(const Reading& r, Claim& claim) {
  const Act act = r.wording->act;
  if (brings_person(act)) {
    const int newcomer = ledger_.note_person(r.name, true);
    ledger_.edit_person(newcomer).animal = r.species;
    ledger_.edit_person(newcomer).trait = r.trait;
    (act == Act::befriend ? claim.t : claim.s) = newcomer;
  }
  if (brings_thing(act)) {
    claim.o = ledger_.note_thing(r.noun, true);
    ledger_.edit_thing(claim.o).adjective = r.adjective;
  }
}

// ------------------------------------------------------------------------------------------------
// Whom and what a sentence means

int StoryReader::resolve(const Mention& mention, Finding& finding) {
  switch (mention.form) {
    case Form::pronoun:
    case Form::fixed_pronoun:
      return resolve_pronoun(mention.value == 1, finding);
    case Form::species: {
      const int found = ledger_.find_species(mention.value);
      if (found >= 0) return found;
      finding.resolved = false;
      finding.want(ledger_.whole() ? Truth::no : Truth::unknown,
                   "the text has not introduced such an animal");
      return -1;
    }
    default:
      return resolve_name(mention.value, finding);
  }
}

int StoryReader::resolve_name(int name, Finding& finding) {
  const int found = ledger_.find_name(name);
  if (found >= 0) return found;
  const bool full = ledger_.people() >= language_.limits.people;
  finding.want(ledger_.whole() || full ? Truth::no : Truth::unknown,
               "the text has not introduced anybody of that name");
  if (finding.truth == Truth::no) return -1;
  return ledger_.note_person(name, false);
}

int StoryReader::resolve_pronoun(bool female, Finding& finding) const {
  const int person = ledger_.focus;
  if (person < 0) {
    finding.resolved = false;
    finding.want(ledger_.whole() || ledger_.subject ? Truth::no : Truth::unknown,
                 "it is not clear whom the pronoun means");
    return -1;
  }
  finding.want(truth(ledger_.female(person) == female), "the pronoun does not fit its person");
  return person;
}

void StoryReader::resolve_pair(const Mention& mention, Claim& claim, Finding& finding) {
  if (mention.form == Form::both_names) {
    claim.s = resolve_name(mention.value, finding);
    claim.t = resolve_name(mention.second, finding);
    return;
  }
  claim.s = ledger_.pair.first;
  claim.t = ledger_.pair.second;
  if (claim.s >= 0) return;
  finding.resolved = false;
  finding.want(ledger_.whole() || ledger_.subject ? Truth::no : Truth::unknown,
               "it is not clear whom 'they' means");
}

int StoryReader::resolve_thing(int adjective, int noun, Finding& finding) {
  const int found = ledger_.find_noun(noun);
  if (found >= 0) {
    finding.want(same<int>(ledger_.thing(found).adjective, adjective), "the thing looks otherwise");
    return found;
  }
  const bool full = ledger_.things() >= language_.limits.things;
  finding.want(ledger_.whole() || full ? Truth::no : Truth::unknown,
               "the text has not introduced such a thing");
  if (finding.truth == Truth::no) return -1;
  const int noted = ledger_.note_thing(noun, false);
  ledger_.edit_thing(noted).adjective = adjective;
  return noted;
}

}  // namespace strata::tales
