// The reader against the storyteller: it must find every figure from the text alone.
#include "data/tales/reader.h"

#include <cmath>

#include "data/tales/corpus.h"
#include "data/tales/judgement.h"
#include "data/tales/storyteller.h"
#include "tests/catch.h"
#include "tests/tales/recovered_bits.h"

namespace {

using namespace strata::tales;
using strata::tests::contains;
using strata::tests::recovered_bits;

TEST_CASE("the reader recovers the information of two thousand stories") {
  const Language& language = default_language();
  Patterns patterns(language);
  for (std::uint64_t i = 0; i < 2000; ++i) {
    RandomChooser chooser(11, i);
    const std::string story = tell_story(language, chooser);
    const std::optional<double> bits = recovered_bits(language, patterns, story);
    INFO(story);
    REQUIRE(bits.has_value());
    REQUIRE(std::abs(*bits - chooser.bits()) <= 1e-9 * chooser.bits());
  }
}

TEST_CASE("changed weights change what the reader recovers") {
  Language changed = default_language();
  changed.weights.to_liked += 1;
  Patterns patterns(changed);
  double difference = 0;
  for (std::uint64_t i = 0; i < 20; ++i) {
    RandomChooser chooser(11, i);
    const std::string story = tell_story(default_language(), chooser);
    difference += std::abs(recovered_bits(changed, patterns, story).value() - chooser.bits());
  }
  CHECK(difference > 1e-3);
}

TEST_CASE("each sentence of a story can be read in one way at its place") {
  const Language& language = default_language();
  Patterns patterns(language);
  for (std::uint64_t i = 0; i < 500; ++i) {
    RandomChooser chooser(12, i);
    const std::string story = tell_story(language, chooser);
    for (const Sentence& sentence : split_sentences(story)) {
      int tellings = 0, answers = 0;
      for (const Reading& reading : patterns.read(sentence.text))
        ++(is_reply(reading.wording->act) ? answers : tellings);
      INFO(sentence.text);
      CHECK(tellings <= 1);
      CHECK(answers <= 1);
      CHECK(tellings + answers >= 1);
    }
  }
}

TEST_CASE("a measured corpus is the sum of its stories") {
  std::string corpus;
  double bits = 0;
  for (std::uint64_t i = 0; i < 50; ++i) {
    RandomChooser chooser(13, i);
    if (i > 0) corpus += separator;
    corpus += tell_story(default_language(), chooser);
    bits += chooser.bits();
  }
  const Measurement measured = measure(default_language(), corpus);
  CHECK(measured.stories == 50);
  CHECK(measured.bytes == corpus.size() - 49 * std::string(separator).size());
  CHECK(std::abs(measured.bits - bits) <= 1e-12 * bits);
}

TEST_CASE("what the storyteller could not have written is not measured") {
  RandomChooser chooser(14, 0);
  const std::string story = tell_story(default_language(), chooser);
  const auto refusal = [&](const std::string& text) {
    try {
      (void)measure_story(default_language(), text);
      return std::string("measured");
    } catch (const std::runtime_error& error) {
      return std::string(error.what());
    }
  };
  CHECK(refusal(story) == "measured");
  CHECK(refusal("") == "it does not end with a line break");
  CHECK(refusal("\n") == "it has no end");
  CHECK(refusal(story.substr(0, story.size() - 1)) == "it does not end with a line break");
  CHECK(refusal(story + "\n") == "white space stands after its end");
  CHECK(refusal(" " + story).find("the white space before") == 0);
  CHECK(refusal(story.substr(0, story.rfind(" The end")) + "\n") == "it has no end");
  std::string other_space = story;
  other_space[story.find(". ") + 1] = '\n';
  CHECK(refusal(other_space).find("the white space before") == 0);
  CHECK(refusal(story.substr(0, story.size() - 1) + " The end.\n") ==
        "'The end.' stands after its end");
  CHECK_THROWS_WITH(measure(default_language(), story + separator + "No.\n"),
                    contains("story 2 is not one of the language: 'No.'"));
}

TEST_CASE("a sentence that comes before its time is true but not measured") {
  // The day begins after two sentences, while a setting has at least three.
  const std::string early =
      "Mia was a brave fox who lived by the river. Mia had a friend, a shy bear called Tom.\n"
      "One sunny morning, Mia woke up by the river.";
  CHECK(judge(default_language(), early, false).right == 3);
  Patterns patterns(default_language());
  Odds odds(default_language());
  StoryReader reader(default_language(), patterns, true, &odds);
  for (const Sentence& sentence : split_sentences(early)) reader.read(sentence.text);
  CHECK_FALSE(reader.bits().has_value());
}

}  // namespace
