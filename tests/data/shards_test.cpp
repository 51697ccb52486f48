#include "common/data/shards.h"

#include <chrono>
#include <cstring>
#include <random>

#include "common/data/loader.h"
#include "tests/catch.h"
#include "tests/data/shard_files.h"
#include "tests/temporary_directory.h"

namespace {

using strata::data::Loader;
using strata::data::LoaderOptions;
using strata::data::Order;
using strata::data::ShardReader;
using strata::data::ShardWriter;
using strata::io::read_file;
using strata::io::write_file;
using strata::tests::contains;
using strata::tests::counting;
using strata::tests::shard_bytes;
using strata::tests::shard_bytes_claiming;
using strata::tests::TemporaryDirectory;

std::vector<std::uint16_t> all_tokens(const ShardReader& shard) {
  const auto tokens = shard.tokens(0, shard.size());
  return {tokens.begin(), tokens.end()};
}

TEST_CASE("a shard as llm.c writes it is read token for token") {
  const TemporaryDirectory directory;
  write_file(directory / "shard.bin", shard_bytes({50256, 0, 65535, 7}));
  const ShardReader shard(directory / "shard.bin");
  CHECK(shard.size() == 4);
  CHECK(all_tokens(shard) == std::vector<std::uint16_t>{50256, 0, 65535, 7});
  CHECK(shard.tokens(4, 0).empty());
  CHECK_THROWS_AS(shard.tokens(3, 2), std::out_of_range);
  CHECK_THROWS_AS(shard.tokens(5, 0), std::out_of_range);
  CHECK_THROWS_AS(shard.tokens(1, ~std::uint64_t{0}), std::out_of_range);
}

TEST_CASE("the writer's bytes are llm.c's, and shards begin where they should") {
  const TemporaryDirectory directory;
  ShardWriter writer(directory.path(), "train", 65536, 4);
  const std::vector<std::uint32_t> tokens{9, 8, 7, 6, 5, 65535, 3, 2, 1};
  writer.append(std::span(tokens).first(3));
  writer.append(std::span(tokens).subspan(3));
  CHECK_FALSE(std::filesystem::exists(directory / "train_000002.bin"));
  writer.finish();
  writer.finish();
  CHECK(writer.tokens() == 9);
  CHECK(writer.shards() == 3);
  CHECK(read_file(directory / "train_000000.bin") == shard_bytes({9, 8, 7, 6}));
  CHECK(read_file(directory / "train_000001.bin") == shard_bytes({5, 65535, 3, 2}));
  CHECK(read_file(directory / "train_000002.bin") == shard_bytes({1}));
}

TEST_CASE("no empty shard follows a full one") {
  const TemporaryDirectory directory;
  ShardWriter writer(directory.path(), "val", 10, 2);
  writer.append(std::vector<std::uint32_t>{1, 2, 3, 4});
  writer.finish();
  CHECK(writer.shards() == 2);
  CHECK_FALSE(std::filesystem::exists(directory / "val_000002.bin"));
}

TEST_CASE("a shard that is not finished leaves no file") {
  const TemporaryDirectory directory;
  { ShardWriter(directory.path(), "train", 10).append(std::vector<std::uint32_t>{1, 2}); }
  CHECK(std::filesystem::is_empty(directory.path()));
}

TEST_CASE("the writer refuses what a shard cannot hold") {
  const TemporaryDirectory directory;
  ShardWriter writer(directory.path(), "train", 10);
  CHECK_THROWS_WITH(writer.append(std::vector<std::uint32_t>{10}),
                    contains("token 10 cannot be written") && contains("10 tokens"));
  CHECK_THROWS_WITH(ShardWriter(directory.path(), "x", 65537), contains("16 bits"));
  CHECK_THROWS_WITH(ShardWriter(directory.path(), "x", 9, 0), contains("1 to 4294967295"));
  CHECK_THROWS_WITH(ShardWriter(directory.path(), "x", 9, std::uint64_t{1} << 32),
                    contains("not 4294967296"));
  ShardWriter lost(directory / "absent", "train", 10);
  CHECK_THROWS_WITH(lost.append(std::vector<std::uint32_t>{1}), contains("absent"));
}

TEST_CASE("a token beyond the vocabulary is refused with shard, position, token and vocabulary") {
  const TemporaryDirectory directory;
  write_file(directory / "train_000000.bin", shard_bytes({1, 2, 999, 1000, 4}));
  const ShardReader shard(directory / "train_000000.bin");
  CHECK_NOTHROW(shard.check(0, 5, 1001));
  CHECK_NOTHROW(shard.check(0, 3, 1000));
  CHECK_NOTHROW(shard.check(4, 1, 1000));
  CHECK_THROWS_WITH(shard.check(1, 4, 1000),
                    contains("train_000000.bin' has token 1000 at position 3") &&
                        contains("the vocabulary has 1000 tokens (0 to 999)"));
}

TEST_CASE("every wrong file is refused in one sentence that says what it is") {
  const TemporaryDirectory directory;
  const auto path = directory / "train_000000.bin";
  const std::string good = shard_bytes(counting(100));
  const std::string safetensors = std::string("\x10\0\0\0\0\0\0\0{\"a\":", 14) + good;
  struct Case {
    std::string bytes, sentence;
  };
  const std::vector<Case> cases{
      {"", "is empty"},
      {"ab", "is truncated: it has 2 bytes"},
      {good.substr(0, 4), "is truncated: it has 4 bytes"},
      {good.substr(0, 1023), "is truncated: it has 1023 bytes"},
      {good.substr(0, 1024), "is truncated: its header says 100 tokens, which take 1224 bytes"},
      {good.substr(0, 1223), "is truncated"},
      {good + "x",
       "is too long: its header says 100 tokens, which take 1224 bytes, but it has 1225"},
      {good + good, "is too long"},
      {shard_bytes({}), "is a token shard without tokens"},
      {shard_bytes({1}, 20240520, 2), "is a token shard of version 2; version 1 is wanted"},
      {shard_bytes_claiming(0xffff'ffff, {1}), "4294967295 tokens, which take 8589935614 bytes"},
      {shard_bytes({1}, 20240801, 7), "is a shard of Llama 3 tokens (magic 20240801)"},
      {shard_bytes({1}, 20240326), "model file"},
      {shard_bytes({1}, 20240327), "debug state"},
      {shard_bytes({1}, 20240328), "is a tokenizer.bin"},
      {shard_bytes({1}, 20240522), "evaluation set"},
      {shard_bytes({1}, 20240527), "optimizer state"},
      {shard_bytes({1}, 0x88d8'3401), "big-endian"},
      {safetensors, "is a safetensors file"},
      {"\x93NUMPY\x01" + good, "is a NumPy array"},
      {"\x1f\x8b\x08" + good, "is compressed"},
      {"First Citizen:\nBefore we proceed", "is text, not a token shard; ./run data FILE"},
      {std::string(2000, '\0'), "it begins with 0, not with the magic 20240520"},
  };
  for (const Case& wrong : cases) {
    write_file(path, wrong.bytes);
    CAPTURE(wrong.sentence);
    CHECK_THROWS_WITH(ShardReader(path),
                      contains("train_000000.bin' ") && contains(wrong.sentence));
  }
  CHECK_THROWS_WITH(ShardReader(directory / "absent.bin"), contains("absent.bin"));
  CHECK_THROWS_WITH(ShardReader(directory.path()), contains("not a regular file"));
}

TEST_CASE("a shard over 4 GiB is read to its last window") {
  const TemporaryDirectory directory;
  const auto path = directory / "train_000000.bin";
  constexpr std::uint64_t count = 2'200'000'000;  // over 2^31 tokens, over 2^32 bytes
  constexpr std::uint64_t length = 1024;
  constexpr std::uint64_t windows = (count - 1) / length;
  write_file(path, shard_bytes_claiming(static_cast<std::uint32_t>(count), {}));
  std::filesystem::resize_file(path, 1024 + 2 * count);  // a hole: it takes no room on the disk
  std::vector<std::uint16_t> last = counting(length + 1, 17);
  {
    std::FILE* file = std::fopen(path.c_str(), "r+b");
    REQUIRE(file != nullptr);
    REQUIRE(::fseeko(file, static_cast<off_t>(1024 + 2 * (windows - 1) * length), SEEK_SET) == 0);
    REQUIRE(std::fwrite(last.data(), 2, last.size(), file) == last.size());
    REQUIRE(std::fclose(file) == 0);
  }
  std::vector<ShardReader> shards;
  shards.emplace_back(path);
  REQUIRE(shards[0].size() == count);
  Loader loader(std::move(shards),
                {.rows = 1, .seq_len = length, .vocab_size = 2048, .order = Order::sequential});
  REQUIRE(loader.windows() == windows);
  std::vector<std::int32_t> inputs(length), targets(length);
  loader.restore({0, windows - 1});
  loader.next(inputs, targets);
  CHECK(std::equal(inputs.begin(), inputs.end(), last.begin()));
  CHECK(std::equal(targets.begin(), targets.end(), last.begin() + 1));
}

/// Changes `bytes` as careless copying and hostile hands do.
void mutate(std::string& bytes, std::mt19937_64& random) {
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  switch (below(5)) {
    case 0:
      bytes.resize(below(bytes.size() + 1));
      break;
    case 1:
      bytes.append(1 + below(40), static_cast<char>(random()));
      break;
    case 2:
      bytes[below(std::min<std::size_t>(bytes.size(), 12))] = static_cast<char>(random());
      break;
    case 3:
      bytes[below(bytes.size())] ^= static_cast<char>(1 << below(8));
      break;
    default:
      bytes.erase(below(bytes.size()), 1 + below(8));
      break;
  }
}

/// Each mutant must be refused by name or be a shard that can be read to its end.
void fuzz_shards(std::uint64_t seed, std::size_t rounds) {
  const TemporaryDirectory directory;
  const auto path = directory / "train_000000.bin";
  std::mt19937_64 random(seed);
  std::size_t refused = 0;
  for (std::size_t round = 0; round < rounds; ++round) {
    std::string bytes = shard_bytes(counting(random() % 50));
    for (auto times = 1 + random() % 3; times > 0 && !bytes.empty(); --times) mutate(bytes, random);
    std::FILE* file =
        std::fopen(path.c_str(), "wb");  // not write_file: syncing would take the time
    REQUIRE(file != nullptr);
    REQUIRE(std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size());
    REQUIRE(std::fclose(file) == 0);
    INFO("seed " << seed << ", round " << round);
    try {
      std::vector<ShardReader> shards;
      shards.emplace_back(path);
      const std::uint64_t size = shards[0].size();
      if (bytes.size() != 1024 + 2 * size) FAIL("a wrong size was accepted");
      Loader loader(std::move(shards), {.rows = 1, .seq_len = 3, .vocab_size = 60});
      std::vector<std::int32_t> inputs(3), targets(3);
      for (std::uint64_t i = 0; i < loader.windows(); ++i) {
        loader.next(inputs, targets);
        for (const auto token : inputs)
          if (token < 0 || token >= 60) FAIL("a token out of range was dealt");
      }
    } catch (const std::runtime_error& error) {
      ++refused;
      if (std::string(error.what()).find("train_000000.bin") == std::string::npos)
        FAIL("the file is not named: " << error.what());
    }
  }
  CHECK(refused > rounds / 2);
}

TEST_CASE("mutated shards are refused by name or read safely") { fuzz_shards(1, 2000); }

TEST_CASE("mutated shards for ten minutes", "[.fuzz]") {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(10);
  for (std::uint64_t seed = 2; std::chrono::steady_clock::now() < end; ++seed)
    fuzz_shards(seed, 2000);
}

}  // namespace
