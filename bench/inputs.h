// Inputs for timing: random tokens, a tokenizer to go with them, and what llm.c reads.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "common/data/vocabulary.h"

namespace strata::bench {

/// `count` tokens below `vocab` with frequencies that fall about as those of words do (rank r as
/// 1 / (r + 2.7)): rows of the embedding are then reused as in real text. From `seed` alone.
[[nodiscard]] std::vector<std::uint32_t> random_tokens(std::size_t count, int vocab,
                                                       std::uint64_t seed);

/// Writes a data set of random tokens: dataset.json, both splits in one shard each, tokenizer.bin
/// and tokenizer.json. Throws std::runtime_error naming a file that cannot be written.
void write_data_set(const std::filesystem::path& directory, int vocab, std::size_t train_tokens,
                    std::size_t val_tokens);

/// A tokenizer of `vocab` tokens (257 to 65536): the bytes, pairs of bytes, the end of text.
/// Throws std::runtime_error for another size.
[[nodiscard]] data::Vocabulary pair_vocabulary(int vocab);

/// The shape of a GPT-2.
struct Shape {
  int max_seq = 1024, vocab = 50257, layers = 12, heads = 12, channels = 768, padded_vocab = 50304;
  /// Numbers in a model file: all weights, padding included.
  [[nodiscard]] std::uint64_t parameters() const;
};

/// Writes a model of random weights in llm.c's format (magic 20240326, version 3, fp32): of
/// standard deviation 0.02, those that end a residual branch less by sqrt(2 L), LayerNorm weights
/// 1, biases and padding 0. Uniformly distributed: for timing that is as good as a bell curve.
void write_model(const std::filesystem::path& path, const Shape& shape);

/// Lays out a directory in which llm.c's train_gpt2 finds everything that it reads: model,
/// tokenizer and shards. What is there already is kept.
void write_llmc_inputs(const std::filesystem::path& directory);

}  // namespace strata::bench
