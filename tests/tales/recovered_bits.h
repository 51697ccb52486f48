// The reader's figure for one story, without building its tables anew for each.
#pragma once

#include <optional>
#include <string_view>

#include "data/tales/reader.h"
#include "data/tales/sentences.h"

namespace strata::tests {

/// The information content of a whole story, from its text alone; nothing if it is none.
inline std::optional<double> recovered_bits(const tales::Language& language,
                                            tales::Patterns& patterns, std::string_view story) {
  tales::Odds odds(language);
  tales::StoryReader reader(language, patterns, true, &odds);
  bool ended = false;
  for (const tales::Sentence& sentence : tales::split_sentences(story))
    ended = reader.read(sentence.text).ends;
  return ended ? reader.bits() : std::nullopt;
}

}  // namespace strata::tests
