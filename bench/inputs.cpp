#include "bench/inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>
#include <string>

#include "common/data/dataset.h"
#include "common/data/shards.h"
#include "common/data/tokenizer_files.h"
#include "common/io/files.h"

namespace strata::bench {
namespace {

namespace fs = std::filesystem;

/// splitmix64.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  /// Uniform in [0, 1).
  double uniform() {
    state_ += 0x9e3779b97f4a7c15;
    std::uint64_t x = state_;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return static_cast<double>((x ^ (x >> 31)) >> 11) * 0x1p-53;
  }

 private:
  std::uint64_t state_;
};

using Header = std::array<std::int32_t, 256>;

/// Writes `tokens` as DIRECTORY/PREFIX_000000.bin and returns its name.
fs::path write_split(const fs::path& directory, const std::string& prefix, std::uint32_t vocab,
                     const std::vector<std::uint32_t>& tokens) {
  data::ShardWriter writer(directory, prefix, vocab);
  writer.append(tokens);
  writer.finish();
  return directory / data::shard_name(prefix, 0);
}

}  // namespace

std::vector<std::uint32_t> random_tokens(std::size_t count, int vocab, std::uint64_t seed) {
  std::vector<double> cumulative;
  double sum = 0;
  for (int rank = 0; rank < vocab; ++rank) cumulative.push_back(sum += 1 / (rank + 2.7));
  Random random(seed);
  std::vector<std::uint32_t> tokens(count);
  for (std::uint32_t& token : tokens) {
    const auto at =
        std::upper_bound(cumulative.begin(), cumulative.end() - 1, sum * random.uniform());
    token = static_cast<std::uint32_t>(at - cumulative.begin());
  }
  return tokens;
}

data::Vocabulary pair_vocabulary(int vocab) {
  if (vocab < 257 || vocab > 65536)
    throw std::runtime_error(
        fmt::format("a vocabulary of {} tokens was asked for; expected 257 to 65536", vocab));
  data::Vocabulary vocabulary;
  for (int byte = 0; byte < 256; ++byte) vocabulary.tokens.push_back({static_cast<char>(byte)});
  for (std::uint32_t id = 256; id + 1 < static_cast<std::uint32_t>(vocab); ++id) {
    const std::uint32_t left = (id - 256) >> 8, right = (id - 256) & 255;
    vocabulary.tokens.push_back(vocabulary.tokens[left] + vocabulary.tokens[right]);
    vocabulary.merges.push_back({left, right, id});
  }
  vocabulary.end_of_text = static_cast<std::uint32_t>(vocabulary.tokens.size());
  vocabulary.tokens.emplace_back(data::end_of_text_content);
  return vocabulary;
}

void write_data_set(const fs::path& directory, int vocab, std::size_t train_tokens,
                    std::size_t val_tokens) {
  const data::Vocabulary vocabulary = pair_vocabulary(vocab);
  fs::create_directories(directory);
  data::DataSetFacts facts;
  facts.name = "random tokens";
  facts.source = "drawn by strata-bench";
  facts.vocab_size = static_cast<std::uint32_t>(vocab);
  facts.end_of_text = vocabulary.end_of_text;
  facts.train = {train_tokens, 2 * train_tokens, 1, 1};
  facts.val = {val_tokens, 2 * val_tokens, 1, 1};
  write_split(directory, "train", facts.vocab_size, random_tokens(train_tokens, vocab, 1));
  write_split(directory, "val", facts.vocab_size, random_tokens(val_tokens, vocab, 2));
  data::write_tokenizer_bin(directory / "tokenizer.bin", vocabulary);
  data::write_tokenizer_json(directory / "tokenizer.json", vocabulary);
  data::write_facts(directory, facts);
}

std::uint64_t Shape::parameters() const {
  const auto c = static_cast<std::uint64_t>(channels), l = static_cast<std::uint64_t>(layers);
  return c * static_cast<std::uint64_t>(padded_vocab + max_seq) + l * (12 * c * c + 13 * c) + 2 * c;
}

void write_model(const fs::path& path, const Shape& shape) {
  const auto c = static_cast<std::size_t>(shape.channels),
             l = static_cast<std::size_t>(shape.layers);
  const Header header{20240326,     3,           shape.max_seq,  shape.vocab,
                      shape.layers, shape.heads, shape.channels, shape.padded_vocab};
  io::AtomicFile file(path);
  file.write(header.data(), sizeof header);
  Random random(42);
  std::vector<float> chunk;
  const auto constant = [&](std::size_t count, float value) {
    chunk.assign(count, value);
    file.write(chunk.data(), count * sizeof(float));
  };
  const auto drawn = [&](std::size_t count, double deviation) {
    const double width = deviation * std::sqrt(12.0);
    while (count > 0) {
      chunk.resize(std::min(count, std::size_t{1} << 20));
      for (float& value : chunk) value = static_cast<float>(width * (random.uniform() - 0.5));
      file.write(chunk.data(), chunk.size() * sizeof(float));
      count -= chunk.size();
    }
  };
  const double ends_branch = 0.02 / std::sqrt(2.0 * shape.layers);
  drawn(static_cast<std::size_t>(shape.vocab) * c, 0.02);                          // wte
  constant(static_cast<std::size_t>(shape.padded_vocab - shape.vocab) * c, 0.0f);  // its padding
  drawn(static_cast<std::size_t>(shape.max_seq) * c, 0.02);                        // wpe
  constant(l * c, 1.0f);                                                           // ln1w
  constant(l * c, 0.0f);                                                           // ln1b
  drawn(l * 3 * c * c, 0.02);                                                      // qkvw
  constant(l * 3 * c, 0.0f);                                                       // qkvb
  drawn(l * c * c, ends_branch);                                                   // attprojw
  constant(l * c, 0.0f);                                                           // attprojb
  constant(l * c, 1.0f);                                                           // ln2w
  constant(l * c, 0.0f);                                                           // ln2b
  drawn(l * 4 * c * c, 0.02);                                                      // fcw
  constant(l * 4 * c, 0.0f);                                                       // fcb
  drawn(l * 4 * c * c, ends_branch);                                               // fcprojw
  constant(l * c, 0.0f);                                                           // fcprojb
  constant(c, 1.0f);                                                               // lnfw
  constant(c, 0.0f);                                                               // lnfb
  file.commit();
}

void write_llmc_inputs(const fs::path& directory) {
  const Shape d12;
  const fs::path text = directory / "dev" / "data" / "tinyshakespeare";
  fs::create_directories(text);
  const fs::path model = directory / "gpt2_124M.bin", tokenizer = directory / "gpt2_tokenizer.bin";
  std::error_code absent;
  const std::uint64_t size = 1024 + 4 * d12.parameters();
  if (fs::file_size(model, absent) != size) write_model(model, d12);
  if (!fs::exists(tokenizer)) data::write_tokenizer_bin(tokenizer, pair_vocabulary(d12.vocab));
  const auto split = [&](const char* name, std::size_t count, std::uint64_t seed) {
    const fs::path shard = text / fmt::format("tiny_shakespeare_{}.bin", name);
    if (fs::exists(shard)) return;
    fs::rename(write_split(text, name, static_cast<std::uint32_t>(d12.vocab),
                           random_tokens(count, d12.vocab, seed)),
               shard);
  };
  split("train", 305'260, 1);
  split("val", 32'768, 2);
}

}  // namespace strata::bench
