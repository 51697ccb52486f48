// Every file that stage 01 reads, missing, cut, damaged, foreign and hostile; and every flag.

#include <functional>

#include "tests/stage01/run_support.h"

namespace {

using namespace strata::tests;

/// A data set, a run with a checkpoint of step 3 in "out", and a trace: all good.
struct Good : Workshop {
  Good() { trained(tiny({"--steps", "3", "--out", (*this)("out"), "--trace", (*this)("trace")})); }
};

/// What is done to a file before the program reads it.
using Edit = std::function<void(const fs::path&)>;

const Edit removed = [](const fs::path& file) { fs::remove(file); };
const Edit is_directory = [](const fs::path& file) {
  fs::remove(file), fs::create_directory(file);
};
Edit holds(const std::string& contents) {
  return [=](const fs::path& file) { strata::io::write_file(file, contents); };
}
Edit cut_to(std::size_t size) {
  return [=](const fs::path& file) { fs::resize_file(file, size); };
}
Edit cut_by(std::size_t size) {
  return [=](const fs::path& file) { fs::resize_file(file, fs::file_size(file) - size); };
}
Edit longer(const std::string& more) {
  return [=](const fs::path& file) {
    strata::io::write_file(file, strata::io::read_file(file) + more);
  };
}
/// Replaces the first `from`, which has to be there; in safetensors headers both are of one length.
Edit says(const std::string& from, const std::string& to) {
  return [=](const fs::path& file) {
    std::string bytes = strata::io::read_file(file);
    const std::size_t at = bytes.find(from);
    INFO(from << " in " << file);
    REQUIRE(at != std::string::npos);
    strata::io::write_file(file, bytes.replace(at, from.size(), to));
  };
}
/// Puts a 32-bit number at a byte.
Edit number_at(std::size_t byte, std::uint32_t value) {
  return [=](const fs::path& file) {
    std::string bytes = strata::io::read_file(file);
    std::memcpy(bytes.data() + byte, &value, sizeof value);
    strata::io::write_file(file, bytes);
  };
}

struct Case {
  const char* file;  ///< within the folder of the test
  Edit edit;
  std::string sentence;  ///< part of what has to be said
};

/// Breaks the file of each case and runs the program, which has to exit with 1 and one sentence that
/// names the file.
void check(const std::vector<Case>& cases, const std::function<Arguments(const Good&)>& flags) {
  const Good good;
  const std::string whole = good("kept");
  fs::create_directories(whole);
  for (const char* part : {"data", "out", "trace"})
    fs::copy(good(part), fs::path(whole) / part, fs::copy_options::recursive);
  trained(flags(good));  // unbroken, it works
  for (const auto& [file, edit, sentence] : cases) {
    for (const char* part : {"data", "out", "trace"}) {
      fs::remove_all(good(part));
      fs::copy(fs::path(whole) / part, good(part), fs::copy_options::recursive);
    }
    edit(good(file));
    const Outcome outcome = strata01(flags(good));
    INFO(file << ", expected: " << sentence << "\nsaid: " << outcome.err << "signal "
              << outcome.signal);
    CHECK(outcome.code == 1);
    CHECK(outcome.err.starts_with("strata01: error: "));
    CHECK_THAT(outcome.err, contains(sentence));
    if (!sentence.starts_with("--"))  // what a flag in state.json may not be is said of the flag
      CHECK_THAT(outcome.err, contains(fs::path(file).parent_path().filename()));
    CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1);
  }
}

Arguments train(const Good& good) { return good.tiny({"--steps", "1"}); }
Arguments start_from(const Good& good) {
  return good.tiny({"--steps", "1", "--init", good("out") + "/step_00000003"});
}
Arguments resume(const Good& good) { return {"--resume", "--out", good("out"), "--steps", "4"}; }
Arguments replay(const Good& good) { return {"--replay", good("trace"), "--trace", good("new")}; }

