// Tokenizers on disk: Hugging Face's tokenizer.json, GPT-2's vocab.json + merges.txt, llm.c's
// tokenizer.bin.
//
// A reader takes nothing on trust. It throws std::runtime_error, one sentence that names the file,
// says what was found and what was expected, unless the file describes a byte-level BPE tokenizer
// that encodes exactly as GPT-2 does: a tokenizer.json can ask for much that would give other ids
// (a prefix space, a normalizer, another split), and is refused if it does.
#pragma once

#include <filesystem>
#include <string_view>

#include "common/data/vocabulary.h"

namespace strata::data {

/// Reads `path`: a tokenizer.json, or a directory that has tokenizer.json or else vocab.json and
/// merges.txt.
[[nodiscard]] Vocabulary read_tokenizer(const std::filesystem::path& path);

/// The vocabulary in the text of a tokenizer.json. Merges may be strings ("a b") or pairs
/// (["a", "b"]). `path` is for messages.
[[nodiscard]] Vocabulary parse_tokenizer_json(std::string_view text,
                                              const std::filesystem::path& path);

/// The vocabulary in the texts of vocab.json (an object from token to id) and merges.txt (a line
/// "#version: ...", then one merge a line). The paths are for messages.
[[nodiscard]] Vocabulary parse_vocab_and_merges(std::string_view vocab_text,
                                                const std::filesystem::path& vocab_path,
                                                std::string_view merges_text,
                                                const std::filesystem::path& merges_path);

/// Writes tokenizer.json as `tokenizers` and `transformers` read it, atomically.
void write_tokenizer_json(const std::filesystem::path& path, const Vocabulary& vocabulary);

/// Writes llm.c's tokenizer.bin, version 2, atomically: 256 little-endian int32 (20240328, 2, number
/// of tokens, id of `<|endoftext|>`, zeros), then for each token one byte with its length, then its
/// bytes. Throws std::runtime_error if a token has more than 255 bytes.
void write_tokenizer_bin(const std::filesystem::path& path, const Vocabulary& vocabulary);

}  // namespace strata::data
