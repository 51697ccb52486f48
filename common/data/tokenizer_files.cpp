#include "common/data/tokenizer_files.h"

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/data/byte_alphabet.h"
#include "common/io/files.h"

namespace strata::data {
namespace {

using nlohmann::json;
using std::filesystem::path;

constexpr std::size_t largest_file = std::size_t{1}
                                     << 28;  // GPT-2's is 1.4 MB, the largest known 33
constexpr int deepest_nesting = 16;          // a tokenizer.json has 5

[[noreturn]] void fail(const path& file, const std::string& found, const std::string& expected) {
  throw std::runtime_error("'" + file.string() + "' " + found + ", expected " + expected);
}

constexpr char expected_tokenizer[] = "a Hugging Face tokenizer.json with a byte-level BPE model";
constexpr char expected_vocab[] = "a vocab.json: a JSON object from tokens to ids";

std::string number(std::size_t value) { return std::to_string(value); }

/// A JSON value as a message shows it.
std::string shown(const json& value) {
  if (value.is_string()) return in_quotes(value.get_ref<const std::string&>());
  if (value.is_structured())
    return value.is_array() ? "an array of " + number(value.size())
                            : "an object of " + number(value.size());
  return value.dump();
}

json parse_json(std::string_view text, const path& file, const char* expected) {
  if (text.size() > largest_file)
    fail(file, "has " + number(text.size()) + " bytes", "at most " + number(largest_file));
  const auto check_depth = [&](int depth, json::parse_event_t, const json&) {
    if (depth > deepest_nesting)
      fail(file, "is nested more than " + number(deepest_nesting) + " levels deep", expected);
    return true;
  };
  try {
    json parsed = json::parse(text.begin(), text.end(), check_depth);
    if (!parsed.is_object()) fail(file, "holds " + shown(parsed), expected);
    return parsed;
  } catch (const json::parse_error& error) {
    fail(file, "is not JSON (from byte " + number(error.byte) + " of " + number(text.size()) + ")",
         expected);
  } catch (const json::exception&) {  // such as a number that no double can hold
    fail(file, "is not JSON that can be represented", expected);
  }
}

/// The member `key` of `object`, or null: a member that is absent means the same as a null one.
const json& member(const json& object, const char* key) {
  static const json null;
  const auto found = object.find(key);
  return found == object.end() ? null : *found;
}

/// Fails unless `value`, called `name` in the message, is null or one of `allowed`.
void require_one_of(const path& file, const std::string& name, const json& value,
                    std::initializer_list<json> allowed) {
  if (value.is_null()) return;
  for (const json& one : allowed)
    if (value == one) return;
  fail(file, "has " + name + " " + shown(value),
       shown(*allowed.begin()) + ": anything else gives other ids than GPT-2's");
}

std::uint32_t parse_id(const json& value, std::size_t tokens, std::string_view token,
                       const path& file) {
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() >= tokens)
    fail(file, "gives token " + in_quotes(token) + " the id " + shown(value),
         "each id from 0 to " + number(tokens - 1) + " once");
  return value.get<std::uint32_t>();
}

/// Tokens by id, and ids by a token's spelling in the byte alphabet (views of the JSON's keys).
struct Tokens {
  std::vector<std::string> bytes;
  std::unordered_map<std::string_view, std::uint32_t> ids;

