#include "common/data/prepare.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cmath>
#include <numbers>

#include "common/data/inspect.h"
#include "tests/catch.h"
#include "tests/temporary_directory.h"

namespace {

namespace fs = std::filesystem;
using namespace strata::data;
using strata::io::read_file;
using strata::io::write_file;
using strata::tests::contains;
using strata::tests::TemporaryDirectory;

const std::atomic<bool> go_on{false};

PrepareResult run(const PrepareOptions& options) {
  Progress silent(Progress::Style::silent);
  return prepare(options, silent, go_on);
}

/// A text of `count` documents, each of some lines.
std::string stories(int count, int first = 0) {
  std::string text;
  for (int story = first; story < first + count; ++story) {
    if (!text.empty()) text += "<|endoftext|>\n";
    for (int line = 0; line < 4; ++line)
      text += "Story " + std::to_string(story) + " has a line " + std::to_string(line) + ".\n";
  }
  return text;
}

/// A directory with a text to prepare, and options that prepare it.
struct Workshop {
  TemporaryDirectory directory;
  PrepareOptions options;

  Workshop() {
    write_file(directory / "text", stories(50));
    options.inputs = {directory / "text"};
    options.out = directory / "set";
    options.vocab_size = 300;
  }
  [[nodiscard]] fs::path set(const std::string& file) const { return directory / "set" / file; }
};

std::vector<std::string> names_in(const fs::path& directory) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

/// All tokens of a split as text.
std::string decode_split(const fs::path& set, const std::string& split) {
  std::vector<std::uint32_t> ids;
  for (const ShardReader& shard : open_split(set, split)) {
    const auto tokens = shard.tokens(0, shard.size());
    ids.insert(ids.end(), tokens.begin(), tokens.end());
  }
  return Tokenizer::load(set).decode(ids);
}

// -------------------------------------------------------------------------------- what is made

TEST_CASE("the tokens are the text, each document preceded by end of text") {
  const Workshop shop;
  const PrepareResult made = run(shop.options);
  std::string all = stories(50);
  for (std::size_t at = 0; (at = all.find(">\n", at)) != std::string::npos;) all.erase(at + 1, 1);
  CHECK("<|endoftext|>" + all ==
        decode_split(shop.options.out, "train") + decode_split(shop.options.out, "val"));
  CHECK(names_in(shop.options.out) == std::vector<std::string>{"dataset.json", "tokenizer.bin",
                                                               "tokenizer.json", "train_000000.bin",
                                                               "val_000000.bin"});
  CHECK(names_in(shop.directory.path()) == std::vector<std::string>{"set", "text"});
  CHECK(made.facts == read_facts(shop.options.out));
  CHECK(made.facts.name == "set");
  CHECK(made.facts.source == (shop.directory / "text").string());
  CHECK(made.facts.vocab_size == 300);
  CHECK(made.facts.end_of_text == 299);
  CHECK(made.facts.train.documents == 45);
  CHECK(made.facts.val.documents == 5);
  CHECK_FALSE(made.facts.entropy.has_value());
  CHECK(inspect(shop.options.out) == made.facts);
}

TEST_CASE("the shards do not depend on the number of threads") {
  Workshop shop;
  std::string text;
  for (int part = 0; part < 20; ++part) text += stories(1000, 1000 * part);
  write_file(shop.directory / "text", text);  // 2.5 MB: many units for each thread
  shop.options.shard_tokens = 100'000;
  shop.options.threads = 1;
  const auto one = run(shop.options).facts;
  shop.options.out = shop.directory / "other";
  shop.options.name = "set";
  shop.options.threads = 3;
  const auto three = run(shop.options).facts;
  CHECK(one.train == three.train);
  CHECK(one.train.shards > 5);
  for (const auto& name : names_in(shop.directory / "set"))
    if (name != "dataset.json")
      CHECK(read_file(shop.set(name)) == read_file(shop.options.out / name));
  CHECK(inspect(shop.options.out) == three);
}

TEST_CASE("a validation text of one's own is used whole, and facts become entropy") {
  Workshop shop;
  write_file(shop.directory / "val", stories(7));
  write_file(shop.directory / "train.json", R"({"bits": 1000.5, "documents": 50})");
  write_file(shop.directory / "val.json", R"({"bits": 70, "documents": 7, "bytes": )" +
                                              std::to_string(stories(7).size() - 6 * 14) + "}");
  shop.options.validation = {shop.directory / "val"};
  shop.options.train_facts = shop.directory / "train.json";
  shop.options.validation_facts = shop.directory / "val.json";
  const auto facts = run(shop.options).facts;
  CHECK(facts.train.documents == 50);
  CHECK(facts.val.documents == 7);
  REQUIRE(facts.entropy.has_value());
  CHECK(facts.entropy->train_bits == 1000.5);
  CHECK(facts.entropy->val_bits == 70);
  CHECK_THAT(describe(facts), contains("the source's entropy is"));

  const auto refused = [&](const std::string& json, const std::string& sentence) {
    write_file(shop.directory / "val.json", json);
    CHECK_THROWS_WITH(run(shop.options), contains("val.json'") && contains(sentence));
  };
  refused(R"({"bits": 70, "documents": 8})",
          "about a text of 8 documents, but the text here has 7");
  refused(R"({"bits": 70, "bytes": 1})", "about a text of 1 bytes");
  refused(R"({"bits": -1})", "should have a number \"bits\"");
  refused(R"({"bits": "70"})", "should have a number \"bits\"");
  refused("[70]", "should have a number \"bits\"");
  refused("{", "is not JSON");
}

TEST_CASE("a given tokenizer is used and copied") {
  Workshop shop;
  const std::string_view other_text = "other words, other merges, other ids";
  const Tokenizer other =
      Tokenizer::train(std::vector{other_text}, {.vocab_size = 270, .min_frequency = 2});
  fs::create_directory(shop.directory / "other");
  other.save_json(shop.directory / "other" / "tokenizer.json");
  shop.options.tokenizer = shop.directory / "other";
  shop.options.vocab_size = 0;
  const auto facts = run(shop.options).facts;
  CHECK(facts.vocab_size == other.vocab_size());
  CHECK(Tokenizer::load(shop.options.out).vocabulary() == other.vocabulary());
  CHECK(inspect(shop.options.out) == facts);
}

TEST_CASE("the vocabulary is learnt from all parts of a text that is longer than the sample") {
  const TemporaryDirectory directory;
  std::string text;
  for (int part = 0; part < 8; ++part)  // each part has a word of its own, in lines of 64 bytes
    for (int line = 0; line < 65536; ++line)
      text += std::string(31, static_cast<char>('a' + part)) + " " + std::string(31, 'z') + "\n";
  write_file(directory / "text", text);
  PrepareOptions options;
  options.inputs = {directory / "text"};
  options.out = directory / "set";
  options.vocab_size = 1024;
  options.sample_bytes = text.size() / 4;
  run(options);
  const Tokenizer tokenizer = Tokenizer::load(options.out);
  std::size_t learnt = 0;
  for (char word = 'a'; word < 'h'; ++word)
    learnt += tokenizer.encode(std::string(31, word)).size() <= 2;
  CHECK(learnt >= 4);  // pieces have a megabyte, so a quarter of 32 MB can miss some of the parts
  CHECK(tokenizer.encode(std::string(31, 'a')).size() <= 2);
  CHECK(tokenizer.encode(std::string(31, 'q')).size() == 31);
}

TEST_CASE("defaults follow the size of the text") {
  CHECK(default_vocab_size(1000) == 1024);
  CHECK(default_vocab_size(24'000'000) == 4096);
  CHECK(default_vocab_size(500'000'000) == 16384);
  CHECK(default_vocab_size(10'000'000'000) == 32768);
  CHECK(default_validation_fraction(1000) == 0.1);
  CHECK(default_validation_fraction(10'000'000'000) == Approx(0.001));
}

// ------------------------------------------------------------------------------- what is refused

TEST_CASE("settings that cannot be are refused in words") {
  const auto refused = [](auto change, const std::string& sentence) {
    Workshop shop;
    change(shop);
    CAPTURE(sentence);
    CHECK_THROWS_WITH(run(shop.options), contains(sentence));
    CHECK_FALSE(fs::exists(shop.directory / "set"));
    CHECK_FALSE(fs::exists(shop.directory / "set.tmp"));
  };
  refused([](Workshop& s) { s.options.inputs.clear(); }, "there is no input");
  refused([](Workshop& s) { s.options.inputs = {s.directory / "no"}; }, "there is no file or");
  refused([](Workshop& s) { s.options.validation_fraction = 0; }, "above 0 and at most 0.5");
  refused([](Workshop& s) { s.options.validation_fraction = std::nan(""); }, "above 0 and at most");
  refused([](Workshop& s) { s.options.vocab_size = 256; }, "--vocab-size is 256");
  refused([](Workshop& s) { s.options.vocab_size = 65537; }, "16 bits");
  refused([](Workshop& s) { s.options.shard_tokens = 0; }, "--shard-tokens is 0");
  refused([](Workshop& s) { s.options.shard_tokens = std::uint64_t{1} << 32; }, "4294967295");
  refused([](Workshop& s) { s.options.threads = -1; }, "--threads is -1");
  refused([](Workshop& s) { s.options.tokenizer = s.directory / "no"; }, "--vocab-size has no");
  refused([](Workshop& s) { s.options.train_facts = "x"; }, "for both splits or for neither");
  refused([](Workshop& s) { s.options.train_facts = s.options.validation_facts = "x"; },
          "need --val");
  refused([](Workshop& s) { s.options.validation = {s.directory / "text"}; }, "skipped");
}

TEST_CASE("a corpus without text is refused in words") {
  const auto refused = [](const std::string& text, const std::string& sentence) {
    Workshop shop;
    write_file(shop.directory / "text", text);
    CHECK_THROWS_WITH(run(shop.options), contains(sentence));
    CHECK(names_in(shop.directory.path()) == std::vector<std::string>{"text"});
  };
  refused("", "there is no text in");
  refused(std::string(10, '\0'), "everything was skipped");
  refused("x", "split would be empty");
  refused("<|endoftext|>\n<|endoftext|>\n", "split would be empty");
}

TEST_CASE("a tokenizer whose ids do not fit into a shard is refused") {
  Workshop shop;
  Vocabulary vocabulary =
      Tokenizer::train(std::vector<std::string_view>{"aa"}, {.vocab_size = 257}).vocabulary();
  while (vocabulary.tokens.size() <= 65536)
    vocabulary.tokens.push_back("token " + std::to_string(vocabulary.tokens.size()));
  Tokenizer(vocabulary).save_json(shop.directory / "tokenizer.json");
  shop.options.tokenizer = shop.directory / "tokenizer.json";
  shop.options.vocab_size = 0;
  CHECK_THROWS_WITH(run(shop.options), contains("65537 tokens") && contains("only 65536"));
}

// -------------------------------------------------------------------------- the output directory

TEST_CASE("only a data set or an empty directory is replaced") {
  Workshop shop;
  fs::create_directory(shop.options.out);
  run(shop.options);
  write_file(shop.set("made-with"), "what ./run leaves there");
  write_file(shop.set("train_000007.bin"), "a shard too many");
  run(shop.options);
  CHECK(names_in(shop.options.out).size() == 5);

  write_file(shop.set("notes.txt"), "mine");
  CHECK_THROWS_WITH(run(shop.options), contains("has 'notes.txt' in it") && contains("--force"));
  CHECK(read_file(shop.set("notes.txt")) == "mine");
  CHECK_NOTHROW(inspect(shop.options.out));
  shop.options.force = true;
  run(shop.options);
  CHECK(names_in(shop.options.out).size() == 5);

  shop.options.out = shop.directory / "file";
  write_file(shop.options.out, "mine");
  CHECK_THROWS_WITH(run(shop.options), contains("is a file"));
  shop.options.out = "/";
  CHECK_THROWS_WITH(run(shop.options), contains("root directory"));
}

TEST_CASE("an output that holds its own input is refused even with --force") {
  Workshop shop;
  shop.options.out = shop.directory.path();
  shop.options.force = true;
  CHECK_THROWS_WITH(run(shop.options), contains("is inside the output"));
  CHECK(read_file(shop.directory / "text") == stories(50));
}

TEST_CASE("through a link the data set that it leads to is replaced, not the link") {
  Workshop shop;
  fs::create_directory(shop.directory / "real");
  fs::create_directory_symlink(shop.directory / "real", shop.directory / "set");
  run(shop.options);
  CHECK(fs::is_symlink(shop.directory / "set"));
  CHECK_NOTHROW(inspect(shop.directory / "real"));
}

TEST_CASE("an interrupted or failed run leaves the old data set as it was") {
  Workshop shop;
  run(shop.options);
  const std::string before = read_file(shop.set("dataset.json"));
  Progress silent(Progress::Style::silent);
  const std::atomic<bool> interrupt{true};
  write_file(shop.directory / "text", stories(60));
  CHECK_THROWS_AS(prepare(shop.options, silent, interrupt), Interrupted);
  shop.options.train_facts = shop.options.validation_facts = shop.directory / "absent";
  shop.options.validation = {shop.directory / "val"};
  write_file(shop.directory / "val", stories(3));
  CHECK_THROWS_WITH(run(shop.options), contains("absent"));
  CHECK(read_file(shop.set("dataset.json")) == before);
  CHECK_NOTHROW(inspect(shop.options.out));
  CHECK_FALSE(fs::exists(shop.directory / "set.tmp"));
}

TEST_CASE("what a killed run left is cleared, and anything else in the way is not") {
  Workshop shop;
  const fs::path temporary = shop.directory / "set.tmp";
  fs::create_directory(temporary);
  write_file(temporary / "train_000000.bin", "half");
  write_file(temporary / "train_000001.bin.tmp", "half");
  run(shop.options);
  CHECK_FALSE(fs::exists(temporary));
  fs::create_directory(temporary);
  write_file(temporary / "letter", "mine");
  CHECK_THROWS_WITH(run(shop.options), contains("set.tmp' is in the way") && contains("'letter'"));
  CHECK(read_file(temporary / "letter") == "mine");
}

TEST_CASE("two processes cannot write one data set at the same time") {
  Workshop shop;
  fs::create_directory(shop.directory / "set.tmp");
  const int other = ::open((shop.directory / "set.tmp").c_str(), O_RDONLY | O_DIRECTORY);
  REQUIRE(::flock(other, LOCK_EX) == 0);
  CHECK_THROWS_WITH(run(shop.options), contains("another process is writing"));
  ::close(other);
  CHECK_NOTHROW(run(shop.options));
}

// ------------------------------------------------------------------------------------ if changed

TEST_CASE("a data set is made anew only if inputs, settings or its own files have changed") {
  Workshop shop;
  shop.options.if_changed = true;
  const auto up_to_date = [&] { return run(shop.options).was_up_to_date; };
  CHECK_FALSE(up_to_date());
  CHECK(up_to_date());
  write_file(shop.directory / "text", stories(51));
  CHECK_FALSE(up_to_date());
  CHECK(up_to_date());
  shop.options.vocab_size = 310;
  CHECK_FALSE(up_to_date());
  shop.options.validation_fraction = 0.3;
  CHECK_FALSE(up_to_date());
  shop.options.source = "somewhere";
  CHECK_FALSE(up_to_date());
  CHECK(up_to_date());
  fs::resize_file(shop.set("train_000000.bin"), 1000);
  CHECK_FALSE(up_to_date());
  fs::remove(shop.set("tokenizer.bin"));
  CHECK_FALSE(up_to_date());
  CHECK(up_to_date());
  fs::create_directory(shop.directory / "more");
  write_file(shop.directory / "more" / "a", stories(5));
  shop.options.inputs.push_back(shop.directory / "more");
  CHECK_FALSE(up_to_date());
  CHECK(up_to_date());
  write_file(shop.directory / "more" / "b", stories(5));
  CHECK_FALSE(up_to_date());
}

// --------------------------------------------------------------------------------------- inspect

TEST_CASE("parts of two data sets do not pass for one") {
  Workshop shop;
  run(shop.options);
  const auto refused = [&](auto spoil, const std::string& sentence) {
    run(shop.options);
    CHECK_NOTHROW(inspect(shop.options.out));
    spoil();
    CHECK_THROWS_WITH(inspect(shop.options.out), contains(sentence));
  };
  const auto other_tokenizer = [&](std::uint32_t vocab_size) {
    Tokenizer::train(std::vector<std::string_view>{"ab ab cd cd ef ef gh gh ij ij"},
                     {.vocab_size = vocab_size, .min_frequency = 2})
        .save_json(shop.set("tokenizer.json"));
  };
  refused([&] { other_tokenizer(260); }, "the files do not belong together");
  refused([&] { fs::remove(shop.set("tokenizer.json")); }, "tokenizer.json");
  refused(
      [&] {  // one token more is another
        std::string bytes = read_file(shop.set("val_000000.bin"));
        bytes[bytes.size() - 2] = static_cast<char>(bytes[bytes.size() - 2] ^ 1);
        bytes[bytes.size() - 1] = 0x7f;
        write_file(shop.set("val_000000.bin"), bytes);
      },
      "val_000000.bin' has token");
  refused(
      [&] {
        std::string bytes = read_file(shop.set("val_000000.bin"));
        bytes[1024] = 5;  // was end of text
        bytes[1025] = 0;
        write_file(shop.set("val_000000.bin"), bytes);
      },
      "hold 4 documents");
}

}  // namespace
