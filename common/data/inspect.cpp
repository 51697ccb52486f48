#include "common/data/inspect.h"

#include <fmt/format.h>

#include <stdexcept>

#include "common/data/progress.h"
#include "common/data/tokenizer.h"

namespace strata::data {
namespace {

void inspect_split(const std::filesystem::path& directory, const std::string& split,
                   const SplitFacts& facts, const std::vector<ShardReader>& shards,
                   const Tokenizer& tokenizer) {
  std::vector<std::uint64_t> counts(tokenizer.vocab_size(), 0);
  for (const ShardReader& shard : shards) {
    shard.check(0, shard.size(), tokenizer.vocab_size());
    for (const std::uint16_t token : shard.tokens(0, shard.size())) ++counts[token];
  }
  std::uint64_t bytes = 0;
  for (std::uint32_t id = 0; id < tokenizer.vocab_size(); ++id)
    if (id != tokenizer.end_of_text()) bytes += counts[id] * tokenizer.token_bytes(id).size();
  const std::uint64_t documents = counts[tokenizer.end_of_text()];
  if (documents == facts.documents && bytes == facts.bytes) return;
  throw std::runtime_error(fmt::format(
      "the {} shards of '{}' hold {} documents and {} bytes of text, but its dataset.json says {} "
      "and {}: the files do not belong together.",
      split, directory.string(), documents, bytes, facts.documents, facts.bytes));
}

std::string describe_split(const std::string& split, const SplitFacts& facts,
                           std::optional<double> bits) {
  std::string text = fmt::format(
      "{:<11}{} tokens in {} {}: {} {}, {} of text, {:.2f} bytes a token", split,
      with_commas(facts.tokens), with_commas(facts.shards), facts.shards == 1 ? "shard" : "shards",
      with_commas(facts.documents), facts.documents == 1 ? "document" : "documents",
      in_bytes(facts.bytes), static_cast<double>(facts.bytes) / static_cast<double>(facts.tokens));
  if (bits)
    text += fmt::format("; the source's entropy is {:.4f} nats a token",
                        nats_per_token(*bits, facts.tokens));
  return text + "\n";
}

}  // namespace

DataSetFacts inspect(const std::filesystem::path& directory) {
  const DataSet set = open_data_set(directory);
  const Tokenizer tokenizer = Tokenizer::load(directory / "tokenizer.json");
  if (tokenizer.vocab_size() != set.facts.vocab_size ||
      tokenizer.end_of_text() != set.facts.end_of_text)
    throw std::runtime_error(
        fmt::format("'{}' has {} tokens, end of text is {}, but dataset.json beside it says {} and "
                    "{}: the files "
                    "do not belong together.",
                    (directory / "tokenizer.json").string(), tokenizer.vocab_size(),
                    tokenizer.end_of_text(), set.facts.vocab_size, set.facts.end_of_text));
  inspect_split(directory, "train", set.facts.train, set.train, tokenizer);
  inspect_split(directory, "val", set.facts.val, set.val, tokenizer);
  return set.facts;
}

std::string describe(const DataSetFacts& facts) {
  const auto bits = [&](double SourceEntropy::*split) {
    return facts.entropy ? std::optional(*facts.entropy.*split) : std::nullopt;
  };
  return fmt::format("{:<11}{}\n{:<11}{}\n{:<11}{} tokens, {} is end of text\n", "name", facts.name,
                     "source", facts.source, "vocabulary", with_commas(facts.vocab_size),
                     facts.end_of_text) +
         describe_split("train", facts.train, bits(&SourceEntropy::train_bits)) +
         describe_split("val", facts.val, bits(&SourceEntropy::val_bits));
}

}  // namespace strata::data
