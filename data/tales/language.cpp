#include "data/tales/language.h"

#include <stdexcept>

namespace strata::tales {
namespace {

std::vector<Name> names() {
  return {{"Mia", true},    {"Tom", false},  {"Lily", true},   {"Ben", false},  {"Anna", true},
          {"Max", false},   {"Ruby", true},  {"Sam", false},   {"Nora", true},  {"Leo", false},
          {"Ella", true},   {"Jack", false}, {"Rosa", true},   {"Finn", false}, {"Clara", true},
          {"Hugo", false},  {"Emma", true},  {"Oscar", false}, {"Lucy", true},  {"Noah", false},
          {"Ivy", true},    {"Paul", false}, {"Zoe", true},    {"Theo", false}, {"Grace", true},
          {"Felix", false}, {"Molly", true}, {"Peter", false}};
}

std::vector<Animal> animals() {
  return {{"fox", "trotted"},       {"bear", "padded"},       {"rabbit", "hopped"},
          {"mouse", "scurried"},    {"cat", "padded"},        {"dog", "raced"},
          {"owl", "flew"},          {"frog", "hopped"},       {"duck", "waddled"},
          {"squirrel", "scurried"}, {"goat", "trotted"},      {"pig", "trotted"},
          {"hare", "raced"},        {"crow", "flew"},         {"badger", "padded"},
          {"goose", "waddled"},     {"hedgehog", "scurried"}, {"wolf", "raced"}};
}

std::vector<Trait> traits() {
  return {{"brave", "climbed a tall tree"}, {"clever", "solved a riddle"},
          {"merry", "sang a song"},         {"shy", "looked at the ground"},
          {"funny", "told a joke"},         {"lazy", "took a long nap"},
          {"gentle", "fed the birds"},      {"curious", "looked under a stone"},
          {"hungry", "ate some bread"},     {"busy", "swept the path"},
          {"silly", "jumped up and down"},  {"dreamy", "counted the clouds"},
          {"noisy", "shouted very loudly"}, {"careful", "tied a knot"}};
}

std::vector<Place> places() {
  return {{"in", "garden"},  {"in", "forest"}, {"by", "river"},     {"on", "hill"},
          {"at", "market"},  {"in", "barn"},   {"on", "beach"},     {"by", "pond"},
          {"in", "kitchen"}, {"at", "school"}, {"under", "bridge"}, {"in", "meadow"},
          {"at", "mill"},    {"in", "cave"},   {"behind", "tower"}, {"at", "harbour"}};
}

// Phases: setting, day, afternoon, evening.
std::vector<Likelihood> likelihoods() {
  return {{Act::befriend, {6, 0, 0, 0}},   {Act::settle, {5, 0, 0, 0}},
          {Act::arrive, {0, 3, 2, 0}},     {Act::own, {7, 1, 0, 0}},
          {Act::lie, {4, 3, 1, 0}},        {Act::like, {4, 1, 1, 0}},
          {Act::want, {5, 5, 3, 0}},       {Act::go, {0, 14, 14, 0}},
          {Act::meet, {0, 60, 60, 0}},     {Act::see, {0, 40, 40, 0}},
          {Act::take, {0, 10, 10, 0}},     {Act::put, {0, 3, 3, 0}},
          {Act::give, {0, 10, 10, 0}},     {Act::thank, {0, 60, 60, 0}},
          {Act::ask, {0, 24, 24, 0}},      {Act::play, {0, 5, 5, 0}},
          {Act::laugh, {0, 2, 2, 0}},      {Act::journey, {0, 4, 4, 0}},
          {Act::deed, {3, 3, 3, 0}},       {Act::feel, {0, 12, 12, 0}},
          {Act::ask_place, {0, 2, 2, 8}},  {Act::ask_spot, {0, 2, 2, 8}},
          {Act::ask_holder, {0, 2, 2, 6}}, {Act::ask_things, {0, 1, 1, 5}},
          {Act::ask_likes, {0, 1, 1, 4}},  {Act::ask_wish, {0, 1, 1, 3}},
          {Act::ask_self, {0, 0, 0, 4}},   {Act::ask_presence, {0, 1, 1, 4}},
          {Act::ask_giver, {0, 1, 1, 6}},  {Act::ask_crowd, {0, 1, 1, 4}},
          {Act::ask_mood, {0, 1, 1, 4}}};
}

std::vector<Wording> story_wordings() {
  return {{Act::open, 4, "once upon a time, a {trait} {species} called {name} lived {p}."},
          {Act::open, 3, "{name} was a {trait} {species} who lived {p}."},
          {Act::open, 2, "long ago, a {trait} {species} called {name} had a home {p}."},
          {Act::befriend, 3, "{s} had a friend, a {trait} {species} called {name}."},
          {Act::befriend, 2, "{s} was friends with a {trait} {species} called {name}."},
          {Act::settle, 3, "a {trait} {species} called {name} lived {p}."},
          {Act::settle, 2, "{p} lived a {trait} {species} called {name}."},
          {Act::arrive, 3, "a {trait} {species} called {name} came to {to}."},
          {Act::arrive, 2, "just then, a {trait} {species} called {name} came to {to}."},
          {Act::own, 3, "{s} had a {adj} {noun}."},
          {Act::own, 1, "{s} owned a {adj} {noun}."},
          {Act::lie, 3, "there was a {adj} {noun} {p}."},
          {Act::lie, 2, "a {adj} {noun} lay {p}."},
          {Act::like, 3, "{s} liked {t}."},
          {Act::like, 1, "{s} was fond of {t}."},
          {Act::want, 4, "{s} wanted the {o}."},
          {Act::want, 2, "{s} wished for the {o}."},
          {Act::want, 1, "{s} dreamed of the {o}."},
          {Act::go, 4, "{s} {v} to {to}."},
          {Act::go, 1, "{s} {v} all the way to {to}."},
          {Act::meet, 3, "there {he} met {t}."},
          {Act::meet, 1, "{he} met {t} there."},
          {Act::see, 3, "there {he} saw the {o}."},
          {Act::see, 1, "{he} saw the {o} there."},
          {Act::take, 3, "{s} picked up the {o}."},
          {Act::take, 2, "{s} took the {o}."},
          {Act::put, 3, "{s} left the {o} {p}."},
          {Act::put, 1, "{s} hid the {o} {p}."},
          {Act::give, 3, "{s} gave the {o} to {t}."},
          {Act::give, 2, "{s} gave {t} the {o}."},
          {Act::thank, 3, "\"Thank you, {T},\" said {x}."},
          {Act::thank, 1, "{s} thanked {t}."},
          {Act::ask, 3, "\"May I have the {o}, {T}?\" asked {x}."},
          {Act::ask, 2, "{s} asked {t} for the {o}."},
          {Act::consent, 3, "{s} smiled and gave it to {t}."},
          {Act::consent, 2, "\"Here you are, {T},\" said {x}."},
          {Act::refuse, 3, "{s} shook {his} head and kept it."},
          {Act::refuse, 2, "\"No, {T},\" said {x}."},
          {Act::play, 3, "{both} played with the {o}."},
          {Act::play, 1, "{both} played with the {o} {p}."},
          {Act::laugh, 2, "{both} laughed."},
          {Act::laugh, 1, "{both} danced in a circle."},
          {Act::laugh, 1, "{both} talked for a while {p}."},
          {Act::journey, 3, "{both} went to {to} together."},
          {Act::journey, 1, "{both} set off for {to}."},
          {Act::deed, 1, "{s} {deed}."},
          {Act::feel, 3, "{s} was {mood}."},
          {Act::feel, 1, "{s} felt very {mood}."}};
}

std::vector<Wording> other_wordings() {
  return {{Act::ask_place, 1, "where was {x}?"},
          {Act::tell_place, 1, "{he} was {p}."},
          {Act::ask_spot, 1, "where was the {o}?"},
          {Act::tell_spot_held, 1, "it was {p} with {N}."},
          {Act::tell_spot_free, 1, "it was {p}."},
          {Act::ask_holder, 1, "who had the {o}?"},
          {Act::tell_holder, 1, "{N} had it."},
          {Act::tell_no_holder, 1, "no one had it."},
          {Act::ask_things, 1, "what did {x} have?"},
          {Act::tell_things, 1, "{he} had {things}."},
          {Act::tell_no_things, 1, "{he} had nothing."},
          {Act::ask_likes, 1, "whom did {x} like?"},
          {Act::tell_likes, 1, "{he} liked {list}."},
          {Act::tell_no_likes, 1, "{he} liked no one."},
          {Act::ask_wish, 1, "what did {x} want?"},
          {Act::tell_wish, 1, "{he} wanted the {o}."},
          {Act::tell_no_wish, 1, "{he} wanted nothing."},
          {Act::ask_self, 1, "who was {N}?"},
          {Act::tell_self, 1, "{he} was a {trait} {species}."},
          {Act::ask_presence, 1, "was {x} {p}?"},
          {Act::tell_yes, 1, "yes, {he} was."},
          {Act::tell_no, 1, "no, {he} was {p}."},
          {Act::ask_giver, 1, "who gave {t} the {o}?"},
          {Act::tell_giver, 1, "{N} did."},
          {Act::ask_crowd, 1, "who was {p}?"},
          {Act::tell_crowd_one, 1, "{list} was there."},
          {Act::tell_crowd_many, 1, "{list} were there."},
          {Act::tell_crowd_none, 1, "no one was there."},
          {Act::ask_mood, 1, "how did {x} feel?"},
          {Act::tell_mood, 1, "{he} felt {mood}."},
          {Act::dawn, 3, "one {weather} morning, {x} woke up {p}."},
          {Act::dawn, 2, "one {weather} day, {x} was {p}."},
          {Act::noon, 3, "soon it was a {weather} afternoon."},
          {Act::noon, 2, "then came a {weather} afternoon."},
          {Act::dusk, 3, "at last it was a {weather} evening."},
          {Act::dusk, 2, "then came a {weather} evening."},
          {Act::sleep, 3, "that night, {x} fell asleep {p}."},
          {Act::sleep, 1, "soon {x} slept {p}."},
          {Act::sleep_with, 3, "that night, {x} fell asleep {p} with {things}."},
          {Act::sleep_with, 1, "soon {x} slept {p} with {things}."},
          {Act::end, 1, "the end."}};
}

Language make_default() {
  Language language{
      .names = names(),
      .animals = animals(),
      .traits = traits(),
      .adjectives = {"red", "blue", "little", "green", "shiny", "yellow", "big", "white", "soft",
                     "black", "round", "purple"},
      .nouns = {"ball",  "kite",  "hat",  "drum",   "book",   "lamp",   "shell", "bell",
                "cup",   "rope",  "boat", "basket", "coin",   "ribbon", "key",   "flute",
                "spoon", "scarf", "doll", "map",    "pillow", "whistle"},
      .places = places(),
      .weathers = {"sunny", "rainy", "windy", "cloudy", "foggy", "warm", "cold", "snowy"},
      .verbs = {{"went", 3}, {"walked", 2}},
      .likelihoods = likelihoods(),
      .wordings = story_wordings(),
      .limits = {.people = 3,
                 .things = 3,
                 .places = 4,
                 .spans = {{{3, 5, 8}, {3, 6, 6}, {2, 4, 6}, {1, 2, 8}}}},
      .weights = {}};
  const std::vector<Wording> others = other_wordings();
  language.wordings.insert(language.wordings.end(), others.begin(), others.end());
  return language;
}

}  // namespace

const Language& default_language() {
  static const Language language = make_default();
  return language;
}

void validate(const Language& language) {
  const Limits& limits = language.limits;
  const auto within = [](int limit, std::size_t words) {
    return limit >= 1 && static_cast<std::size_t>(limit) <= words;
  };
  if (limits.people > 4 || !within(limits.people, language.names.size()) ||
      !within(limits.people, language.animals.size()))
    throw std::invalid_argument("a story's people must be 1 to 4, each of a name and a species");
  if (limits.things > 4 || !within(limits.things, language.nouns.size()))
    throw std::invalid_argument("a story's things must be 1 to 4, each of its own noun");
  if (limits.places < 2 || !within(limits.places, language.places.size()))
    throw std::invalid_argument("a story's places must be 2 or more, each of its own word");
  if (language.traits.empty() || language.adjectives.empty() || language.weathers.empty())
    throw std::invalid_argument("a language wants traits, adjectives and weathers");
  for (const Span& span : limits.spans)
    if (span.least < 0 || span.most < span.least || span.turn == 0)
      throw std::invalid_argument("a phase wants 0 <= least <= most and a turn above 0");
}

}  // namespace strata::tales
