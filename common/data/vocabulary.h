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

/// The longest token in bytes: tokenizer.bin stores a token's length in one byte.
inline constexpr std::size_t max_token_bytes = 255;

/// "Where `left` and `right` stand side by side, put `result`."
struct Merge {
  std::uint32_t left = 0;
  std::uint32_t right = 0;
  std::uint32_t result = 0;

  friend bool operator==(const Merge&, const Merge&) = default;
};

/// A vocabulary whose parts fit together (the readers and the trainer see to that):
///
///  - `tokens[id]` are the bytes of token `id`, never empty; each of the 256 single bytes is a token;
///  - a merge's rank is its index, and the lower rank is applied first. Its parts are single bytes
///    or results of lower-ranked merges; its result's bytes are those of its parts, side by side;
///    no pair has two merges (but two pairs may have the same result: ab+c and a+bc);
///  - `tokens[end_of_text]` is the text "<|endoftext|>", and no merge makes or takes it.
struct Vocabulary {
  std::vector<std::string> tokens;
  std::vector<Merge> merges;
  std::uint32_t end_of_text = 0;

  friend bool operator==(const Vocabulary&, const Vocabulary&) = default;
};

}  // namespace strata::data
