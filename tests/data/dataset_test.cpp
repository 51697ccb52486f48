#include "common/data/dataset.h"

#include <cmath>

#include "tests/catch.h"
#include "tests/data/shard_files.h"
#include "tests/temporary_directory.h"

namespace {

using strata::data::DataSetFacts;
using strata::data::nats_per_token;
using strata::data::open_data_set;
using strata::data::open_split;
using strata::data::read_facts;
using strata::data::write_facts;
using strata::io::read_file;
using strata::io::write_file;
using strata::tests::contains;
using strata::tests::counting;
using strata::tests::shard_bytes;
using strata::tests::TemporaryDirectory;

DataSetFacts example() {
  return {.name = "an \"example\"",
          .source = "a test",
          .vocab_size = 300,
          .end_of_text = 299,
          .train = {.tokens = 30, .bytes = 100, .documents = 3, .shards = 2},
          .val = {.tokens = 5, .bytes = 20, .documents = 1, .shards = 1},
          .entropy = strata::data::SourceEntropy{123.5, 20.25},
          .fingerprint = "0123456789abcdef"};
}

void write_example_shards(const TemporaryDirectory& directory) {
  write_file(directory / "train_000000.bin", shard_bytes(counting(20)));
  write_file(directory / "train_000001.bin", shard_bytes(counting(10)));
  write_file(directory / "val_000000.bin", shard_bytes(counting(5)));
}

TEST_CASE("dataset.json reads back as it was written") {
  const TemporaryDirectory directory;
  write_facts(directory.path(), example());
  CHECK(read_facts(directory.path()) == example());
  DataSetFacts bare = example();
  bare.entropy.reset();
  bare.fingerprint.clear();
  write_facts(directory.path(), bare);
  CHECK(read_facts(directory.path()) == bare);
}

TEST_CASE("names that are not UTF-8 do not keep a data set from being written") {
  const TemporaryDirectory directory;
  DataSetFacts facts = example();
  facts.source = "caf\xe9.txt";
  write_facts(directory.path(), facts);
  CHECK(read_facts(directory.path()).source == "caf\xef\xbf\xbd.txt");
}

TEST_CASE("nats per token are bits times ln 2 over tokens") {
  CHECK(nats_per_token(8, 4) == Approx(2 * std::log(2.0)).epsilon(1e-15));
}

TEST_CASE("a data set opens with all its shards in order") {
  const TemporaryDirectory directory;
  write_facts(directory.path(), example());
  write_example_shards(directory);
  write_file(directory / "train_1.bin", "not one of ours");
  write_file(directory / "training_000000.bin", "nor this");
  const auto set = open_data_set(directory.path());
  REQUIRE(set.train.size() == 2);
  CHECK(set.train[0].size() == 20);
  CHECK(set.train[1].size() == 10);
  REQUIRE(set.val.size() == 1);
}

TEST_CASE("what is missing is said, and how to make a data set") {
  const TemporaryDirectory directory;
  CHECK_THROWS_WITH(open_data_set(directory / "absent"),
                    contains("there is no data set") && contains("./run data"));
  write_file(directory / "file", "");
  CHECK_THROWS_WITH(open_data_set(directory / "file"),
                    contains("is a file, but a data set is a directory") && contains("./run data"));
  CHECK_THROWS_WITH(open_data_set(directory.path()),
                    contains("has no dataset.json") && contains("./run data"));
  CHECK_THROWS_WITH(
      open_split(directory.path(), "train"),
      contains("has no train shards (train_000000.bin, ...)") && contains("./run data"));
  write_facts(directory.path(), example());
  write_example_shards(directory);
  std::filesystem::remove(directory / "train_000000.bin");
  CHECK_THROWS_WITH(open_data_set(directory.path()), contains("train_000000.bin' is missing"));
}

TEST_CASE("shards of another data set are noticed") {
  const TemporaryDirectory directory;
  write_facts(directory.path(), example());
  write_example_shards(directory);
  write_file(directory / "train_000001.bin", shard_bytes(counting(11)));
  CHECK_THROWS_WITH(open_data_set(directory.path()),
                    contains("30 tokens in 2 shards, but 31 tokens in 2 shards are there"));
  std::filesystem::remove(directory / "train_000001.bin");
  CHECK_THROWS_WITH(open_data_set(directory.path()), contains("mixed up"));
}

TEST_CASE("a wrong dataset.json is refused with the file and the member") {
  const TemporaryDirectory directory;
  write_facts(directory.path(), example());
  const std::string good = read_file(directory / "dataset.json");
  struct Case {
    std::string from, to, sentence;
  };
  const std::vector<Case> cases{
      {good, "", "is not JSON"},
      {good, good.substr(0, 40), "is not JSON"},
      {good, "[1]", "it is not an object"},
      {good, "{}", "has no \"format\""},
      {"\"format\": 1", "\"format\": 2", "has format 2, but this program reads format 1"},
      {"\"format\": 1", "\"format\": \"1\"", "\"format\" is not a whole number"},
      {"\"vocab_size\": 300", "\"vocab_size\": 70000", "\"vocab_size\" is not a whole number from"},
      {"\"vocab_size\": 300", "\"vocab_size\": -3", "\"vocab_size\" is not a whole number from"},
      {"\"vocab_size\": 300", "\"vocab_size\": 299", "which is not under the \"vocab_size\" 299"},
      {"\"documents\": 3", "\"documents\": 3.5", "\"train.documents\" is not a whole number"},
      {"\"tokens\": 5", "\"token\": 5", "has no \"val.tokens\""},
      {"\"source\": \"a test\"", "\"source\": 5", "\"source\" is not a text"},
      {"123.5", "-123.5", "\"entropy.train_bits\" is not a number that is not negative"},
      {"20.25", "null", "\"entropy.val_bits\" is not a number"},
  };
  for (const Case& wrong : cases) {
    std::string bytes = good;
    const auto at = bytes.find(wrong.from);
    REQUIRE(at != std::string::npos);
    write_file(directory / "dataset.json", bytes.replace(at, wrong.from.size(), wrong.to));
    CAPTURE(bytes, wrong.sentence);
    CHECK_THROWS_WITH(read_facts(directory.path()),
                      contains("dataset.json'") && contains(wrong.sentence));
  }
}

}  // namespace
