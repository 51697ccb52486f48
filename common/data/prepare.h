// Turning text into a data set directory (data/README.md describes it).
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/data/corpus.h"
#include "common/data/dataset.h"
#include "common/data/progress.h"
#include "common/data/tokenizer.h"

namespace strata::data {

struct PrepareOptions {
  std::filesystem::path out;
  std::vector<std::filesystem::path> inputs;  ///< files and directories
  std::string name;                           ///< default: the name of `out`
  std::string source;                         ///< in words; default: the inputs

  /// The validation split: these files and directories, or else the last part of the inputs.
  std::vector<std::filesystem::path> validation;
  /// That part's share of the bytes; default: default_validation_fraction.
  std::optional<double> validation_fraction;
  DocumentRule documents = DocumentRule::separators;

  /// A tokenizer to use (tokenizer.json or a directory); default: one is trained.
  std::optional<std::filesystem::path> tokenizer;
  /// Size of the vocabulary to train; 0: default_vocab_size.
  std::uint32_t vocab_size = 0;
  /// Bytes of text that the vocabulary is learnt from, spread over the training text.
  std::uint64_t sample_bytes = 64'000'000;

  /// JSON files whose number "bits" is the split's information content; both or neither.
  std::optional<std::filesystem::path> train_facts;
  std::optional<std::filesystem::path> validation_facts;

  std::uint64_t shard_tokens = default_shard_tokens;
  int threads = 0;          ///< 0: OpenMP's choice
  bool if_changed = false;  ///< do nothing if `out` was made from the same inputs and settings
  bool force = false;       ///< replace `out` even if it has other files in it
};

/// Thrown when the flag given to `prepare` became true.
struct Interrupted : std::runtime_error {
  Interrupted() : std::runtime_error("interrupted; nothing was changed.") {}
};

struct PrepareResult {
  DataSetFacts facts;
  bool was_up_to_date = false;
};

/// Makes the data set `options.out`; it appears whole, at the end, or not at all. Memory stays within
/// a few dozen megabytes a thread whatever the corpus's size, besides the tokenizer's word counts.
/// Throws std::runtime_error, one sentence, if the text, the settings or the disk do not allow it.
PrepareResult prepare(const PrepareOptions& options, Progress& progress,
                      const std::atomic<bool>& interrupt);

/// A tenth, but no more than ten megabytes: measuring the loss takes no more text than that.
[[nodiscard]] double default_validation_fraction(std::uint64_t bytes);

/// A vocabulary that suits a text of so many bytes: 1,024 below 10 MB, 4,096 below 100 MB, 16,384
/// below 1 GB, else 32,768. Every token needs to be seen often enough to be learnt, and its row in
/// the embedding is paid for in every step.
[[nodiscard]] std::uint32_t default_vocab_size(std::uint64_t bytes);

/// Where and how a split is written.
struct SplitOutput {
  std::filesystem::path directory;
  std::string split;  ///< "train" or "val"
  std::uint64_t shard_tokens = default_shard_tokens;
  int threads = 0;  ///< 0: OpenMP's choice
};

/// Writes one split's shards. Documents are encoded by all threads and written in order, so the
/// shards do not depend on the number of threads.
SplitFacts write_split(const Corpus& corpus, const Tokenizer& tokenizer, const SplitOutput& output,
                       Progress& progress, const std::atomic<bool>& interrupt);

}  // namespace strata::data
