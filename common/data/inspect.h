// Looking at every token of a data set.
#pragma once

#include <filesystem>
#include <string>

#include "common/data/dataset.h"

namespace strata::data {

/// Checks that the parts of a data set belong together: the tokenizer has the vocabulary and the
/// end-of-text id that dataset.json states; every token of every shard is in it; each split has as
/// many end-of-text tokens as documents, and its tokens stand for as many bytes of text as stated.
/// Returns the facts. Throws std::runtime_error, one sentence naming the file, if something is wrong.
DataSetFacts inspect(const std::filesystem::path& directory);

/// A data set in a few lines of words.
[[nodiscard]] std::string describe(const DataSetFacts& facts);

}  // namespace strata::data
