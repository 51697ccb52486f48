// A corpus: stories one after the other in a file, and the facts about it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

#include "data/tales/language.h"

namespace strata::tales {

/// Which stories a corpus has: of `seed`, from number `first` on, until there are `stories` of them
/// or, where that is 0, until they have `bytes` bytes.
struct CorpusRequest {
  std::uint64_t seed = 1;
  std::uint64_t first = 0;
  std::uint64_t stories = 0;
  std::uint64_t bytes = 0;
};

/// What was written. Bytes are those of the stories, the separators between them not counted.
struct CorpusFacts {
  std::uint64_t stories = 0;
  std::uint64_t bytes = 0;
  std::uint64_t words = 0;
  double bits = 0;
};

/// Adds numbers so that the error stays that of a few roundings, however many there are (Neumaier).
class Sum {
 public:
  void add(double x);
  [[nodiscard]] double value() const { return sum_ + lost_; }

 private:
  double sum_ = 0;
  double lost_ = 0;
};

/// Writes a corpus to `out`, and its facts as JSON to `facts`. Both appear whole or not at all;
/// throws std::runtime_error naming the file if one cannot be written.
CorpusFacts write_corpus(const Language& language, const CorpusRequest& request,
                         const std::filesystem::path& out, const std::filesystem::path& facts);

/// The documents of a corpus: what stands between its separators.
[[nodiscard]] std::vector<std::string_view> split_documents(std::string_view text);

/// The number of words: runs without spaces and line breaks.
[[nodiscard]] std::uint64_t count_words(std::string_view text);

}  // namespace strata::tales