  [[nodiscard]] std::optional<std::uint32_t> find(const std::string& spelling) const {
    const auto found = ids.find(spelling);
    if (found == ids.end()) return std::nullopt;
    return found->second;
  }
};

/// The tokens of `vocab`, an object from spellings to ids; `special_id` is that of <|endoftext|>
/// where another part of the file has named it.
Tokens parse_tokens(const json& vocab, const json& special_id, const path& file) {
  const std::string special(end_of_text_content);
  const bool special_apart = !vocab.contains(special) && !special_id.is_null();
  const std::size_t count = vocab.size() + (special_apart ? 1 : 0);
  if (count > max_vocab_size)
    fail(file, "has " + number(count) + " tokens", "at most " + number(max_vocab_size));
  Tokens tokens{std::vector<std::string>(count), {}};
  const auto put = [&](std::string_view spelling, const json& id_value, std::string bytes) {
    const std::uint32_t id = parse_id(id_value, count, spelling, file);
    if (!tokens.bytes[id].empty())
      fail(file,
           "gives the id " + number(id) + " to both " + in_quotes(to_alphabet(tokens.bytes[id])) +
               " and " + in_quotes(spelling),
           "each id from 0 to " + number(count - 1) + " once");
    tokens.bytes[id] = std::move(bytes);
    tokens.ids.emplace(spelling, id);
  };
  if (special_apart) put(end_of_text_content, special_id, special);
  for (auto entry = vocab.begin(); entry != vocab.end(); ++entry) {
    const std::string& spelling = entry.key();
    std::optional<std::string> bytes = spelling == special ? special : from_alphabet(spelling);
    if (!bytes || bytes->empty())
      fail(file, "has the token " + in_quotes(spelling),
           "one or more characters of GPT-2's byte alphabet, as in \"\\u0120the\"");
    put(spelling, *entry, *std::move(bytes));
  }
  return tokens;
}

Merge parse_merge(const std::string& left, const std::string& right, const Tokens& tokens,
                  std::size_t rank, const path& file) {
  const std::string parts =
      "has merge " + number(rank) + " of " + in_quotes(left) + " and " + in_quotes(right);
  const std::optional<std::uint32_t> left_id = tokens.find(left), right_id = tokens.find(right);
  if (!left_id || !right_id)
    fail(file, parts, in_quotes(left_id ? right : left) + " to be a token of the vocabulary");
  const std::optional<std::uint32_t> result = tokens.find(left + right);
  if (!result) fail(file, parts, in_quotes(left + right) + " to be a token of the vocabulary");
  return {*left_id, *right_id, *result};
}

/// The two parts of "left right"; nothing unless there is exactly one space, inside.
std::optional<std::pair<std::string, std::string>> split_merge(std::string_view line) {
  const std::size_t space = line.find(' ');
  if (space == std::string_view::npos || space == 0 || space + 1 == line.size() ||
      line.find(' ', space + 1) != std::string_view::npos)
    return std::nullopt;
  return std::pair(std::string(line.substr(0, space)), std::string(line.substr(space + 1)));
}

std::vector<Merge> parse_json_merges(const json& merges, const Tokens& tokens, const path& file) {
  std::vector<Merge> result;
  for (const json& entry : merges) {
    std::optional<std::pair<std::string, std::string>> parts;
    if (entry.is_string())
      parts = split_merge(entry.get_ref<const std::string&>());
    else if (entry.is_array() && entry.size() == 2 && entry[0].is_string() && entry[1].is_string())
      parts = std::pair(entry[0].get<std::string>(), entry[1].get<std::string>());
    if (!parts)
      fail(file, "has " + shown(entry) + " as merge " + number(result.size()),
           "two tokens, as \"a b\" or [\"a\", \"b\"]");
    result.push_back(parse_merge(parts->first, parts->second, tokens, result.size(), file));
  }
  return result;
}

/// Fails if any part of a tokenizer.json changes the ids: what comes before and after the model.
void check_pipeline(const json& root, const path& file) {
  require_one_of(file, "a normalizer", member(root, "normalizer"), {nullptr});
  const json& split = member(root, "pre_tokenizer");
  if (!split.is_object() || member(split, "type") != "ByteLevel")
    fail(file, "has the pre-tokenizer " + shown(split.is_object() ? member(split, "type") : split),
         "\"ByteLevel\"");
  require_one_of(file, "pre_tokenizer.add_prefix_space", member(split, "add_prefix_space"),
                 {false});
  require_one_of(file, "pre_tokenizer.use_regex", member(split, "use_regex"), {true});
  for (const char* part : {"post_processor", "decoder"}) {
    const json& value = member(root, part);
    if (!value.is_null() && !(value.is_object() && member(value, "type") == "ByteLevel"))
      fail(file,
           std::string("has the ") + part + " " +
               shown(value.is_object() ? member(value, "type") : value),
           "\"ByteLevel\" or none");
  }
}

void check_model(const json& model, const path& file) {
  if (!model.is_object()) fail(file, "has no \"model\"", expected_tokenizer);
  require_one_of(file, "a model of type", member(model, "type"), {"BPE"});
  require_one_of(file, "model.dropout", member(model, "dropout"), {nullptr, 0});
  for (const char* affix : {"continuing_subword_prefix", "end_of_word_suffix"})
    require_one_of(file, std::string("model.") + affix, member(model, affix), {""});
  for (const char* option : {"byte_fallback", "ignore_merges"})
    require_one_of(file, std::string("model.") + option, member(model, option), {false});
  if (!member(model, "vocab").is_object())
    fail(file, "has " + shown(member(model, "vocab")) + " as model.vocab",
         "an object from tokens to ids");
  if (!member(model, "merges").is_array())
    fail(file, "has " + shown(member(model, "merges")) + " as model.merges", "an array of merges");
}

/// The id of <|endoftext|> in the list of added tokens.
const json& parse_added_tokens(const json& root, const path& file) {
  const json& added = member(root, "added_tokens");
  const std::string expected = "one special token, " + in_quotes(end_of_text_content);
  if (!added.is_array() || added.size() != 1 || !added[0].is_object())
    fail(file, "has " + shown(added) + " as added_tokens", expected);
  const json& token = added[0];
  if (member(token, "content") != end_of_text_content || member(token, "special") != true)
    fail(file,
         "adds the token " + shown(member(token, "content")) +
             (member(token, "special") == true ? "" : ", which is not special"),
         expected);
  for (const char* option : {"lstrip", "rstrip", "single_word"})
    require_one_of(file, std::string("added_tokens[0].") + option, member(token, option), {false});
  if (member(token, "id").is_null()) fail(file, "adds a token without an id", expected);
  return member(token, "id");
}

Vocabulary checked(Vocabulary vocabulary, const path& file) {
  const std::string fault = vocabulary_fault(vocabulary);
  if (!fault.empty())
    fail(file, "does not fit together (" + fault + ")", "a vocabulary such as GPT-2's");
  return vocabulary;
}

std::uint32_t end_of_text_id(const Tokens& tokens) {
  for (std::size_t id = 0; id < tokens.bytes.size(); ++id)
    if (tokens.bytes[id] == end_of_text_content) return static_cast<std::uint32_t>(id);
  return static_cast<std::uint32_t>(tokens.bytes.size());  // `checked` refuses it
}

void put_int32(std::string& out, std::uint32_t value) {
  for (int shift = 0; shift < 32; shift += 8) out += static_cast<char>(value >> shift & 0xff);
}

}  // namespace

