// The trainer against Hugging Face's, and against one that counts everything anew for each merge.
#include <algorithm>
#include <map>

#include "common/data/byte_alphabet.h"
#include "common/data/pretokenizer.h"
#include "tests/data/tokenizer_test_support.h"

namespace strata::tests {
namespace {

using data::Merge;
using data::Tokenizer;
using data::TrainerOptions;
using data::Vocabulary;

Vocabulary trained(const std::vector<std::string>& documents, const TrainerOptions& options) {
  const std::vector<std::string_view> views(documents.begin(), documents.end());
  return Tokenizer::train(views, options).vocabulary();
}

using Word = std::vector<std::uint32_t>;

void naive_merge(Word& word, const Merge& merge) {
  for (std::size_t i = 0; i + 1 < word.size(); ++i) {
    if (word[i] != merge.left || word[i + 1] != merge.right) continue;
    word[i] = merge.result;
    word.erase(word.begin() + static_cast<std::ptrdiff_t>(i) + 1);
  }
}

/// The rule of bpe_trainer.h in its plainest form: all pairs are counted for every merge.
Vocabulary naive_train(const std::vector<std::string>& documents, const TrainerOptions& options) {
  Vocabulary vocabulary;
  std::map<char, std::uint32_t> byte_ids;
  for (const std::uint8_t byte : data::byte_order()) {
    byte_ids[static_cast<char>(byte)] = static_cast<std::uint32_t>(vocabulary.tokens.size());
    vocabulary.tokens.emplace_back(1, static_cast<char>(byte));
  }
  std::vector<Word> words;
  data::PieceScanner scanner{data::PreTokenizer()};
  for (const std::string& document : documents) {
    scanner.start(document);
    for (auto piece = scanner.next(); !piece.empty(); piece = scanner.next()) {
      words.emplace_back();
      for (const char byte : piece) words.back().push_back(byte_ids[byte]);
    }
  }
  while (vocabulary.tokens.size() + 1 < options.vocab_size) {
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> counts;
    for (const Word& word : words)
      for (std::size_t i = 0; i + 1 < word.size(); ++i) ++counts[{word[i], word[i + 1]}];
    std::uint64_t best = 0;
    Merge merge;
    std::string bytes;
    for (const auto& [pair, count] : counts) {  // in ascending order, so the first of equals stays
      const std::string joined = vocabulary.tokens[pair.first] + vocabulary.tokens[pair.second];
      const bool known = std::find(vocabulary.tokens.begin(), vocabulary.tokens.end(), joined) !=
                         vocabulary.tokens.end();
      if (count <= best || count < options.min_frequency || joined.size() > 255 || known) continue;
      best = count;
      merge = {pair.first, pair.second, static_cast<std::uint32_t>(vocabulary.tokens.size())};
      bytes = joined;
    }
    if (best == 0) break;
    vocabulary.merges.push_back(merge);
    vocabulary.tokens.push_back(bytes);
    for (Word& word : words) naive_merge(word, merge);
  }
  vocabulary.end_of_text = static_cast<std::uint32_t>(vocabulary.tokens.size());
  vocabulary.tokens.emplace_back("<|endoftext|>");
  return vocabulary;
}

TEST_CASE("the trainer learns the merges that Hugging Face's learns", "[tokenizer]") {
  const nlohmann::json fixture = read_json_fixture("trained.json");
  const std::string corpus = io::read_file(tokenizer_fixture("corpus.txt"));
  const Vocabulary vocabulary = trained({corpus}, {.vocab_size = fixture.at("vocab_size")});
  std::vector<std::pair<std::string, std::string>> merges;
  for (const Merge& merge : vocabulary.merges)
    merges.emplace_back(data::to_alphabet(vocabulary.tokens[merge.left]),
                        data::to_alphabet(vocabulary.tokens[merge.right]));
  const auto expected =
      fixture.at("merges").get<std::vector<std::pair<std::string, std::string>>>();
  CHECK(merges == expected);
  std::swap(merges[5], merges[6]);
  CHECK(merges != expected);
  CHECK(vocabulary == small_tokenizer().vocabulary());
}

TEST_CASE("the trainer agrees with one that counts all pairs anew for each merge", "[tokenizer]") {
  RandomTexts texts(5);
  for (int round = 0; round < 24; ++round) {
    std::vector<std::string> documents;
    for (int document = 0; document < 3; ++document) {
      switch (round % 4) {
        case 0:
          documents.push_back(texts.mixed(300));
          break;
        case 1:
          documents.push_back(texts.letters(400, 2));
          break;  // ties and overlaps
        case 2:
          documents.push_back(texts.letters(300, 5));
          break;
        default:
          documents.push_back(texts.bytes(500));
          break;
      }
    }
    const TrainerOptions options{.vocab_size = 300 + 10 * static_cast<std::uint32_t>(round % 3),
                                 .min_frequency = 1 + static_cast<std::uint64_t>(round % 3)};
    INFO("round " << round);
    CHECK(trained(documents, options) == naive_train(documents, options));
  }
}

TEST_CASE("the vocabulary does not depend on the order of documents", "[tokenizer]") {
  RandomTexts texts(6);
  std::vector<std::string> documents;
  for (int document = 0; document < 20; ++document) documents.push_back(texts.mixed(500));
  const Vocabulary first = trained(documents, {.vocab_size = 350});
  std::reverse(documents.begin(), documents.end());
  CHECK(trained(documents, {.vocab_size = 350}) == first);
  documents.pop_back();
  CHECK_FALSE(trained(documents, {.vocab_size = 350}) == first);
}

TEST_CASE("documents that a function gives one by one train the same vocabulary", "[tokenizer]") {
  const std::vector<std::string> documents = {"one two one two", "two one", "three three three"};
  std::size_t next = 0;
  const data::DocumentSource source = [&]() -> std::optional<std::string_view> {
    if (next == documents.size()) return std::nullopt;
    return documents[next++];
  };
  CHECK(Tokenizer::train(source, {.vocab_size = 262}).vocabulary() ==
        trained(documents, {.vocab_size = 262}));
}

TEST_CASE("ids are GPT-2's bytes, then the merges in order, then the special token",
          "[tokenizer]") {
  const Vocabulary vocabulary = trained({"low lower lowest low low"}, {.vocab_size = 260});
  REQUIRE(vocabulary.tokens.size() == 260);
  CHECK(vocabulary.tokens[0] == "!");
  CHECK(vocabulary.tokens[93] == "~");
  CHECK(vocabulary.tokens[188] == std::string(1, 0));
  CHECK(vocabulary.tokens[220] == " ");
  CHECK(vocabulary.tokens[256] == "lo");
  CHECK(vocabulary.tokens[257] == "low");
  CHECK(vocabulary.tokens[258] == " low");
  CHECK(vocabulary.tokens[259] == "<|endoftext|>");
  CHECK(vocabulary.end_of_text == 259);
}

TEST_CASE("a text with too few pairs gives a smaller vocabulary", "[tokenizer]") {
  CHECK(trained({}, {.vocab_size = 1000}).tokens.size() == 257);
  CHECK(trained({"x y z"}, {.vocab_size = 1000}).tokens.size() == 257);
  CHECK(trained({"ab ab"}, {.vocab_size = 1000}).tokens.size() == 258);
  CHECK(trained({"ab ab"}, {.vocab_size = 1000, .min_frequency = 1}).tokens.size() == 259);
}

TEST_CASE("no token gets longer than tokenizer.bin can hold", "[tokenizer]") {
  const Vocabulary vocabulary =
      trained({std::string(4096, 'a') + " " + std::string(300, 'b')}, {.vocab_size = 2000});
  std::size_t longest = 0;
  for (const std::string& token : vocabulary.tokens) longest = std::max(longest, token.size());
  CHECK(longest <= 255);
  CHECK(longest >= 128);
}

TEST_CASE("a vocabulary size that cannot be made is refused in words", "[tokenizer]") {
  CHECK_THROWS_WITH(trained({"text"}, {.vocab_size = 256}),
                    "a vocabulary of 256 tokens was asked for, expected from 257 (256 bytes and "
                    "<|endoftext|>) to 16777216");
  CHECK_THROWS_WITH(trained({"text"}, {.vocab_size = 0xffffffffu}), contains("4294967295 tokens"));
}

/// Hidden: makes the committed tokenizer.json anew, for tests/fixtures/tokenizer/make_fixtures.py.
TEST_CASE("write the small vocabulary of the fixtures", "[.regenerate]") {
  const std::string corpus = io::read_file(tokenizer_fixture("corpus.txt"));
  const std::string_view documents[] = {corpus};
  Tokenizer::train(std::span<const std::string_view>(documents), {.vocab_size = 400})
      .save_json(tokenizer_fixture("tokenizer.json"));
}

}  // namespace
}  // namespace strata::tests
