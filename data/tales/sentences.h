// Text into sentences, sentences into words: the first step of reading.
#pragma once

#include <string_view>
#include <vector>

namespace strata::tales {

/// A piece of text between two sentence ends.
struct Sentence {
  std::string_view text;
  std::string_view space_before;  ///< the white space between the sentence before and this one
  bool ended;                     ///< false if the text or its line stops before the sentence does
};

/// Cuts a text into sentences. A full stop, question mark or exclamation mark followed by white
/// space, or by the end, ends a sentence; so does a line break. Any bytes are accepted.
/// The sentences are views of the text.
[[nodiscard]] std::vector<Sentence> split_sentences(std::string_view text);

/// A word or a punctuation mark.
struct Token {
  std::string_view text;
  bool spaced;  ///< true if exactly one space stands before it
};

/// Cuts a sentence into tokens: runs of letters (slots in braces are words, too), and all other
/// characters one by one. Where more than one space stands, the surplus is a token of its own,
/// which no sentence of the language has.
void split_tokens(std::string_view sentence, std::vector<Token>& tokens);

}  // namespace strata::tales