Vocabulary read_tokenizer(const path& where) {
  if (!std::filesystem::is_directory(where))
    return parse_tokenizer_json(io::MappedFile(where).text(), where);
  const path json_file = where / "tokenizer.json";
  if (std::filesystem::exists(json_file))
    return parse_tokenizer_json(io::MappedFile(json_file).text(), json_file);
  const path vocab = where / "vocab.json", merges = where / "merges.txt";
  if (!std::filesystem::exists(vocab) || !std::filesystem::exists(merges))
    fail(where, "holds no tokenizer", "tokenizer.json, or vocab.json and merges.txt, in it");
  return parse_vocab_and_merges(io::MappedFile(vocab).text(), vocab, io::MappedFile(merges).text(),
                                merges);
}

Vocabulary parse_tokenizer_json(std::string_view text, const path& file) {
  const json root = parse_json(text, file, expected_tokenizer);
  const json& model = member(root, "model");
  check_model(model, file);
  check_pipeline(root, file);
  const json& special_id = parse_added_tokens(root, file);
  const Tokens tokens = parse_tokens(member(model, "vocab"), special_id, file);
  const std::uint32_t end_of_text = end_of_text_id(tokens);
  if (special_id != end_of_text)
    fail(file,
         "gives " + in_quotes(end_of_text_content) + " the id " + shown(special_id) +
             " as an added token",
         "the id of the vocabulary, " + number(end_of_text));
  std::vector<Merge> merges = parse_json_merges(member(model, "merges"), tokens, file);
  return checked({tokens.bytes, std::move(merges), end_of_text}, file);
}