TEST_CASE("shards that are none are refused by name") {
  const char* const file = "data/train_000001.bin";
  check(
      {
          {file, holds(""), "too short for the 1024 bytes of a shard's header"},
          {file, cut_to(1023), "too short for the 1024 bytes"},
          {file, cut_to(1024), "should have 2426 bytes for its 701 tokens, but has 1024"},
          {file, cut_by(1), "should have 2426 bytes for its 701 tokens, but has 2425"},
          {file, longer("x"), "should have 2426 bytes for its 701 tokens, but has 2427"},
          {file, is_directory, "too short"},
          {file, number_at(0, 20240801), "is not a shard: it starts with 20240801 version 1"},
          {file, number_at(4, 2), "starts with 20240520 version 2, expected 20240520 version 1"},
          {file, number_at(8, 0), "for its 0 tokens"},
          {file, number_at(8, 0xffffffff),
           "should have 8589935614 bytes for its 4294967295 tokens"},
          {file, holds(std::string(5000, 'P')), "is not a shard"},
          {"data/val_000000.bin", removed,
           "has no val window of 16 + 1 tokens (0 shards, 0 tokens)"},
          {"data/val_000000.bin", holds(shard(byte_tokens(16, 1))), "has no val window"},
          {"data/val_000000.bin", cut_by(2), "should have 1686 bytes"},
      },
      train);
}

TEST_CASE("a token outside the vocabulary is named with its shard and position") {
  const char* const file = "data/train_000000.bin";
  const auto everywhere = [](const fs::path& path) {
    strata::io::write_file(path, shard(std::vector<std::uint16_t>(1205, 300)));
  };
  check({{file, everywhere, "train_000000.bin' has token 300 at position"},
         {file, everywhere, "but the model's vocabulary ends at 256"}},
        [](const Good& good) {
          return good.tiny({"--steps", "40"});
        });
  // In the one window that has it, also in the padding of the vocabulary (257 to 383).
  std::vector<std::uint16_t> tokens = byte_tokens(1205, 1);
  tokens[77] = 257;
  check({{file, holds(shard(tokens)), "has token 257 at position 77, but the model's vocabulary"}},
        [](const Good& good) {
          return good.tiny({"--steps", "40"});
        });
  const auto last = [](const fs::path& path) {
    strata::io::write_file(path, shard(std::vector<std::uint16_t>(331, 65535)));
  };
  check({{"data/val_000000.bin", last, "has token 65535 at position 0"}}, [](const Good& good) {
    return good.tiny({"--steps", "1", "--val-every", "1"});
  });
}

