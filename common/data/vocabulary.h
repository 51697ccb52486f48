// What a byte-level BPE tokenizer knows: its tokens' bytes, its merges, its one special token.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace strata::data {

/// The only special token, as GPT-2 has it. It stands between documents.
inline constexpr std::string_view end_of_text_content = "<|endoftext|>";

/// The longest token in bytes that the trainer makes and tokenizer.bin can hold: its lengths are
/// one byte each.
inline constexpr std::size_t max_token_bytes = 255;

/// The most tokens of a vocabulary; far above any in use, it keeps hostile files from claiming
/// memory and leaves bits beside an id (token_chain.h).
inline constexpr std::uint32_t max_vocab_size = 1u << 24;

/// "Where `left` and `right` stand side by side, put `result`."
struct Merge {
  std::uint32_t left = 0;
  std::uint32_t right = 0;
  std::uint32_t result = 0;

  friend bool operator==(const Merge&, const Merge&) = default;
};

/// A vocabulary whose parts fit together; `vocabulary_fault` checks these promises:
///
///  - `tokens[id]` are the bytes of token `id`, never empty, all different; each of the 256 single
///    bytes is a token;
///  - a merge's rank is its index, and the lower rank is applied first. Its parts are single bytes
///    or results of lower ranks; its result is their bytes side by side, made by no other merge;
///  - `tokens[end_of_text]` is "<|endoftext|>", and no merge makes it.
///
/// So a merge creates only pairs of higher ranks than its own. That is why all places of one rank
/// can be merged in one sweep (bpe.cpp).
struct Vocabulary {
  std::vector<std::string> tokens;
  std::vector<Merge> merges;
  std::uint32_t end_of_text = 0;

  friend bool operator==(const Vocabulary&, const Vocabulary&) = default;
};

/// What is wrong with `vocabulary`, as a clause without a full stop ("merge 12 takes ..."); empty if
/// it keeps every promise.
[[nodiscard]] std::string vocabulary_fault(const Vocabulary& vocabulary);

/// `text` between quotes for an error message: escaped as JSON, cut where it is long.
[[nodiscard]] std::string in_quotes(std::string_view text);

/// What a trainer is asked for.
struct TrainerOptions {
  /// Tokens wanted, the 256 bytes and `<|endoftext|>` included. A text that has too few pairs to
  /// merge gives fewer.
  std::uint32_t vocab_size = 1024;
  /// Pairs that stand in the text less often than this are not merged.
  std::uint64_t min_frequency = 2;
};

}  // namespace strata::data
