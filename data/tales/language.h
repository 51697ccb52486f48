// The language of the tales: its words, its sentences and every weight, as plain tables.
//
// Nothing here chooses and nothing here reads: the storyteller (storyteller.h) walks these tables
// from choices to text, the reader (reader.h) from text back to choices, each by its own code.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace strata::tales {

/// What a sentence does. The letters s and t stand for people, o for a thing, p for a place.
enum class Act : std::uint8_t {
  // The people and things of a story come in.
  open,
  befriend,
  settle,
  arrive,
  own,
  lie,
  // What they feel and do.
  like,
  want,
  go,
  meet,
  see,
  take,
  put,
  give,
  thank,
  ask,
  consent,
  refuse,
  play,
  laugh,
  journey,
  deed,
  feel,
  // Questions; each is followed by its answer.
  ask_place,
  ask_spot,
  ask_holder,
  ask_things,
  ask_likes,
  ask_wish,
  ask_self,
  ask_presence,
  ask_giver,
  ask_crowd,
  ask_mood,
  // Answers, which the world determines.
  tell_place,
  tell_spot_held,
  tell_spot_free,
  tell_holder,
  tell_no_holder,
  tell_things,
  tell_no_things,
  tell_likes,
  tell_no_likes,
  tell_wish,
  tell_no_wish,
  tell_self,
  tell_yes,
  tell_no,
  tell_giver,
  tell_crowd_one,
  tell_crowd_many,
  tell_crowd_none,
  tell_mood,
  // Time passes.
  dawn,
  noon,
  dusk,
  sleep,
  sleep_with,
  end,
};
inline constexpr int act_count = static_cast<int>(Act::end) + 1;

constexpr bool is_question(Act act) { return act >= Act::ask_place && act <= Act::ask_mood; }
constexpr bool is_answer(Act act) { return act >= Act::tell_place && act <= Act::tell_mood; }
/// True for what follows from the sentence before it: answers, and what somebody who is asked does.
constexpr bool is_reply(Act act) {
  return is_answer(act) || act == Act::consent || act == Act::refuse;
}

/// The four parts of a story. The evening has questions only.
enum class Phase : std::uint8_t { setting, day, afternoon, evening };
inline constexpr int phase_count = 4;

/// What somebody feels since the last thing that happened to them.
enum class Mood : std::uint8_t { none, happy, sad, proud };
inline constexpr std::array<const char*, 4> mood_words = {"", "happy", "sad", "proud"};

struct Name {
  std::string text;
  bool female;
};
struct Animal {
  std::string species;
  std::string gait;  ///< how it moves, in the past tense
};
struct Trait {
  std::string word;
  std::string deed;  ///< what somebody of this trait likes to do
};
struct Place {
  std::string preposition;
  std::string word;
};
struct Verb {
  std::string text;
  std::uint32_t weight;
};

/// One way to put an act into words. Slots in braces:
///   {s} a mention of s, perhaps by pronoun    {x} the same, never by pronoun   {t} the same for t
///   {N} {T} the bare name of s, of t          {both} s and t, or "they"        {he} {his} of s
///   {o} "red ball"    {p} "by the river"      {to} "the river"
///   {v} a verb of motion   {deed} {mood} {weather}   {name} {species} {trait} {adj} {noun}
///   {list} people, in the order in which they came in   {things} the things that s holds
/// The first letter of a sentence is written as a capital.
struct Wording {
  Act act;
  std::uint32_t weight;
  std::string text;
};

/// How likely an act is in each phase, where it is possible at all.
struct Likelihood {
  Act act;
  std::array<std::uint32_t, phase_count> weight;
};

/// Steps in a phase (sentences, replies and the phase's own marker not counted): the phase goes on
/// below `least`, is over at `most`, and ends in between with weight `turn` times
/// (steps - least + 1).
struct Span {
  int least;
  int most;
  std::uint32_t turn;
};

struct Limits {
  int people;
  int things;
  int places;
  std::array<Span, phase_count> spans;
};

/// The weights of choices that depend on the world; README.md states each rule in a sentence.
struct Weights {
  // Who acts: the subject of the last sentence, somebody at the same place, somebody elsewhere.
  std::uint32_t same_subject = 8, near_subject = 3, far_subject = 1;
  // How somebody is mentioned: "she" (where allowed), "Mia", "the fox"; "they" or both names.
  std::uint32_t pronoun = 6, name = 4, species = 1, they = 5, both_names = 2;
  // Where somebody goes: where the wished-for thing is, to somebody liked, to a known place, to a
  // new one.
  std::uint32_t to_wish = 48, to_liked = 24, to_known = 8, to_new = 1;
  // Where a new thing or a new person is: where the last subject is, another known place, a new
  // place.
  std::uint32_t here = 8, there = 4, elsewhere = 1;
  // Whether it matters that a person is liked or that a thing is wanted.
  std::uint32_t liked = 4, not_liked = 1, wanted = 8, not_wanted = 2;
  // The gait of the animal, against the verbs of all animals; the deed of one's own trait against
  // that of any other; the weather staying as it is against any one change.
  std::uint32_t own_gait = 6, own_deed = 30, other_deed = 1, same_weather = 12, new_weather = 1;
  // "Was Tom in the garden?": the place where he is, and any other known place.
  std::uint32_t true_place = 3, false_place = 2;
  // Who falls asleep: the first person of the story, anybody else.
  std::uint32_t sleeper_first = 4, sleeper_other = 1;
};

/// The whole language. Words of a list stand from common to rare: word i of n has weight n - i.
struct Language {
  std::vector<Name> names;
  std::vector<Animal> animals;
  std::vector<Trait> traits;
  std::vector<std::string> adjectives;
  std::vector<std::string> nouns;
  std::vector<Place> places;
  std::vector<std::string> weathers;
  std::vector<Verb> verbs;
  std::vector<Likelihood> likelihoods;
  std::vector<Wording> wordings;
  Limits limits;
  Weights weights;
};

/// The line between two stories in a file.
inline constexpr const char* separator = "<|endoftext|>\n";

/// The language of the default corpus.
[[nodiscard]] const Language& default_language();

/// Throws std::invalid_argument if a limit does not fit the word lists or the fixed capacities of
/// the storyteller (4 people, 4 things).
void validate(const Language& language);

}  // namespace strata::tales
