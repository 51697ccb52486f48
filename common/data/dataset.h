// A data set directory as `strata-data` makes it: dataset.json, tokenizer, shards of two splits.
// data/README.md describes the files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "common/data/shards.h"

namespace strata::data {

inline constexpr int dataset_format = 1;

/// Counts of one split.
struct SplitFacts {
  std::uint64_t tokens = 0;     ///< in all its shards, end-of-text tokens included
  std::uint64_t bytes = 0;      ///< of the text that they stand for, separators not included
  std::uint64_t documents = 0;  ///< each is preceded by one end-of-text token
  std::uint64_t shards = 0;

  friend bool operator==(const SplitFacts&, const SplitFacts&) = default;
};

/// The information content of the two splits under their source, where it is known.
struct SourceEntropy {
  double train_bits = 0;  ///< -log2 of the probability with which the source writes the split
  double val_bits = 0;

  friend bool operator==(const SourceEntropy&, const SourceEntropy&) = default;
};

/// What dataset.json says.
struct DataSetFacts {
  std::string name;
  std::string source;  ///< where the text came from, in words
  std::uint32_t vocab_size = 0;
  std::uint32_t end_of_text = 0;
  SplitFacts train;
  SplitFacts val;
  std::optional<SourceEntropy> entropy;
  std::string fingerprint;  ///< of the inputs and settings that it was made from; may be empty

  friend bool operator==(const DataSetFacts&, const DataSetFacts&) = default;
};

/// The entropy of a split in nats per token: the loss that no model can beat in expectation.
[[nodiscard]] double nats_per_token(double bits, std::uint64_t tokens);

/// Reads DIRECTORY/dataset.json. Throws std::runtime_error, one sentence, if the directory is not a
/// data set (it says how to make one) or the file is not what it should be.
[[nodiscard]] DataSetFacts read_facts(const std::filesystem::path& directory);
/// Writes DIRECTORY/dataset.json, atomically.
void write_facts(const std::filesystem::path& directory, const DataSetFacts& facts);

/// Opens DIRECTORY/SPLIT_000000.bin and those that follow it ("train" or "val"). Works without a
/// dataset.json too. Throws std::runtime_error, one sentence, if the directory or the shards are
/// missing, one of the row is missing, or one is not a shard.
[[nodiscard]] std::vector<ShardReader> open_split(const std::filesystem::path& directory,
                                                  const std::string& split);

/// A data set that is open for reading.
struct DataSet {
  DataSetFacts facts;
  std::vector<ShardReader> train;
  std::vector<ShardReader> val;
};

/// Opens a data set and compares its shards' number and tokens with dataset.json.
[[nodiscard]] DataSet open_data_set(const std::filesystem::path& directory);

}  // namespace strata::data
