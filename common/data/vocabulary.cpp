#include "common/data/vocabulary.h"

#include <nlohmann/json.hpp>
#include <unordered_map>

#include "common/data/byte_alphabet.h"

namespace strata::data {
namespace {

/// A token as a message shows it: in the byte alphabet, as tokenizer.json has it.
std::string shown(const std::string& token) { return in_quotes(to_alphabet(token)); }

std::string tokens_fault(const Vocabulary& vocabulary) {
  const auto& tokens = vocabulary.tokens;
  if (tokens.size() > max_vocab_size)
    return std::to_string(tokens.size()) + " tokens are more than the " +
           std::to_string(max_vocab_size) + " that are possible";
  std::unordered_map<std::string_view, std::size_t> ids;
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    if (tokens[id].empty()) return "token " + std::to_string(id) + " is empty";
    const auto [other, is_new] = ids.emplace(tokens[id], id);
    if (!is_new)
      return "tokens " + std::to_string(other->second) + " and " + std::to_string(id) +
             " are both " + shown(tokens[id]);
  }
  for (unsigned byte = 0; byte < 256; ++byte) {
    const char character = static_cast<char>(byte);
    if (!ids.contains(std::string_view(&character, 1)))
      return "no token is the single byte " + std::to_string(byte) + " (" +
             shown(std::string(1, character)) + ")";
  }
  if (vocabulary.end_of_text >= tokens.size() ||
      tokens[vocabulary.end_of_text] != end_of_text_content)
    return "there is no token " + in_quotes(end_of_text_content);
  return {};
}

std::string merges_fault(const Vocabulary& vocabulary) {
  const auto& tokens = vocabulary.tokens;
  std::vector<bool> made(tokens.size());
  for (std::size_t id = 0; id < tokens.size(); ++id) made[id] = tokens[id].size() == 1;
  for (std::size_t rank = 0; rank < vocabulary.merges.size(); ++rank) {
    const Merge& merge = vocabulary.merges[rank];
    const auto name = [&] { return "merge " + std::to_string(rank); };
    for (const std::uint32_t id : {merge.left, merge.right, merge.result})
      if (id >= tokens.size())
        return name() + " names token " + std::to_string(id) + " of only " +
               std::to_string(tokens.size());
    for (const std::uint32_t part : {merge.left, merge.right})
      if (!made[part]) return name() + " takes " + shown(tokens[part]) + " before a merge makes it";
    const std::string& result = tokens[merge.result];
    if (result != tokens[merge.left] + tokens[merge.right])
      return name() + " joins " + shown(tokens[merge.left]) + " and " + shown(tokens[merge.right]) +
             " to " + shown(result);
    if (merge.result == vocabulary.end_of_text) return name() + " makes the special token";
    if (made[merge.result]) return name() + " makes " + shown(result) + " a second time";
    made[merge.result] = true;
  }
  return {};
}

}  // namespace

std::string vocabulary_fault(const Vocabulary& vocabulary) {
  std::string fault = tokens_fault(vocabulary);
  if (fault.empty()) fault = merges_fault(vocabulary);
  return fault;
}

std::string in_quotes(std::string_view text) {
  constexpr std::size_t longest = 60;
  const bool cut = text.size() > longest;
  const std::string shown(text.substr(0, longest));
  return nlohmann::json(shown).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) +
         (cut ? "..." : "");
}

}  // namespace strata::data
