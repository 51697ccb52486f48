#include "data/tales/judgement.h"

#include <fmt/format.h>

#include <memory>
#include <stdexcept>

#include "data/tales/corpus.h"
#include "data/tales/reader.h"
#include "data/tales/sentences.h"

namespace strata::tales {
namespace {

double share(std::uint64_t part, std::uint64_t all) {
  return all == 0 ? 0 : static_cast<double>(part) / static_cast<double>(all);
}

/// Judges the documents of a text one after the other.
class Judge {
 public:
  Judge(const Language& language, bool complete)
      : language_(language), patterns_(language), complete_(complete) {}

  void document(std::string_view text, bool first, bool last) {
    std::vector<Sentence> sentences = split_sentences(text);
    const bool open_ends = !complete_;
    if (first && open_ends && !sentences.empty() && starts_within(text) &&
        patterns_.read(sentences.front().text).empty()) {
      sentences.erase(sentences.begin());
      judgement_.begins_mid_story = true;
    }
    if (last && open_ends && !sentences.empty() && !sentences.back().ended) {
      sentences.pop_back();
      judgement_.cut_off = true;
    }
    std::unique_ptr<StoryReader> reader;
    bool whole = !(first && judgement_.begins_mid_story);
    for (const Sentence& sentence : sentences) {
      if (reader == nullptr) {
        if (first && open_ends && judgement_.stories == 0 && whole && !opens(sentence.text))
          judgement_.begins_mid_story = true, whole = false;
        reader = std::make_unique<StoryReader>(language_, patterns_, whole);
        ++judgement_.stories;
      }
      const Verdict verdict = reader->read(sentence.text);
      count(verdict, sentence.text);
      if (!verdict.ends || verdict.kind == Verdict::Kind::untrue) continue;
      ++judgement_.finished;
      reader.reset();
      whole = true;
    }
  }

  [[nodiscard]] const Judgement& judgement() const { return judgement_; }

 private:
  /// Stories begin with a capital letter.
  static bool starts_within(std::string_view text) {
    return text.front() < 'A' || text.front() > 'Z';
  }

  bool opens(std::string_view sentence) {
    for (const Reading& reading : patterns_.read(sentence))
      if (reading.wording->act == Act::open) return true;
    return false;
  }

  void count(const Verdict& verdict, std::string_view sentence) {
    const auto keep = [&](Example& example) {
      if (example.sentence.empty()) example = {std::string(sentence), verdict.reason};
    };
    ++judgement_.sentences;
    switch (verdict.kind) {
      case Verdict::Kind::malformed:
        ++judgement_.malformed;
        return keep(judgement_.first_malformed);
      case Verdict::Kind::untrue:
        ++judgement_.untrue;
        return keep(judgement_.first_untrue);
      case Verdict::Kind::unknown:
        ++judgement_.unknown;
        return;
      case Verdict::Kind::right:
        ++judgement_.right;
        return;
    }
  }

  const Language& language_;
  Patterns patterns_;
  bool complete_;
  Judgement judgement_;
};

/// Sentences stand one space apart, parts of the day on a line of their own.
void check_spacing(const Sentence& sentence, bool first, bool new_part) {
  const std::string_view wanted = first ? "" : new_part ? "\n" : " ";
  if (sentence.space_before != wanted)
    throw std::runtime_error(
        fmt::format("the white space before '{}' is not the storyteller's", sentence.text));
}

double measure_story(const Language& language, Patterns& patterns, std::string_view story) {
  Odds odds(language);
  StoryReader reader(language, patterns, true, &odds);
  bool ended = false, first = true;
  if (story.empty() || story.back() != '\n')
    throw std::runtime_error("it does not end with a line break");
  for (const Sentence& sentence : split_sentences(story.substr(0, story.size() - 1))) {
    if (ended) throw std::runtime_error(fmt::format("'{}' stands after its end", sentence.text));
    const Verdict verdict = reader.read(sentence.text);
    if (!reader.bits())
      throw std::runtime_error(
          fmt::format("'{}' could not have been written: {}", sentence.text,
                      *verdict.reason != '\0' ? verdict.reason : "this is not the time for it"));
    check_spacing(sentence, first, verdict.new_part);
    first = false;
    ended = verdict.ends;
  }
  if (!ended) throw std::runtime_error("it has no end");
  const char before_last = story[story.size() - 2];
  if (before_last == ' ' || before_last == '\n')
    throw std::runtime_error("white space stands after its end");
  return *reader.bits();
}

}  // namespace

double Judgement::share_well_formed() const { return share(sentences - malformed, sentences); }
double Judgement::share_true() const { return share(right, sentences - unknown); }

Judgement judge(const Language& language, std::string_view text, bool complete) {
  Judge judge(language, complete);
  const std::vector<std::string_view> documents = split_documents(text);
  for (std::size_t i = 0; i < documents.size(); ++i)
    judge.document(documents[i], i == 0, i + 1 == documents.size());
  return judge.judgement();
}

double measure_story(const Language& language, std::string_view story) {
  Patterns patterns(language);
  return measure_story(language, patterns, story);
}

Measurement measure(const Language& language, std::string_view text) {
  Patterns patterns(language);
  Measurement measurement;
  Sum bits;
  for (const std::string_view story : split_documents(text)) {
    try {
      bits.add(measure_story(language, patterns, story));
    } catch (const std::runtime_error& error) {
      throw std::runtime_error(fmt::format("story {} is not one of the language: {}",
                                           measurement.stories + 1, error.what()));
    }
    ++measurement.stories;
    measurement.bytes += story.size();
    measurement.words += count_words(story);
  }
  measurement.bits = bits.value();
  return measurement;
}

}  // namespace strata::tales
