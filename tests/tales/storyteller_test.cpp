#include "data/tales/storyteller.h"

#include <cmath>
#include <map>
#include <set>
#include <unordered_set>

#include "data/tales/corpus.h"
#include "data/tales/sentences.h"
#include "tests/catch.h"

namespace {

using namespace strata::tales;

std::string story(std::uint64_t seed, std::uint64_t index) {
  RandomChooser chooser(seed, index);
  return tell_story(default_language(), chooser);
}

/// FNV-1a, 64 bits.
std::uint64_t hash(std::string_view text, std::uint64_t state = 0xcbf29ce484222325) {
  for (const char c : text) state = (state ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return state;
}

void check_no_repeats(std::uint64_t stories) {
  std::unordered_set<std::uint64_t> seen;
  double probability = 0;
  for (std::uint64_t i = 0; i < stories; ++i) {
    RandomChooser chooser(1, i);
    seen.insert(hash(tell_story(default_language(), chooser)));
    probability += std::exp2(-chooser.bits());
  }
  // Hashes of 64 bits meet by chance less than once in a thousand such tests.
  CHECK(seen.size() == stories);
  // The mean probability of a random story is the chance that another one equals it. Ten million
  // words are under 100,000 stories, so under 5e9 pairs.
  CHECK(5e9 * probability / static_cast<double>(stories) < 1e-6);
}

TEST_CASE("a seed gives the same stories on every platform") {
  std::uint64_t state = hash("");
  for (std::uint64_t i = 0; i < 1000; ++i) state = hash(story(42, i), state);
  CHECK(state == 0x40f052ec097a27e0);
}

TEST_CASE("seeds and indices give different stories") {
  std::set<std::string> stories;
  for (std::uint64_t seed = 0; seed < 30; ++seed)
    for (std::uint64_t i = 0; i < 30; ++i) stories.insert(story(seed, i));
  CHECK(stories.size() == 900);
}

TEST_CASE("ten million words would repeat no story") { check_no_repeats(30'000); }
TEST_CASE("ten million words repeat no story", "[.][long]") { check_no_repeats(100'000); }

TEST_CASE("random integers are uniform and below their bound") {
  Random random(7, 0);
  std::array<int, 6> counts{};
  for (int i = 0; i < 60'000; ++i) ++counts.at(random.below(6));
  double chi_squared = 0;
  for (const int count : counts) chi_squared += (count - 1e4) * (count - 1e4) / 1e4;
  CHECK(chi_squared < 25.7);  // five degrees of freedom: exceeded once in 10,000 seeds
  CHECK(random.below(1) == 0);
}

TEST_CASE("the generator is xoshiro256**, seeded by splitmix64") {
  // Mixed seed 0 is 0, so that stream 0 is seeded with splitmix64's first four outputs from 0.
  Random random(0, 0);
  CHECK(random.next() == 0x99ec5f36cb75f2b4);
  CHECK(random.next() == 0xbf6e1f784956452a);
}

TEST_CASE("the vocabulary is compact and each word has one spelling") {
  std::map<std::string, int> words;
  std::vector<Token> tokens;
  for (std::uint64_t i = 0; i < 4000; ++i) {
    const std::string text = story(5, i);
    for (const Sentence& sentence : split_sentences(text)) {
      split_tokens(sentence.text, tokens);
      for (const Token& token : tokens) ++words[std::string(token.text)];
    }
  }
  CHECK(words.size() >= 250);  // capitals and punctuation counted
  CHECK(words.size() <= 400);
}

TEST_CASE("stories have the length that the tables promise") {
  double words = 0;
  for (std::uint64_t i = 0; i < 2000; ++i) {
    const std::uint64_t count = count_words(story(9, i));
    CHECK(count >= 60);
    CHECK(count <= 250);
    words += static_cast<double>(count) / 2000;
  }
  CHECK(words > 120);
  CHECK(words < 160);
}

TEST_CASE("no story contains the separator") {
  for (std::uint64_t i = 0; i < 200; ++i) {
    const std::string text = story(1, i);
    CHECK(text.find('<') == std::string::npos);
    CHECK(text.back() == '\n');
  }
}

TEST_CASE("languages that do not fit are refused") {
  Language language = default_language();
  CHECK_NOTHROW(validate(language));
  language.limits.people = 5;
  CHECK_THROWS_WITH(validate(language), strata::tests::contains("people must be 1 to 4"));
  language = default_language();
  language.nouns.resize(2);
  CHECK_THROWS_WITH(validate(language), strata::tests::contains("things"));
  language = default_language();
  language.limits.spans[1] = {3, 2, 1};
  CHECK_THROWS_WITH(validate(language), strata::tests::contains("phase"));
}

}  // namespace
