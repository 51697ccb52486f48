#include "bench/inputs.h"

#include <cmath>
#include <cstring>
#include <vector>

#include "common/data/dataset.h"
#include "common/data/tokenizer_files.h"
#include "common/io/files.h"
#include "tests/catch.h"
#include "tests/temporary_directory.h"

using namespace strata::bench;
using strata::tests::contains;
using strata::tests::TemporaryDirectory;

TEST_CASE("random tokens stay below the vocabulary, repeat from their seed, and favour low ids") {
  const auto tokens = random_tokens(20000, 300, 7);
  CHECK(tokens == random_tokens(20000, 300, 7));
  CHECK(tokens != random_tokens(20000, 300, 8));
  std::vector<int> counts(300);
  for (const auto token : tokens) {
    REQUIRE(token < 300);
    ++counts[token];
  }
  CHECK(counts[0] > 5 * counts[20]);
  CHECK(counts[299] > 0);
}

TEST_CASE("the data set is one that every reader of data sets accepts") {
  const TemporaryDirectory work;
  write_data_set(work / "data", 1000, 5000, 700);
  const strata::data::DataSet data = strata::data::open_data_set(work / "data");
  CHECK(data.facts.vocab_size == 1000);
  CHECK(data.facts.end_of_text == 999);
  CHECK(data.train.at(0).size() == 5000);
  data.val.at(0).check(0, 700, 1000);
  const auto vocabulary = strata::data::read_tokenizer(work / "data");
  CHECK(strata::data::vocabulary_fault(vocabulary).empty());
  CHECK(vocabulary == pair_vocabulary(1000));
  CHECK_THROWS_WITH(pair_vocabulary(256), contains("expected 257 to 65536"));
}

TEST_CASE("the model file has llm.c's header, size and weights") {
  CHECK(Shape().parameters() == 124'475'904);  // GPT-2 124M with its padded vocabulary
  const TemporaryDirectory work;
  const Shape tiny{
      .max_seq = 8, .vocab = 11, .layers = 2, .heads = 2, .channels = 4, .padded_vocab = 16};
  write_model(work / "model.bin", tiny);
  const std::string bytes = strata::io::read_file(work / "model.bin");
  REQUIRE(bytes.size() == 1024 + 4 * tiny.parameters());
  std::vector<std::int32_t> header(8);
  std::memcpy(header.data(), bytes.data(), 32);
  CHECK(header == std::vector<std::int32_t>{20240326, 3, 8, 11, 2, 2, 4, 16});
  std::vector<float> weights(tiny.parameters());
  std::memcpy(weights.data(), bytes.data() + 1024, 4 * weights.size());
  double square = 0;
  for (int i = 0; i < 44; ++i)
    square += weights[static_cast<std::size_t>(i)] * weights[static_cast<std::size_t>(i)];
  CHECK(std::sqrt(square / 44) == Approx(0.02).epsilon(0.3));
  for (std::size_t i = 44; i < 64; ++i) CHECK(weights[i] == 0);   // rows 11 to 15
  for (std::size_t i = 96; i < 104; ++i) CHECK(weights[i] == 1);  // ln1w follows wpe (8, 4)
  CHECK(weights[weights.size() - 5] == 1);                        // lnfw
  CHECK(weights.back() == 0);                                     // lnfb
}
