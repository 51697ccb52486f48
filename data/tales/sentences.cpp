#include "data/tales/sentences.h"

namespace strata::tales {
namespace {

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }
bool is_stop(char c) { return c == '.' || c == '?' || c == '!'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

}  // namespace

std::vector<Sentence> split_sentences(std::string_view text) {
  std::vector<Sentence> sentences;
  std::size_t at = 0;
  while (true) {
    const std::size_t space = at;
    while (at < text.size() && is_space(text[at])) ++at;
    if (at == text.size()) return sentences;
    const std::size_t start = at;
    bool ended = false;
    while (at < text.size() && text[at] != '\n' && !ended) {
      const bool last = at + 1 == text.size() || is_space(text[at + 1]);
      ended = is_stop(text[at]) && last;
      ++at;
    }
    sentences.push_back({text.substr(start, at - start), text.substr(space, start - space), ended});
  }
}

void split_tokens(std::string_view sentence, std::vector<Token>& tokens) {
  tokens.clear();
  for (std::size_t at = 0; at < sentence.size();) {
    bool spaced = false;
    if (sentence[at] == ' ') {
      spaced = true;
      if (++at == sentence.size()) {
        tokens.push_back({sentence.substr(at - 1, 1), false});
        return;
      }
    }
    const std::size_t start = at++;
    if (sentence[start] == '{') {
      while (at < sentence.size() && sentence[at - 1] != '}') ++at;
    } else if (is_letter(sentence[start])) {
      while (at < sentence.size() && is_letter(sentence[at])) ++at;
    }
    tokens.push_back({sentence.substr(start, at - start), spaced});
  }
}

}  // namespace strata::tales
