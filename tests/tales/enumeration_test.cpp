// Every story of a small language, one by one: the proof that the figures mean what they say.
#include <cmath>
#include <unordered_set>

#include "data/tales/corpus.h"
#include "data/tales/enumerate.h"
#include "data/tales/storyteller.h"
#include "tests/catch.h"
#include "tests/tales/recovered_bits.h"
#include "tests/tales/small_language.h"

namespace {

using namespace strata::tales;
using strata::tests::recovered_bits;
using strata::tests::small_language;

/// What a walk through all stories finds.
struct Census {
  std::size_t stories = 0;
  std::size_t distinct = 0;
  double probability = 0;    // the sum over all stories
  double mean_bits = 0;      // of what the chooser adds up
  double entropy = 0;        // by the chain rule: each fork's entropy, times the chance to reach it
  double worst_reading = 0;  // largest error of the reader's figure, relative
  bool all_read = true;
};

double entropy_of(const Choice& choice) {
  double entropy = 0;
  for (const std::uint32_t weight : choice.weights) {
    const double p = static_cast<double>(weight) / choice.total;
    if (weight != 0) entropy -= p * std::log2(p);
  }
  return entropy;
}

constexpr std::size_t most_stories = 100'000;

Census take_census(const Language& language) {
  Census census;
  Sum probability, mean_bits, entropy;
  std::unordered_set<std::string> texts;
  Patterns patterns(language);
  EnumeratingChooser chooser;
  do {
    if (census.stories == most_stories) FAIL("more stories than a test can list");
    const std::string story = tell_story(language, chooser);
    const double bits = chooser.bits();
    double reached = 1;
    for (std::size_t i = 0; i < chooser.choices().size(); ++i) {
      // A fork is met for the first time when the choice before it is new.
      if (census.stories == 0 || i > chooser.first_new())
        entropy.add(reached * entropy_of(chooser.choices()[i]));
      reached *= chooser.choices()[i].probability();
    }
    ++census.stories;
    texts.insert(story);
    probability.add(chooser.probability());
    mean_bits.add(chooser.probability() * bits);
    const std::optional<double> read = recovered_bits(language, patterns, story);
    census.all_read = census.all_read && read.has_value();
    if (read) census.worst_reading = std::max(census.worst_reading, std::abs(*read - bits) / bits);
  } while (chooser.next());
  census.distinct = texts.size();
  census.probability = probability.value();
  census.mean_bits = mean_bits.value();
  census.entropy = entropy.value();
  return census;
}

void check(const Language& language, std::size_t stories) {
  const Census census = take_census(language);
  INFO(census.stories << " stories, " << census.entropy << " bits");
  CHECK(census.stories == stories);
  CHECK(census.distinct == census.stories);
  // A probability is a product of some twenty rounded factors, a sum of such as exact as its terms.
  CHECK(std::abs(census.probability - 1) <= 1e-12);
  CHECK(std::abs(census.entropy - census.mean_bits) <= 1e-12 * census.mean_bits);
  CHECK(census.all_read);
  CHECK(census.worst_reading <= 1e-12);
}

TEST_CASE("all stories about comings and goings: distinct, of total probability one") {
  check(small_language({Act::befriend, Act::own, Act::go, Act::meet, Act::deed}, {2, 1, 1, 0}),
        9056);
  check(
      small_language({Act::settle, Act::arrive, Act::go, Act::meet, Act::ask_place}, {2, 2, 0, 1}),
      6272);
}

TEST_CASE("all stories about gifts: distinct, of total probability one") {
  const auto language = [](int day, int evening) {
    return small_language({Act::befriend, Act::own, Act::give, Act::thank, Act::play, Act::put,
                           Act::ask_giver, Act::ask_spot, Act::ask_things},
                          {3, day, 0, evening});
  };
  check(language(2, 0), 10880);
  check(language(1, 1), 7040);
}

TEST_CASE("all stories about wishes: distinct, of total probability one") {
  check(small_language({Act::settle, Act::lie, Act::want, Act::take, Act::see, Act::feel, Act::go,
                        Act::ask_holder, Act::ask_wish},
                       {2, 2, 0, 1}),
        12832);
  check(small_language({Act::befriend, Act::own, Act::want, Act::ask, Act::feel, Act::like,
                        Act::ask_mood, Act::ask_wish},
                       {3, 2, 0, 1}),
        6400);
}

TEST_CASE("all stories about friends and questions: distinct, of total probability one") {
  check(small_language(
            {Act::befriend, Act::journey, Act::laugh, Act::like, Act::ask_likes, Act::ask_crowd,
             Act::ask_presence, Act::ask_things, Act::ask_self, Act::ask_wish},
            {2, 1, 0, 1}),
        8640);
}

TEST_CASE("all ways to word a story: distinct, of total probability one") {
  Language language = small_language({Act::settle, Act::lie, Act::ask_place}, {2, 0, 0, 1});
  language.wordings = default_language().wordings;
  language.nouns = {"ball", "kite"};
  check(language, 15360);
}

TEST_CASE("all ways to mention somebody: distinct, of total probability one") {
  Language language = small_language({Act::befriend, Act::deed, Act::laugh}, {2, 1, 0, 0});
  language.weights.species = 1;
  check(language, 5760);
}

TEST_CASE("a language in which two derivations make one text is caught") {
  Language language = small_language({Act::deed, Act::ask_place}, {2, 0, 0, 1});
  language.traits[1].deed = language.traits[0].deed;
  const Census census = take_census(language);
  CHECK(census.distinct < census.stories);
}

TEST_CASE("a chooser that records sees what the bits are made of") {
  RandomChooser source(3, 5);
  RecordingChooser chooser(source);
  const std::string story = tell_story(default_language(), chooser);
  RandomChooser again(3, 5);
  CHECK(story == tell_story(default_language(), again));
  double bits = 0;
  for (const Choice& choice : chooser.choices()) bits -= std::log2(choice.probability());
  CHECK(std::abs(bits - again.bits()) <= 1e-12 * bits);
  CHECK(chooser.bits() == again.bits());
}

}  // namespace
