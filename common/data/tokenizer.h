// The tokenizer: byte-level BPE exactly as GPT-2 has it, from text to token ids and back.
//
//   text --(pretokenizer.h)--> pieces --(bpe.h)--> ids --(decode)--> text, the same bytes
//
// Any byte string survives the round trip, text or not. The ids are those of GPT-2 when its
// published vocabulary is loaded, and those of Hugging Face's `tokenizers` when it opens the
// tokenizer.json that we write.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/data/vocabulary.h"

namespace strata::data {

/// Gives one document of text after the other, then nothing. A view stays valid until the next
/// call.
using DocumentSource = std::function<std::optional<std::string_view>()>;

/// A vocabulary with what is needed to encode and decode. Immutable and cheap to copy; any number
/// of threads may use one at the same time.
class Tokenizer {
 public:
  /// Reads a Hugging Face tokenizer: the path of a tokenizer.json, or of a directory that has
  /// tokenizer.json or else vocab.json and merges.txt. Throws std::runtime_error, one sentence that
  /// names the file, if anything in it is not what a byte-level GPT-2 tokenizer has.
  [[nodiscard]] static Tokenizer load(const std::filesystem::path& path);

  /// Learns merges from documents. Ids 0..255 are the single bytes in GPT-2's order ('!' is 0), then
  /// come the merged tokens as they were made, and `<|endoftext|>` is last. The result depends on
  /// nothing but the documents' words: not on their order, not on threads, not on the machine
  /// (bpe_trainer.h states how ties are broken). Throws std::runtime_error if vocab_size is under
  /// 257 (bytes and `<|endoftext|>`) or over 2^24.
  [[nodiscard]] static Tokenizer train(const DocumentSource& documents,
                                       const TrainerOptions& options);
  [[nodiscard]] static Tokenizer train(std::span<const std::string_view> documents,
                                       const TrainerOptions& options);

  /// A tokenizer of a vocabulary. Throws std::runtime_error if it breaks a promise of Vocabulary.
  explicit Tokenizer(Vocabulary vocabulary);

  /// The ids of `text`. `<|endoftext|>` in it is ordinary text, unless `allow_special`: then each
  /// occurrence becomes end_of_text(). For many texts in a row, an Encoder is faster.
  [[nodiscard]] std::vector<std::uint32_t> encode(std::string_view text,
                                                  bool allow_special = false) const;

  /// The bytes of `ids`, side by side; end_of_text() gives "<|endoftext|>". They need not be valid
  /// UTF-8, since a token may end inside a character. Throws std::runtime_error on an id that is
  /// not under vocab_size().
  [[nodiscard]] std::string decode(std::span<const std::uint32_t> ids) const;

  /// The bytes of one token; valid as long as a copy of this tokenizer lives.
  [[nodiscard]] std::string_view token_bytes(std::uint32_t id) const;

  [[nodiscard]] std::uint32_t vocab_size() const;
  [[nodiscard]] std::uint32_t end_of_text() const;
  [[nodiscard]] const Vocabulary& vocabulary() const;

  /// Writes Hugging Face's tokenizer.json, atomically.
  void save_json(const std::filesystem::path& path) const;
  /// Writes llm.c's tokenizer.bin (version 2), atomically. Throws if a token has over 255 bytes.
  void save_bin(const std::filesystem::path& path) const;

 private:
  friend class Encoder;
  struct Tables;
  std::shared_ptr<const Tables> tables_;
};

/// One thread's way of encoding: it keeps its working memory and the ids of the words that it has
/// seen, so that common words cost one look-up. The ids are the same as Tokenizer::encode's.
class Encoder {
 public:
  explicit Encoder(const Tokenizer& tokenizer);
  ~Encoder();
  Encoder(Encoder&&) noexcept;
  Encoder& operator=(Encoder&&) noexcept;

  /// Appends the ids of `text` to `ids`; see Tokenizer::encode.
  void encode(std::string_view text, std::vector<std::uint32_t>& ids, bool allow_special = false);

  /// How often a pair of tokens has been looked at so far. Tests use it to check that no text
  /// costs more than a few looks a byte; a clock would not give the same answer twice.
  [[nodiscard]] std::uint64_t pair_looks() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace strata::data
