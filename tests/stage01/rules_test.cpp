// Stage 01's own copies of rules that common/ has too: the order of the windows, and JSON.

#include <nlohmann/json.hpp>

#include "common/data/loader.h"
#include "tests/catch.h"
#include "tests/stage01/run_support.h"
#include "tests/stage01/stage01.h"

namespace {

using namespace strata::tests;
using stage01::Index;
using stage01::Json;
using stage01::mix;
using stage01::permute;

// ---------------------------------------------------------------------------------------------------
// The order of the windows

// The values that an independent program computed; common/data/loader's test has the same.
TEST_CASE("stage 01's mix and permute give the committed values") {
  CHECK(mix(0) == 0xe220a8397b1dcdafu);
  CHECK(mix(1) == 0x910a2dec89025cc1u);
  CHECK(mix(42) == 0xbdd732262feb6e95u);
  CHECK(mix(~std::uint64_t{0}) == 0xe4d971771b652c20u);
  const auto order = [](Index windows, std::uint64_t seed, Index epoch) {
    std::vector<Index> result;
    for (Index q = 0; q < windows; ++q) result.push_back(permute(q, windows, seed, epoch));
    return result;
  };
  CHECK(order(10, 42, 0) == std::vector<Index>{1, 3, 0, 8, 9, 5, 4, 7, 2, 6});
  CHECK(order(10, 42, 1) == std::vector<Index>{5, 4, 1, 8, 3, 2, 0, 9, 6, 7});
  CHECK(order(5, 1, 0) == std::vector<Index>{3, 0, 4, 1, 2});
  CHECK(order(1, 9, 9) == std::vector<Index>{0});
  CHECK(permute(0, 1'000'003, 7, 3) == 231'989);
  CHECK(permute(1'000'002, 1'000'003, 7, 3) == 121'390);
  CHECK(permute(123'456'789, 1'000'000'000'000, std::uint64_t{1} << 63, 5) == 6'173'836'510);
}

TEST_CASE("stage 01's mix and permute are those of common/data") {
  std::mt19937_64 random(3);
  for (int i = 0; i < 20'000; ++i) {
    const std::uint64_t windows = 1 + random() % (std::uint64_t{1} << (1 + random() % 40));
    const std::uint64_t q = random() % windows, seed = random(), epoch = random() % 1000;
    const auto ours = static_cast<std::uint64_t>(permute(
        static_cast<Index>(q), static_cast<Index>(windows), seed, static_cast<Index>(epoch)));
    if (ours != strata::data::permute(q, windows, seed, epoch) ||
        mix(seed) != strata::data::mix(seed))
      FAIL("W = " << windows << ", q = " << q << ", seed = " << seed << ", epoch = " << epoch);
  }
}

/// The tokens of `count` batches of `rows` windows, dealt by stage 01.
std::vector<stage01::Token> dealt(const fs::path& data, Index T, Index rows, Index seed, Index from,
                                  int count) {
  const stage01::Split split(data, "train", T, 257);
  std::vector<stage01::Token> tokens;
  for (int i = 0; i < count; ++i) {
    stage01::Batch batch(rows, T);
    stage01::deal(split, seed, from + i * rows, batch);
    tokens.insert(tokens.end(), batch.inputs.begin(), batch.inputs.end());
    tokens.insert(tokens.end(), batch.targets.begin(), batch.targets.end());
  }
  return tokens;
}

/// The same by the loader of common/data.
std::vector<std::int32_t> loaded(const fs::path& data, Index T, Index rows, Index seed, Index from,
                                 int count) {
  std::vector<strata::data::ShardReader> shards;
  for (std::uint64_t i = 0; fs::exists(data / strata::data::shard_name("train", i)); ++i)
    shards.emplace_back(data / strata::data::shard_name("train", i));
  strata::data::LoaderOptions options;
  options.rows = static_cast<std::uint64_t>(rows), options.seq_len = static_cast<std::uint64_t>(T);
  options.vocab_size = 257, options.seed = static_cast<std::uint64_t>(seed);
  strata::data::Loader loader(std::move(shards), options);
  loader.restore({options.seed, static_cast<std::uint64_t>(from)});
  std::vector<std::int32_t> tokens, inputs(static_cast<std::size_t>(rows * T)), targets = inputs;
  for (int i = 0; i < count; ++i) {
    loader.next(inputs, targets);
    tokens.insert(tokens.end(), inputs.begin(), inputs.end());
    tokens.insert(tokens.end(), targets.begin(), targets.end());
  }
  return tokens;
}

TEST_CASE(
    "stage 01 deals the batches of common/data's loader, shard after shard, epoch after epoch") {
  // Shards of no window, of one, of some, with and without a rest.
  const Workshop workshop({205, 16, 17, 331, 33, 5});
  for (const Index T : {1, 7, 16})
    for (const Index rows : {1, 3, 8})
      for (const Index seed : {0, 1, 77}) {
        INFO("T " << T << " rows " << rows << " seed " << seed);
        const auto ours = dealt(workshop.data, T, rows, seed, 5, 90);
        CHECK(ours == loaded(workshop.data, T, rows, seed, 5, 90));
        CHECK_FALSE(ours == loaded(workshop.data, T, rows, seed + 1, 5, 90));
        CHECK_FALSE(ours == loaded(workshop.data, T, rows, seed, 6, 90));
      }
}

TEST_CASE("a window of the last and of the first tokens of a shard is read as it stands") {
  const Workshop workshop({33, 20});
  const stage01::Split split(workshop.data, "train", 16, 257);
  CHECK(split.windows == 3);
  CHECK(split.tokens == 53);
  const auto first = byte_tokens(33, 1), second = byte_tokens(20, 2);
  for (const auto& [window, tokens, start] :
       {std::tuple{0, &first, 0}, {1, &first, 16}, {2, &second, 0}}) {
    std::vector<stage01::Token> inputs(16), targets(16);
    split.read(window, inputs.data(), targets.data());
    CHECK(std::equal(inputs.begin(), inputs.end(), tokens->begin() + start));
    CHECK(std::equal(targets.begin(), targets.end(), tokens->begin() + start + 1));
  }
}

// ---------------------------------------------------------------------------------------------------
// JSON

Json parsed(const std::string& source) { return stage01::JsonParser{source, "it"}.parse(); }

/// The same value as nlohmann's library has it.
nlohmann::json theirs(const Json& json) {
  if (const bool* b = json.get<bool>()) return *b;
  if (const double* x = json.get<double>()) return *x;
  if (const std::string* s = json.get<std::string>()) return *s;
  if (const auto* array = json.get<Json::Array>()) {
    nlohmann::json list = nlohmann::json::array();
    for (const Json& item : *array) list.push_back(theirs(item));
    return list;
  }
  if (const auto* object = json.get<Json::Object>()) {
    nlohmann::json members = nlohmann::json::object();
    for (const auto& [key, item] : *object) members[key] = theirs(item);
    return members;
  }
  return nullptr;
}

const char* const documents[] = {"{}",
                                 "[]",
                                 "null",
                                 "true",
                                 "false",
                                 "0",
                                 "-0",
                                 "-12.5e-3",
                                 "1E+2",
                                 "9007199254740992",
                                 "\"\"",
                                 "  [ 1 ,\t2\r\n, [ ] ] ",
                                 R"({"a": {"b": [1, "x", null, true]}, "": 0})",
                                 R"(["\"\\\/\b\f\n\r\t", "\u0041\u007f", "ä€😀"])",
                                 "4.9e-324",
                                 "1.7976931348623157e308"};

TEST_CASE("JSON is read as nlohmann's library reads it") {
  for (const char* document : documents) {
    INFO(document);
    CHECK(theirs(parsed(document)) == nlohmann::json::parse(document));
  }
}

TEST_CASE("JSON is written so that both readers get it back") {
  for (const char* document : documents) {
    INFO(document);
    const Json json = parsed(document);
    CHECK(parsed(to_json(json)) == json);
    CHECK(nlohmann::json::parse(to_json(json)) == theirs(json));
  }
}

TEST_CASE("numbers are written to the bit") {
  std::mt19937_64 random(5);
  for (int i = 0; i < 50'000; ++i) {
    const std::uint64_t bits = random();
    double x = 0;
    std::memcpy(&x, &bits, sizeof x);
    if (!std::isfinite(x)) continue;
    if (parsed(stage01::to_json(Json(x))) != Json(x)) FAIL(x << " comes back changed");
  }
  for (const double x : {9e15, 9007199254740993.0, 1e-310, -0.1, 1e15 + 0.5})
    CHECK(parsed(stage01::to_json(Json(x))) == Json(x));
  for (const double x : {std::nan(""), HUGE_VAL, -HUGE_VAL}) CHECK(to_json(Json(x)) == "null");
}

TEST_CASE("any bytes can be written, and what is no UTF-8 becomes the replacement character") {
  CHECK(stage01::to_json(std::string("\xff")) == R"("\ufffd")");
  CHECK(stage01::to_json(std::string("a\xc3")) == R"("a\ufffd")");
  CHECK(stage01::to_json(std::string("\xc0\xaf")) == R"("\ufffd\ufffd")");
  CHECK(stage01::to_json(std::string("\0\x1f\"\\", 4)) == R"("\u0000\u001f\"\\")");
  std::mt19937 random(9);
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes;
    for (unsigned n = random() % 8; n > 0; --n)
      bytes += static_cast<char>(random() | (random() % 2) << 7);
    const std::string json = stage01::to_json(bytes);
    if (!nlohmann::json::accept(json))
      FAIL("no JSON for bytes " << nlohmann::json(std::vector<int>(bytes.begin(), bytes.end()))
                                << ": " << json);
  }
}

TEST_CASE("what is no JSON is refused, saying where and what is missing") {
  const std::pair<std::string, const char*> cases[] = {
      {"", "at byte 0 there should be a value"},
      {"{", "at byte 1 there should be a name in quotes"},
      {"{\"a\"", "there should be a colon"},
      {"{\"a\":1", "at byte 6 there should be a comma or a closing brace"},
      {"{\"a\":1,}", "there should be a name in quotes"},
      {"[1", "a comma or a closing bracket"},
      {"[1,]", "at byte 3 there should be a value"},
      {"[1] x", "at byte 4 there should be the end"},
      {std::string("[1]\0", 4), "there should be the end"},
      {"\"abc", "a closing quote"},
      {"\"abc\\", "an escape that JSON knows"},
      {"\"\\u12", "an escape that JSON knows"},
      {"\"\\u12g4\"", "an escape that JSON knows"},
      {"\"\\x41\"", "an escape that JSON knows"},
      {"nan", "a value"},
      {"inf", "a value"},
      {"1e999", "a value"},
      {"tru", "a value"},
      {"+1", "a value"},
      {std::string(100, '['), "less nesting"},
      {std::string(10'000'000, '['), "less nesting"},
  };
  for (const auto& [source, sentence] : cases) {
    INFO(source.substr(0, 100));
    CHECK_THROWS_WITH(parsed(source), contains("it is not valid JSON") && contains(sentence));
  }
  std::string bomb;
  for (int i = 0; i < 100'000; ++i) bomb += "{\"a\":";
  CHECK_THROWS_WITH(parsed(bomb), contains("less nesting"));
  CHECK_NOTHROW(parsed(std::string(60, '[') + std::string(60, ']')));
}

}  // namespace
