// Learning a byte-level BPE vocabulary from text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "common/data/pretokenizer.h"
#include "common/data/vocabulary.h"

namespace strata::data {

/// Counts the words of a text, then merges pairs of neighbours inside them.
///
/// The rule, again and again: of all pairs of neighbouring tokens take the one that stands most
/// often in the text; of several, the one whose left token has the lowest id, then the one whose
/// right token has (Hugging Face's rule, too). Replace it everywhere, from left to right, by a new
/// token. Passed over are pairs that would give more than 255 bytes, and pairs whose bytes are a
/// token already (which takes overlapping runs to happen at all; Hugging Face's trainer would then
/// write a second merge for one token). The text's order plays no part, and neither do threads.
///
/// Memory and time grow with the distinct words, not with the text: 12 bytes and a few look-ups for
/// each of their bytes, even if the text is one word of a million letters.
class BpeTrainer {
 public:
  BpeTrainer();

  /// Counts the words of one document. `<|endoftext|>` in it is ordinary text.
  void add(std::string_view document);

  /// The vocabulary for all that was added; ids as at Tokenizer::train. Throws std::runtime_error
  /// if `options.vocab_size` is not from 257 to 2^24, or if the distinct words have 2 GiB or more.
  [[nodiscard]] Vocabulary train(const TrainerOptions& options) const;

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view word) const {
      return std::hash<std::string_view>{}(word);
    }
  };

  PieceScanner scanner_;
  std::unordered_map<std::string, std::uint64_t, Hash, std::equal_to<>> word_counts_;
};

}  // namespace strata::data
