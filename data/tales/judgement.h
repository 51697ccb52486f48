// What the reader says about a whole text: the verdict on a sample, the information in a corpus.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "data/tales/language.h"

namespace strata::tales {

/// A sentence worth showing, and what is wrong with it.
struct Example {
  std::string sentence;
  std::string reason;
};

/// How a text reads. Every counted sentence is one of malformed, untrue, unknown and right.
struct Judgement {
  std::uint64_t sentences = 0;
  std::uint64_t malformed = 0;
  std::uint64_t untrue = 0;
  std::uint64_t unknown = 0;
  std::uint64_t right = 0;
  std::uint64_t stories = 0;   ///< begun, or going on where the text begins
  std::uint64_t finished = 0;  ///< of those, up to their end
  bool begins_mid_story = false;
  bool cut_off = false;  ///< its last sentence was not counted, having no end
  Example first_malformed;
  Example first_untrue;

  /// Sentences of the language, as a share of all; 0 of an empty text.
  [[nodiscard]] double share_well_formed() const;
  /// True sentences, as a share of all that can be judged (all but the unknown).
  [[nodiscard]] double share_true() const;
};

/// Reads a text that somebody, or a model, has written. Any bytes are accepted.
///
/// A story begins with the text, after each separator and after each "The end."; white space
/// between sentences is free. Unless the text is `complete`, it may begin in the middle of a story
/// (its first story, if that does not start with an opening) and of a sentence (if it is not one of
/// the language and no capital letter begins the text), and it may stop in the middle of one; those
/// halves are not counted. In a
/// story that begins in the middle, what depends on a fact not told in the text is unknown; in all
/// others it is untrue. A sentence that is malformed or untrue is not believed: the next are
/// judged as if it were not there.
[[nodiscard]] Judgement judge(const Language& language, std::string_view text, bool complete);

/// The information content of a corpus, recovered from its text alone.
struct Measurement {
  std::uint64_t stories = 0;
  std::uint64_t bytes = 0;
  std::uint64_t words = 0;
  double bits = 0;
};

/// The information content of one story, as a file has it between separators. Throws
/// std::runtime_error quoting the first sentence that the storyteller could not have written.
[[nodiscard]] double measure_story(const Language& language, std::string_view story);

/// Measures all stories of a corpus. Throws std::runtime_error with the number of the story and
/// the sentence that the storyteller could not have written.
[[nodiscard]] Measurement measure(const Language& language, std::string_view text);

}  // namespace strata::tales
