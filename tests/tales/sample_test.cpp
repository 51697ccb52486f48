// The verdict on samples: planted faults are found, real stories have none, and no bytes crash it.
#include <algorithm>

#include "data/tales/corpus.h"
#include "data/tales/judgement.h"
#include "data/tales/sentences.h"
#include "data/tales/storyteller.h"
#include "tests/catch.h"

namespace {

using namespace strata::tales;

/// A story of the language, with most kinds of sentences.
const std::string story =
    "Mia was a brave fox who lived by the river. She had a red ball. Mia had a friend, a shy bear "
    "called Tom. A lazy owl called Ben lived in the garden. Ben wanted the red ball.\n"
    "One sunny morning, Mia woke up by the river. Mia gave the red ball to Tom. \"Thank you, "
    "Mia,\" "
    "said Tom. Tom padded to the garden. There he met Ben. The owl asked Tom for the red ball. The "
    "bear shook his head and kept it. Where was the red ball? It was in the garden with Tom.\n"
    "Soon it was a sunny afternoon. Ben was sad. Tom and Ben played with the red ball. They "
    "laughed. Who was in the garden? Tom and Ben were there.\n"
    "At last it was a rainy evening. Who gave Tom the red ball? Mia did. Was Ben by the river? No, "
    "he was in the garden.\n"
    "That night, Tom fell asleep in the garden with the red ball. The end.\n";

Judgement judged(const std::string& text, bool complete = true) {
  return judge(default_language(), text, complete);
}

std::string with(const std::string& what, const std::string& instead) {
  std::string changed = story;
  const std::size_t at = changed.find(what);
  REQUIRE(at != std::string::npos);
  return changed.replace(at, what.size(), instead);
}

struct Fault {
  std::string what, instead, sentence;
};

TEST_CASE("a story of the language is well formed and true") {
  const Judgement judgement = judged(story);
  CHECK(judgement.first_malformed.sentence == "");
  CHECK(judgement.first_untrue.sentence == "");
  CHECK(judgement.sentences == 27);
  CHECK(judgement.right == judgement.sentences);
  CHECK(judgement.stories == 1);
  CHECK(judgement.finished == 1);
  CHECK(judgement.share_true() == 1);
}

TEST_CASE("each planted untruth is found, in its sentence") {
  const std::vector<Fault> faults = {
      {"It was in the garden with Tom.", "It was in the garden with Ben.",
       "It was in the garden with Ben."},
      {"It was in the garden with Tom.", "It was by the river with Tom.",
       "It was by the river with Tom."},
      {"It was in the garden with Tom.", "It was in the garden.", "It was in the garden."},
      {"It was in the garden with Tom.", "Tom had it.", "Tom had it."},
      {"Mia did.", "Ben did.", "Ben did."},
      {"Tom and Ben were there.", "Tom was there.", "Tom was there."},
      {"Tom and Ben were there.", "Ben and Tom were there.", "Ben and Tom were there."},
      {"Tom and Ben were there.", "Mia, Tom and Ben were there.", "Mia, Tom and Ben were there."},
      {"No, he was in the garden.", "Yes, he was.", "Yes, he was."},
      {"No, he was in the garden.", "No, she was in the garden.", "No, she was in the garden."},
      {"No, he was in the garden.", "No, he was by the river.", "No, he was by the river."},
      {"Mia gave the red ball to Tom.", "Mia gave the red ball to Ben.",
       "Mia gave the red ball to Ben."},
      {"Mia gave the red ball to Tom.", "Tom gave the red ball to Mia.",
       "Tom gave the red ball to Mia."},
      {"Mia gave the red ball to Tom.", "Mia gave the blue ball to Tom.",
       "Mia gave the blue ball to Tom."},
      {"\"Thank you, Mia,\" said Tom.", "\"Thank you, Tom,\" said Mia.",
       "\"Thank you, Tom,\" said Mia."},
      {"Tom padded to", "Tom hopped to", "Tom hopped to the garden."},
      {"Tom padded to the garden", "Tom padded to the river", "Tom padded to the river."},
      {"There he met Ben.", "There she met Ben.", "There she met Ben."},
      {"There he met Ben.", "There he met Mia.", "There he met Mia."},
      {"kept it.", "kept it. They laughed.", "They laughed."},
      {"shook his head", "shook her head", "The bear shook her head and kept it."},
      {"The bear shook his head and kept it.", "Tom smiled and gave it to Ben.",
       "Tom smiled and gave it to Ben."},
      {"The bear shook his head and kept it.", "Mia shook her head and kept it.",
       "Mia shook her head and kept it."},
      {"Ben was sad.", "Ben was happy.", "Ben was happy."},
      {"Ben was sad.", "Mia was sad.", "Mia was sad."},
      {"Ben was sad.", "The cat was sad.", "The cat was sad."},
      {"Ben was sad.", "Nora was sad.", "Nora was sad."},
      {"Tom and Ben played", "Mia and Tom played", "Mia and Tom played with the red ball."},
      {"called Tom.", "called Mia.", "Mia had a friend, a shy bear called Mia."},
      {"A lazy owl", "A shy owl", "A shy owl called Ben lived in the garden."},
      {"Ben wanted the red ball.", "Mia wanted the red ball.", "Mia wanted the red ball."},
      {"Soon it was a sunny afternoon.", "At last it was a sunny evening.",
       "At last it was a sunny evening."},
      {"with the red ball. The end.", "with the red ball. Tom took a long nap. The end.",
       "Tom took a long nap."},
      {"asleep in the garden with the red ball", "asleep in the garden",
       "That night, Tom fell asleep in the garden."},
      {"They laughed.", "The end.", "The end."},
      {"They laughed.", "Mia had it.", "Mia had it."},
      {"She had a red ball.", "She had a red ball. She had a blue ball.", "She had a blue ball."}};
  for (const Fault& fault : faults) {
    INFO(fault.what << " -> " << fault.instead);
    const Judgement judgement = judged(with(fault.what, fault.instead));
    CHECK(judgement.first_malformed.sentence == "");
    CHECK(judgement.first_untrue.sentence == fault.sentence);
    CHECK(judgement.first_untrue.reason != "");
    CHECK(judgement.share_well_formed() == 1);
    CHECK(judgement.share_true() < 1);
  }
}

TEST_CASE("each planted malformation is found, in its sentence") {
  const std::vector<Fault> faults = {
      {"Ben was sad.", "Ben was sadd.", "Ben was sadd."},
      {"Ben was sad.", "ben was sad.", "ben was sad."},
      {"Ben was sad.", "Ben  was sad.", "Ben  was sad."},
      {"Ben was sad.", "Ben was sad .", "Ben was sad ."},
      {"Ben was sad.", "Ben was sad?", "Ben was sad?"},
      {"Ben was sad.", "Ben was was sad.", "Ben was was sad."},
      {"Ben was sad.", "Ben sad.", "Ben sad."},
      {"Ben was sad.", "Sad was Ben.", "Sad was Ben."},
      {"Ben was sad.", "Ben was Sad.", "Ben was Sad."},
      {"Ben was sad.", "Ben was sad", "Ben was sad Tom and Ben played with the red ball."},
      {"They laughed.", "She laughed.", "She laughed."},
      {"Thank you, Mia,\"", "Thank you, Mia\"", "\"Thank you, Mia\" said Tom."},
      {"in the garden with Tom", "by the garden with Tom", "It was by the garden with Tom."},
      {"red ball to Tom", "ball red to Tom", "Mia gave the ball red to Tom."},
      {"The end.", "THE END.", "THE END."}};
  for (const Fault& fault : faults) {
    INFO(fault.what << " -> " << fault.instead);
    const Judgement judgement = judged(with(fault.what, fault.instead));
    CHECK(judgement.first_malformed.sentence == fault.sentence);
    CHECK(judgement.malformed == 1);
    CHECK(judgement.share_well_formed() < 1);
  }
}

TEST_CASE("a wrong person in the answer of any story is found") {
  int tried = 0;
  for (std::uint64_t i = 0; i < 300; ++i) {
    RandomChooser chooser(21, i);
    std::string text = tell_story(default_language(), chooser);
    const std::size_t question = text.find("Who gave ");
    if (question == std::string::npos) continue;
    const std::size_t answer = text.find("? ", question) + 2;
    const std::size_t end = text.find(' ', answer);
    const std::string name = text.substr(answer, end - answer);
    const std::string receiver =
        text.substr(question + 9, text.find(' ', question + 9) - question - 9);
    if (receiver == "the") continue;
    text.replace(answer, name.size(), receiver);
    const Judgement judgement = judged(text);
    INFO(text);
    CHECK(judgement.untrue == 1);
    CHECK(judgement.first_untrue.sentence == receiver + " did.");
    ++tried;
  }
  CHECK(tried > 10);
}

TEST_CASE("a changed place or a misspelt word in any story is found") {
  for (std::uint64_t i = 0; i < 200; ++i) {
    RandomChooser chooser(22, i);
    const std::string text = tell_story(default_language(), chooser);
    std::string moved = text;  // where the sleeper sleeps follows from the story
    const std::size_t sleep = text.rfind('\n', text.size() - 2);
    const std::size_t place = text.find(" the ", text.find("sle", sleep));
    const std::size_t preposition = text.rfind(' ', place - 1) + 1;
    const std::size_t end = text.find_first_of(" .", place + 5);
    const std::string other = text.substr(preposition, end - preposition) == "in the garden"
                                  ? "in the forest"
                                  : "in the garden";
    moved.replace(preposition, end - preposition, other);
    INFO(moved);
    CHECK(judged(moved).untrue >= 1);

    Random random(i, 1);
    std::string misspelt = text;
    std::size_t at = 0;
    do at = random.below(static_cast<std::uint32_t>(text.size()));
    while (text[at] < 'a' || text[at] > 'z');
    misspelt[at] = 'x';
    INFO(misspelt);
    const Judgement judgement = judged(misspelt);
    CHECK((text[at] == 'x' || judgement.malformed >= 1));
  }
}

TEST_CASE("no part of a true story is called untrue, wherever it begins and stops") {
  for (std::uint64_t i = 0; i < 400; ++i) {
    RandomChooser chooser(23, i);
    const std::string text = tell_story(default_language(), chooser) + separator +
                             tell_story(default_language(), chooser);
    Random random(i, 2);
    const std::size_t start = random.below(static_cast<std::uint32_t>(text.size() / 2));
    const std::size_t size = random.below(static_cast<std::uint32_t>(text.size() / 2));
    const Judgement judgement = judged(text.substr(start, size), false);
    INFO(text.substr(start, size));
    CHECK(judgement.untrue == 0);
    // A text that begins within a sentence, but with a capital (of a name), has a malformed one.
    CHECK(judgement.malformed <= 1);
    CHECK((judgement.malformed == 0 || (text[start] >= 'A' && text[start] <= 'Z')));
  }
}

TEST_CASE("a text that begins mid-story knows what it has been told") {
  const Judgement judgement = judged(
      "Tom padded to the garden. There he met Ben. Where was Ben? He was in the garden. Tom had a "
      "red hat. Who had the red hat? Ben had it. Where was",
      false);
  CHECK(judgement.begins_mid_story);
  CHECK(judgement.cut_off);
  CHECK(judgement.sentences == 7);
  CHECK(judgement.unknown == 2);  // nobody knows where Tom was, nor Ben
  CHECK(judgement.untrue == 1);
  CHECK(judgement.first_untrue.sentence == "Ben had it.");
  CHECK(judgement.share_true() == 0.8);
}

TEST_CASE("the same text is untrue where a whole story was promised") {
  const Judgement judgement = judged("Tom padded to the garden. There he met", true);
  CHECK(judgement.first_untrue.sentence == "Tom padded to the garden.");
  CHECK(judgement.first_malformed.sentence == "There he met");
}

TEST_CASE("halves of sentences at both ends are not counted") {
  const Judgement judgement =
      judged(" to the garden. There was a red hat in the cave. Who was", false);
  CHECK(judgement.sentences == 1);
  CHECK(judgement.untrue + judgement.malformed == 0);
}

TEST_CASE("stories follow each other with and without a separator") {
  CHECK(judged(story + separator + story).finished == 2);
  CHECK(judged(story + story).right == judged(story).right * 2);
  const Judgement unfinished = judged(story.substr(0, story.find('\n') + 1) + separator + story);
  CHECK(unfinished.stories == 2);
  CHECK(unfinished.finished == 1);
  CHECK(unfinished.untrue == 0);
}

TEST_CASE("nothing is judged of an empty text") {
  for (const bool complete : {false, true}) {
    CHECK(judged("", complete).sentences == 0);
    CHECK(judged(" \n ", complete).stories == 0);
    CHECK(judged(separator, complete).share_true() == 0);
  }
}

TEST_CASE("no bytes crash the reader") {
  Random random(99, 0);
  const auto below = [&](std::size_t bound) {
    return static_cast<std::size_t>(random.below(static_cast<std::uint32_t>(bound)));
  };
  std::uint64_t sentences = 0;
  const auto survive = [&](const std::string& text) {
    for (const bool complete : {false, true}) {
      const Judgement j = judge(default_language(), text, complete);
      REQUIRE(j.sentences == j.malformed + j.untrue + j.unknown + j.right);
      sentences += j.sentences;
    }
    try {
      (void)measure(default_language(), text);
    } catch (const std::runtime_error&) {  // refused in words
    }
  };
  for (int i = 0; i < 300; ++i) {
    std::string noise(below(300), '\0');
    for (char& c : noise) c = static_cast<char>(below(256));
    survive(noise);
  }
  for (std::uint64_t i = 0; i < 600; ++i) {
    RandomChooser chooser(24, i / 3);
    std::string text = tell_story(default_language(), chooser);
    for (std::size_t k = 0; k < 1 + i % 3; ++k) {
      const std::size_t at = below(text.size()), size = below(text.size() - at);
      switch (below(4)) {
        case 0:
          text[at] = static_cast<char>(below(256));
          break;
        case 1:
          text.erase(at, size / 4);
          break;
        case 2:
          text.insert(below(text.size()), text.substr(at, size / 2));
          break;
        default:
          text.insert(at, separator);
          break;
      }
    }
    survive(text);
  }
  // Sentences in random order, of several stories: well formed, and of confused meaning.
  for (std::uint64_t i = 0; i < 200; ++i) {
    RandomChooser chooser(25, i);
    const std::string text =
        tell_story(default_language(), chooser) + tell_story(default_language(), chooser);
    std::vector<Sentence> order = split_sentences(text);
    for (std::size_t k = order.size() - 1; k > 0; --k) std::swap(order[k], order[below(k + 1)]);
    std::string shuffled;
    for (const Sentence& sentence : order) shuffled += std::string(sentence.text) + " ";
    survive(shuffled);
  }
  CHECK(sentences > 10'000);
}

}  // namespace