Vocabulary parse_vocab_and_merges(std::string_view vocab_text, const path& vocab_file,
                                  std::string_view merges_text, const path& merges_file) {
  const json vocab = parse_json(vocab_text, vocab_file, expected_vocab);
  const Tokens tokens = parse_tokens(vocab, nullptr, vocab_file);
  if (!vocab.contains(end_of_text_content))
    fail(vocab_file, "has no token " + in_quotes(end_of_text_content), "GPT-2's special token");
  std::vector<Merge> merges;
  if (merges_text.size() > largest_file)
    fail(merges_file, "has " + number(merges_text.size()) + " bytes",
         "at most " + number(largest_file));
  for (std::size_t line_number = 1; !merges_text.empty(); ++line_number) {
    const std::size_t end = merges_text.find('\n');
    std::string_view line = merges_text.substr(0, end);
    merges_text.remove_prefix(end == std::string_view::npos ? line.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line_number == 1 && line.starts_with("#version")) continue;
    if (line.empty() && merges_text.empty()) continue;
    const auto parts = split_merge(line);
    if (!parts)
      fail(merges_file, "has " + in_quotes(line) + " in line " + number(line_number),
           "two tokens with a space between, as in \"t h\"");
    merges.push_back(parse_merge(parts->first, parts->second, tokens, merges.size(), merges_file));
  }
  const std::uint32_t end_of_text = end_of_text_id(tokens);
  return checked({tokens.bytes, std::move(merges), end_of_text}, merges_file);
}

void write_tokenizer_json(const path& file, const Vocabulary& vocabulary) {
  // The special token's characters are printable: in the byte alphabet it is spelt as it is.
  const auto spelling = [&](std::uint32_t id) { return to_alphabet(vocabulary.tokens[id]); };
  const auto string = [](const std::string& text) { return json(text).dump(); };
  std::string out = R"({
  "version": "1.0",
  "truncation": null,
  "padding": null,
  "added_tokens": [
    {"id": )" + number(vocabulary.end_of_text) +
                    R"(, "content": "<|endoftext|>", "single_word": false, "lstrip": false,
     "rstrip": false, "normalized": false, "special": true}
  ],
  "normalizer": null,
  "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true,
                    "use_regex": true},
  "post_processor": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": false,
                     "use_regex": true},
  "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true,
              "use_regex": true},
  "model": {
    "type": "BPE",
    "dropout": null,
    "unk_token": null,
    "continuing_subword_prefix": "",
    "end_of_word_suffix": "",
    "fuse_unk": false,
    "byte_fallback": false,
    "ignore_merges": false,
    "vocab": {)";
  for (std::uint32_t id = 0; id < vocabulary.tokens.size(); ++id)
    out += (id == 0 ? "\n      " : ",\n      ") + string(spelling(id)) + ": " + number(id);
  out += "\n    },\n    \"merges\": [";
  for (std::size_t rank = 0; rank < vocabulary.merges.size(); ++rank) {
    const Merge& merge = vocabulary.merges[rank];
    out += (rank == 0 ? "\n      " : ",\n      ") +
           string(spelling(merge.left) + " " + spelling(merge.right));
  }
  out += "\n    ]\n  }\n}\n";
  io::write_file(file, out);
}

void write_tokenizer_bin(const path& file, const Vocabulary& vocabulary) {
  constexpr std::size_t header_ints = 256;
  std::string out;
  for (const std::uint32_t value :
       {20240328u, 2u, static_cast<std::uint32_t>(vocabulary.tokens.size()),
        vocabulary.end_of_text})
    put_int32(out, value);
  out.resize(4 * header_ints);
  for (std::size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    const std::string& token = vocabulary.tokens[id];
    if (token.size() > max_token_bytes)
      throw std::runtime_error("'" + file.string() + "' cannot be written: token " + number(id) +
                               " has " + number(token.size()) + " bytes, expected at most " +
                               number(max_token_bytes));
    out += static_cast<char>(token.size());
    out += token;
  }
  io::write_file(file, out);
}

}  // namespace strata::data
