// Encoding and decoding: the ids of GPT-2 and of Hugging Face, and every byte back.
#include "common/data/bpe.h"
#include "tests/data/tokenizer_test_support.h"

namespace strata::tests {
namespace {

using data::Encoder;
using data::Tokenizer;
using data::Vocabulary;

/// The names of the samples whose ids differ from those that the fixture has under `key`.
std::vector<std::string> differing_samples(const Tokenizer& tokenizer, const std::string& key) {
  std::vector<std::string> differing;
  Encoder encoder(tokenizer);
  for (const nlohmann::json& sample : read_json_fixture("samples.json")) {
    const std::string text = from_hex(sample.at("hex"));
    Ids ids;
    encoder.encode(text, ids);
    bool equal = ids == sample.at(key).get<Ids>() && tokenizer.decode(ids) == text;
    if (const auto special = sample.find(key + "_special"); special != sample.end())
      equal = equal && tokenizer.encode(text, true) == special->get<Ids>();
    if (!equal) differing.push_back(sample.at("name"));
  }
  return differing;
}

/// A fault for the checker to find: the later half of the merges is forgotten.
Tokenizer without_late_merges(const Tokenizer& tokenizer) {
  Vocabulary vocabulary = tokenizer.vocabulary();
  vocabulary.merges.resize(vocabulary.merges.size() / 2);
  return Tokenizer(std::move(vocabulary));
}

TEST_CASE("the ids of GPT-2's vocabulary are GPT-2's", "[tokenizer]") {
  if (gpt2_vocabulary_is_absent()) return;
  const Tokenizer gpt2 = Tokenizer::load(gpt2_vocabulary());
  CHECK(gpt2.vocab_size() == 50257);
  CHECK(gpt2.end_of_text() == 50256);
  CHECK(gpt2.encode("Hello world") == Ids{15496, 995});
  CHECK(differing_samples(gpt2, "gpt2") == std::vector<std::string>{});
  CHECK_FALSE(differing_samples(without_late_merges(gpt2), "gpt2").empty());
}

TEST_CASE("the ids of our tokenizer.json are those of Hugging Face's tokenizers", "[tokenizer]") {
  const Tokenizer small = small_tokenizer();
  CHECK(small.vocab_size() == 400);
  CHECK(small.end_of_text() == 399);
  CHECK(differing_samples(small, "small") == std::vector<std::string>{});
  CHECK_FALSE(differing_samples(without_late_merges(small), "small").empty());
}

TEST_CASE("any byte string encodes and decodes to itself", "[tokenizer]") {
  const Tokenizer small = small_tokenizer();
  Encoder encoder(small);
  RandomTexts texts(1);
  for (int round = 0; round < 300; ++round) {
    const std::string text = round % 3 == 0   ? texts.bytes(texts.draw(400))
                             : round % 3 == 1 ? texts.mixed(texts.draw(400))
                                              : texts.letters(texts.draw(400), 3);
    for (const bool allow_special : {false, true}) {
      Ids ids;
      encoder.encode(text, ids, allow_special);
      CHECK(small.decode(ids) == text);
      CHECK(ids == small.encode(text, allow_special));
    }
  }
}

TEST_CASE("the special token is one only where asked", "[tokenizer]") {
  const Tokenizer small = small_tokenizer();
  const std::string text = "a<|endoftext|><|endoftext|>b";
  const Ids special = small.encode(text, true);
  CHECK(special == Ids{small.encode("a")[0], 399, 399, small.encode("b")[0]});
  const Ids ordinary = small.encode(text);
  CHECK(std::count(ordinary.begin(), ordinary.end(), 399u) == 0);
  CHECK(small.decode(ordinary) == text);
  CHECK(small.decode(special) == text);
  CHECK(small.encode("").empty());
}

TEST_CASE("an encoder appends and gives the same ids again", "[tokenizer]") {
  const Tokenizer small = small_tokenizer();
  Encoder encoder(small);
  Ids ids = {7};
  encoder.encode(" the lantern", ids);
  encoder.encode(" the lantern", ids);
  const Ids once = small.encode(" the lantern");
  Ids expected = {7};
  for (int times = 0; times < 2; ++times) expected.insert(expected.end(), once.begin(), once.end());
  CHECK(ids == expected);
}

TEST_CASE("an encoder that has seen more words than it keeps gives the same ids", "[tokenizer]") {
  const Tokenizer small = small_tokenizer();
  Encoder encoder(small);
  RandomTexts texts(3);
  std::string text;
  for (int word = 0; word < 70000; ++word) text += ' ' + texts.letters(5, 26);
  Ids ids, again;
  encoder.encode(text, ids);
  encoder.encode(text, again);
  CHECK(ids == again);
  CHECK(small.decode(ids) == text);
}

TEST_CASE("short and long words are merged as the definition of BPE has it", "[tokenizer]") {
  const Tokenizer small = small_tokenizer();
  const data::MergeTable merges(small.vocabulary());
  data::WordEncoder words(merges);
  RandomTexts texts(2);
  for (int round = 0; round < 150; ++round) {
    const std::size_t length = texts.draw(3 * data::WordEncoder::longest_scanned);
    std::string word = round % 5 == 0 ? std::string(length, 'a')
                       : round % 5 == 1
                           ? texts.mixed(length)
                           : texts.letters(length, 1 + static_cast<std::size_t>(round) % 9);
    Ids ids;
    words.encode(word, ids);
    INFO(word);
    CHECK(ids == naive_encode_word(small.vocabulary(), word));
  }
}

TEST_CASE("no word costs more than a few looks at pairs a byte, however long", "[tokenizer]") {
  const Tokenizer small = small_tokenizer();
  const auto looks_per_byte = [&](const std::string& text) {
    Encoder encoder(small);
    Ids ids;
    encoder.encode(text, ids);
    CHECK(small.decode(ids) == text);
    return static_cast<double>(encoder.pair_looks()) / static_cast<double>(text.size());
  };
  // One look at each pair at first, one at each place of each rank, two for each merge. A merge
  // takes one token away, so there are under n merges and under 3n places: 6n looks at most.
  constexpr double most = 6.0;
  RandomTexts texts(4);
  constexpr std::size_t megabyte = 1 << 20;
  for (const std::string& text :
       {std::string(megabyte, 'a'), std::string(megabyte, ' '), std::string(megabyte, '='),
        std::string(megabyte, '\n'), texts.letters(megabyte, 2), texts.letters(megabyte, 20)}) {
    INFO(text.substr(0, 20));
    CHECK(!(looks_per_byte(text) > most));
  }
  // The same count finds the quadratic method out, at a length where it can still be waited for.
  std::uint64_t naive_looks = 0;
  const std::string word(100, 'a');
  CHECK(!naive_encode_word(small.vocabulary(), word, &naive_looks).empty());
  CHECK(static_cast<double>(naive_looks) / 100 > most);
}

TEST_CASE("ids that a vocabulary does not have are refused by name", "[tokenizer]") {
  const Tokenizer small = small_tokenizer();
  CHECK_THROWS_WITH(small.decode(Ids{1, 400}), "there is no token 400, expected an id under 400");
  CHECK_THROWS_WITH(small.token_bytes(0xffffffffu), contains("there is no token 4294967295"));
  CHECK_THROWS_WITH(Tokenizer(Vocabulary{}), contains("no token is the single byte 0"));
}

}  // namespace
}  // namespace strata::tests