TEST_CASE("dataset.json that is none is refused") {
  const char* const file = "data/dataset.json";
  check(
      {
          {file, removed, "is no data set (it has no dataset.json)"},
          {file, is_directory, "cannot open"},
          {file, holds(""), "is not valid JSON: at byte 0"},
          {file, cut_to(40), "is not valid JSON"},
          {file, holds("\xff\xfe{}"), "is not valid JSON"},
          {file, holds("[1, 2]"), "has no number \"vocab_size\""},
          {file, holds("{}"), "has no number \"vocab_size\""},
          {file, says("257", "\"257\""), "has no number \"vocab_size\""},
          {file, says("257", "257.5"), "\"vocab_size\" in"},
          {file, says("257", "0"), "is 0, expected 1 to 65536"},
          {file, says("257", "-1"), "is -1, expected 1 to 65536"},
          {file, says("257", "1e300"), "expected 1 to 65536"},
          {file, says("257", "300"), "has 300 words, but the model's vocabulary (V) is 257"},
          {file, holds(std::string(100'000, '[')), "less nesting"},
      },
      train);
}

TEST_CASE("tokenizer.bin that is none is refused") {
  const char* const file = "data/tokenizer.bin";
  check(
      {
          {file, removed, "cannot open"},
          {file, holds(""), "is not a tokenizer: it has 0 bytes"},
          {file, cut_to(1000), "is not a tokenizer: it has 1000 bytes"},
          {file, cut_to(1024), "ends in token 0 of 257"},
          {file, cut_by(1), "ends in token 256 of 257"},
          {file, longer("x"), "has 1 bytes behind its last token"},
          {file, number_at(0, 20240520), "starts with 20240520 version 2, expected 20240328"},
          {file, number_at(4, 3), "version 3, expected 20240328 version 1 or 2"},
          {file, number_at(8, 0xffffffff), "ends in token 257 of 4294967295"},
          {file, number_at(8, 256), "has 14 bytes behind its last token"},
          {file, number_at(8, 0), "bytes behind its last token"},
          {file, number_at(12, 257), "names token 257 of 257 as the end of the text"},
          {file, number_at(12, 0xffffffff), "names token 4294967295 of 257"},
          {file, number_at(4, 1), "names token 50256 of 257"},
          {file, number_at(1024, 0), "ends in token 0 of 257, or that token is empty"},
      },
      train);
}

TEST_CASE("a config.json of a model that this trainer does not compute is refused in words") {
  const char* const file = "out/step_00000003/config.json";
  check(
      {
          {file, removed, "cannot open"},
          {file, holds(""), "is not valid JSON"},
          {file, cut_by(3), "is not valid JSON"},
          {file, holds("{}"), "has no \"model_type\": it describes no model"},
          {file, holds("null"), "has no \"model_type\""},
          {file, says("\"gpt2\"", "\"llama\""), "\"model_type\" in"},
          {file, says("\"gpt2\"", "\"llama\""),
           "is \"llama\", but this trainer computes only \"gpt2\""},
          {file, says("gelu_new", "relu"),
           "is \"relu\", but this trainer computes only \"gelu_new\""},
          {file, says("1e-05", "1e-06"), "\"layer_norm_epsilon\" in"},
          {file, says(":true", ":false"), "\"tie_word_embeddings\" in"},
          {file, says("{", "{\"scale_attn_weights\":false,"), "\"scale_attn_weights\" in"},
          {file, says("{", "{\"scale_attn_by_inverse_layer_idx\":true,"),
           "by_inverse_layer_idx\" in"},
          {file, says("{", "{\"n_inner\":100,"), "is 100, but this trainer computes only 128"},
          {file, says("\"n_head\":2", "\"n_head\":3"), "3 heads do not divide 32 channels evenly"},
          {file, says("\"n_head\":2", "\"n_head\":0"), "\"n_head\" in"},
          {file, says("\"n_head\":2", "\"n_head\":64"), "heads (H) is 64, expected 1 to 32"},
          {file, says("\"n_head\":2", "\"n_head\":\"2\""), "has no number \"n_head\""},
          {file, says("\"n_layer\":2", "\"n_layer\":-2"), "\"n_layer\" in"},
          {file, says("\"n_layer\":2", "\"n_layer\":2.5"), "\"n_layer\" in"},
          {file, says("\"n_layer\":2", "\"n_layer\":1e99"), "\"n_layer\" in"},
          {file, says("\"n_layer\":2", "\"n_layer\":1001"),
           "blocks (L) is 1001, expected 1 to 1000"},
          {file, says("\"n_layer\":2", "\"layers\":2"), "has no number \"n_layer\""},
          {file, says("\"n_embd\":32", "\"n_embd\":262144"), "channels (C) is 262144"},
          {file, says("\"n_positions\":16", "\"n_positions\":16777216"),
           "positions (T) is 16777216"},
          {file, says("\"n_layer\":2", "\"n_layer\":1000"), "has no tensor h.2."},
          {file, says("\"n_embd\":32", "\"n_embd\":34"), "has shape [257,32], expected [257,34]"},
          {file, says("\"n_positions\":16", "\"n_positions\":17"),
           "shape [16,32], expected [17,32]"},
          {file, says("\"vocab_size\":257", "\"vocab_size\":258"), "[257,32], expected [258,32]"},
      },
      start_from);
}

/// The edits of a safetensors file whose first tensor in the header's order is named here.
std::vector<Case> safetensors_cases(const char* file, const std::string& tensor) {
  return {
      {file, removed, "cannot open"},
      {file, is_directory, "cannot open"},
      {file, holds(""), "is not a safetensors file: 0 bytes"},
      {file, cut_to(7), "is not a safetensors file: 7 bytes"},
      {file, cut_to(8), "is not a safetensors file: 8 bytes cannot hold a header of"},
      {file, cut_to(300), "is not a safetensors file: 300 bytes"},
      {file, cut_by(1), " of the file's "},
      {file, cut_by(1000), " of the file's "},
      {file, number_at(0, 0), "is not valid JSON: at byte 0"},
      {file, number_at(0, 0x7fffffff), "cannot hold a header of"},
      {file, number_at(4, 0x80000000), "cannot hold a header of"},
      {file, number_at(0, 50), "is not valid JSON"},
      {file, holds(std::string("\x02\0\0\0\0\0\0\0{}", 10)), "no "},
      {file, holds(std::string("\x02\0\0\0\0\0\0\0[]", 10)), "no "},
      {file, holds("PK\x03\x04 a PyTorch checkpoint is a zip file, and this begins as one"),
       "is not"},
      {file, says(tensor, std::string(tensor.size(), 'x')), "has no tensor " + tensor},
      {file, says("\"" + tensor + "\":{\"data_offsets\"", "\"" + tensor + "\":{\"data_offsetz\""),
       "but lies at"},
      {file, says("F32", "F16"), "has dtype \"F16\", expected \"F32\""},
      {file, says("F32", "I32"), "has dtype \"I32\", expected \"F32\""},
      {file, says("\"shape\"", "\"shade\""), "has shape missing"},
  };
}

TEST_CASE("a model.safetensors that is none is refused") {
  const char* const file = "out/step_00000003/model.safetensors";
  std::vector<Case> cases = safetensors_cases(file, "h.0.attn.c_attn.bias");
  for (const auto& [from, to] : {std::pair{"\"data_offsets\":[0,", "\"data_offsets\":[4,"},
                                 {"\"data_offsets\":[0,", "\"data_offsets\":[-,"},
                                 {"\"data_offsets\":[0,", "\"data_offsets\":[9,"}})
    cases.push_back(
        {file, says(from, to), std::strchr(to, '-') ? "is not valid JSON" : "but lies at"});
  check(cases, start_from);
}

TEST_CASE("optimizer states that are none are refused") {
  check(safetensors_cases("out/step_00000003/optimizer-00000-of-00001.safetensors",
                          "m.h.0.attn.c_attn.bias"),
        resume);
}

TEST_CASE("a state.json that is none is refused") {
  const char* const file = "out/step_00000003/state.json";
  check(
      {
          {file, removed, "cannot open"},
          {file, holds(""), "is not valid JSON"},
          {file, cut_by(10), "is not valid JSON"},
          {file, holds("{}"), "has no settings: it is no state of a run"},
          {file, holds("[]"), "has no settings"},
          {file, says("\"settings\":{", "\"settings\":{\"colour\":\"red\","),
           "--colour is not a flag"},
          {file, says("\"batch\":\"4\"", "\"batch\":\"0\""), "--batch is '0', expected"},
          {file, says("\"batch\":\"4\"", "\"batch\":\"x\""), "--batch is 'x', expected"},
          {file, says("\"schedule\":\"cosine\"", "\"schedule\":\"cos\""), "--schedule is 'cos'"},
          {file, says("\"step\":3", "\"step\":-3"), "\"step\" in"},
          {file, says("\"step\":3", "\"step\":3.5"), "\"step\" in"},
          {file, says("\"step\":3", "\"step\":\"3\""), "has no number \"step\""},
          {file, says("\"position\":12", "\"position\":1e300"), "\"position\" in"},
          {file, says("\"updates\":3", "\"undates\":3"), "has no number \"updates\""},
          {file, says("\"losses\":[", "\"losses\":0,\"was\":["), "has no list \"losses\""},
          {file, says("\"train_tokens\":1906", "\"train_tokens\":7"), "it is another data set"},
      },
      resume);
}

TEST_CASE("a trace that cannot be replayed is refused") {
  std::vector<Case> cases{
      {"trace", says("\"model\"", "\"modal\""), "is not a trace: it has no \"model\""},
      {"trace", says("\"traced\"", "\"tracad\""), "is not a trace: it has no \"traced\""},
      {"trace", says("\"traced\":\"0\"", "\"traced\":\"x\""), "should be a number"},
      {"trace", says("\"traced\":\"0\"", "\"traced\":\"7\""), "has no tensor step.7."},
      {"trace", says("\"setting.lr\"", "\"setting.lx\""), "it has no \"setting.lr\""},
      {"trace", says("\"setting.batch\":\"4\"", "\"setting.batch\":\"5\""), "expected [1,5,17]"},
      {"trace", says("\"setting.batch\":\"4\"", "\"setting.batch\":\"-\""), "--batch is '-'"},
      {"trace", says("L2,C32", "L3,C32"), "has no tensor step.0.before.param.h.2."},
      {"trace", says("L2,C32", "L2,C31"), "do not divide"},
      {"trace", holds(std::string("\x02\0\0\0\0\0\0\0{}", 10)), "is not a trace"},
      {"trace", removed, "cannot open"},
      {"trace", cut_to(300), "is not a safetensors file"},
      {"trace", cut_to(100'000), " of the file's "},
  };
  const auto with_token = [](std::int32_t token) -> Edit {
    return [token](const fs::path& file) {
      std::size_t offset = fs::file_size(file);
      {
        const strata::io::Safetensors trace(file);
        const std::byte* end = nullptr;
        for (const auto& tensor : trace.tensors())
          end = std::max(end, tensor.bytes.data() + tensor.bytes.size());
        offset -= static_cast<std::size_t>(end - trace.at("step.0.tokens").bytes.data());
      }
      number_at(offset, static_cast<std::uint32_t>(token))(file);
    };
  };
  cases.push_back({"trace", with_token(257), "token 257 at position 0 is outside the vocabulary"});
  cases.push_back({"trace", with_token(-1), "token -1 at position 0 is outside the vocabulary"});
  check(cases, replay);
}

// ---------------------------------------------------------------------------------------------------
// Flags

struct Flag {
  Arguments flags;
  std::string sentence;
};

void check_flags(const std::vector<Flag>& cases) {
  const Workshop workshop;
  for (const auto& [flags, sentence] : cases) {
    const Outcome outcome = strata01(workshop.tiny(flags));
    INFO(flags.back() << ", expected: " << sentence << "\nsaid: " << outcome.err << "signal "
                      << outcome.signal);
    CHECK(outcome.code == 1);
    CHECK(outcome.err.starts_with("strata01: error: "));
    CHECK_THAT(outcome.err, contains(sentence));
    CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1);
  }
}

TEST_CASE("every number is refused beyond its range, and where it is none") {
  const std::vector<std::array<std::string, 3>> ranges = {
      {"batch", "0", "1000001"},
      {"seq", "-1", "1000001"},
      {"accum", "0", "1000001"},
      {"steps", "0", "1000000000001"},
      {"lr", "-0.1", "10.1"},
      {"warmup", "-1", "1000000000001"},
      {"final-lr", "-0.1", "1.01"},
      {"weight-decay", "-1", "11"},
      {"beta1", "-0.1", "1"},
      {"beta2", "-0.1", "1"},
      {"eps", "0", "1.5"},
      {"clip", "-1", "1e7"},
      {"skip-loss-z", "-1", "1e7"},
      {"skip-norm-z", "-1", "1e7"},
      {"val-every", "-1", "1000000000001"},
      {"val-batches", "-2", "1000001"},
      {"sample-every", "-1", "1000000000001"},
      {"sample-tokens", "0", "1000001"},
      {"temperature", "-1", "101"},
      {"top-k", "-1", "1000001"},
      {"top-p", "0", "1.1"},
      {"sample-seed", "-1", "9000000000000001"},
      {"checkpoint-every", "-1", "1000000000001"},
      {"keep", "-1", "1000001"},
      {"keep-every", "-1", "1000000000001"},
      {"seed", "-1", "4294967296"},
      {"data-seed", "-1", "9000000000000001"},
      {"threads", "-1", "1025"}};
  std::vector<Flag> cases;
  for (const auto& [flag, low, high] : ranges) {
    for (const std::string& value : {low, high, std::string("x"), std::string(), std::string("1 "),
                                     std::string("0x10"), std::string("nan"), std::string("1e999")})
      cases.push_back(
          {{"--" + flag + "=" + value}, "--" + flag + " is '" + value + "', expected "});
    cases.push_back({{"--" + flag}, "--" + flag + " needs a value: "});
  }
  for (const char* whole : {"batch", "steps", "seed", "threads"})
    for (const char* value : {"1.5", "1e3", "99999999999999999999", "--lr"})
      cases.push_back({{std::string("--") + whole, value}, "expected a whole number from "});
  check_flags(cases);
}

TEST_CASE("flags that are none, switches with values and stray words are refused") {
  check_flags({
      {{"--colour", "red"}, "--colour is not a flag of this program; --help lists them"},
      {{"--Batch", "3"}, "--Batch is not a flag"},
      {{"--batc", "3"}, "--batc is not a flag"},
      {{"--"}, "is not a flag"},
      {{"--=3"}, "is not a flag"},
      {{"-h"}, "'-h' is no flag; flags start with --, see --help"},
      {{"train"}, "'train' is no flag"},
      {{""}, "'' is no flag"},
      {{"--resume=true"}, "--resume is a switch and takes no value"},
      {{"--overfit", "true"}, "'true' is no flag"},
      {{"--schedule", "cos"}, "--schedule is 'cos', expected constant, cosine, linear or wsd"},
      {{"--schedule="}, "--schedule is ''"},
      {{"--init", "d13"}, "'d13' is neither a known model"},
      {{"--init", "no/such/directory"}, "--init no/such/directory: 'no/such/directory' is neither"},
      {{"--data", "no/such/directory"}, "--data: 'no/such/directory' is no data set"},
      {{"--replay", "no/such/trace"}, "--replay needs --trace"},
      {{"--replay", "no/such/trace", "--trace", "x"}, "cannot open 'no/such/trace'"},
      {{"--trace-steps", "1,x", "--trace", "/dev/null"}, "--trace-steps: 'x' should be a number"},
      {{"--trace-steps", "1,,2"}, "--trace-steps: '' should be a number"},
      {{"--trace-steps", "-1"}, "--trace-steps: '-1' should be a number"},
      {{"--sample", "--init", "no/such/directory"}, "cannot open 'no/such/directory/config.json'"},
  });
}

TEST_CASE("what the model has no room for is refused: positions, words, prompts") {
  check_flags({
      {{"--seq", "17"}, "--seq is 17, but the model has only 16 positions"},
      {{"--seq", "1000000"}, "--seq is 1000000, but the model has only 16 positions"},
      {{"--init", "L2,C32,H2,T16,V256"}, "has 257 words, but the model's vocabulary (V) is 256"},
      {{"--init", "L2,C32,H3,T16,V257"}, "3 heads do not divide 32 channels evenly"},
      {{"--init", "L2,C32,H2,T16,V257", "--sample-every", "1", "--prompt-tokens", "257"},
       "--prompt-tokens: '257' should be a number from 0 to 256"},
      {{"--sample-every", "1", "--prompt-tokens", "1,-1"}, "--prompt-tokens: '-1'"},
      {{"--init", "L2,C32,H2,T4096,V257", "--seq", "2000"},
       "has no train window of 2000 + 1 tokens"},
  });
}

TEST_CASE("directories that Hugging Face wrote are sampled from, with and without its prefix") {
  const Workshop workshop;
  // Their vocabulary has 13 words: a tokenizer of that size.
  std::string tokenizer(1024, '\0');
  const std::uint32_t header[] = {20240328, 2, 13, 0};
  std::memcpy(tokenizer.data(), header, sizeof header);
  for (int id = 0; id < 13; ++id) tokenizer += {'\x01', static_cast<char>('a' + id)};
  strata::io::write_file(workshop("data") + "/tokenizer.bin", tokenizer);
  std::string said;
  for (const char* folder : {"hf_lm_head", "hf_base"}) {
    const Outcome outcome = strata01(
        {"--data", workshop.data, "--sample", "--sample-tokens", "40", "--prompt-tokens", "1,2,3",
         "--init", STRATA_SOURCE_DIR "/tests/fixtures/gpt2/" + std::string(folder)});
    INFO(outcome.err);
    CHECK(outcome.code == 0);
    CHECK(outcome.out.starts_with("bcd"));
    CHECK((said.empty() || said == outcome.out));
    said = outcome.out;
  }
}

TEST_CASE("help lists every flag, and needs nothing") {
  const Outcome outcome = strata01({"--help"});
  CHECK(outcome.code == 0);
  CHECK(outcome.err == "");
  for (const char* flag :
       {"data", "out", "init", "resume", "lr", "schedule", "replay", "prompt-tokens"})
    CHECK_THAT(outcome.out, contains(std::string("--") + flag + " "));
}

}  // namespace
