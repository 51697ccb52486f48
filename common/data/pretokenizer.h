// GPT-2's pre-tokenisation: where a text may be cut into pieces before BPE merges inside each.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

struct pcre2_real_code_8;
struct pcre2_real_match_data_8;

namespace strata::data {

/// The length of the longest prefix of `text` that is valid UTF-8 (no overlong forms, no
/// surrogates, nothing above U+10FFFF: Table 3-7 of the Unicode standard).
[[nodiscard]] std::size_t valid_utf8_prefix(std::string_view text);

/// GPT-2's pattern, compiled. Immutable: any number of threads may share it.
class PreTokenizer {
 public:
  /// Without `jit`, matching is interpreted: the same pieces, several times slower. That is also
  /// what happens by itself where the system forbids generated code.
  explicit PreTokenizer(bool jit = true);

 private:
  friend class PieceScanner;
  std::shared_ptr<pcre2_real_code_8> code_;
  bool jit_ = false;
};

/// Deals the pieces of a text, one by one. Side by side they are the text.
///
/// A text that is not valid UTF-8 has maximal valid runs with stray bytes between them. Each run is
/// cut as though it were a text of its own; each stray byte is a piece of its own. (From the left:
/// a byte is stray if no valid character begins with it. Of "\xE2\x82" + "a" both first bytes are.)
class PieceScanner {
 public:
  explicit PieceScanner(const PreTokenizer& pretokenizer);

  /// Begins with `text`, which must stay where it is while next() is called.
  void start(std::string_view text);
  /// The next piece; empty at the end.
  [[nodiscard]] std::string_view next();

 private:
  PreTokenizer pretokenizer_;
  std::unique_ptr<pcre2_real_match_data_8, void (*)(pcre2_real_match_data_8*)> match_;
  const std::size_t* match_bounds_ = nullptr;
  std::string_view valid_;  // what is left of the current valid run
  std::string_view rest_;   // what comes after that run
};

}  // namespace strata::data
