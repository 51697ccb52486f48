#include "data/tales/pattern.h"

#include <cctype>
#include <stdexcept>

namespace strata::tales {

Patterns::Patterns(const Language& language) : language_(language) {
  const auto define_all = [this](const auto& list, Kind kind, auto text) {
    for (std::size_t i = 0; i < list.size(); ++i) define(text(list[i]), kind, static_cast<int>(i));
  };
  const auto itself = [](const std::string& text) { return text; };
  define_all(language.names, Kind::name, [](const Name& x) { return x.text; });
  define_all(language.animals, Kind::species, [](const Animal& x) { return x.species; });
  define_all(language.traits, Kind::trait, [](const Trait& x) { return x.word; });
  define_all(language.adjectives, Kind::adjective, itself);
  define_all(language.nouns, Kind::noun, itself);
  define_all(language.places, Kind::place, [](const Place& x) { return x.word; });
  define_all(language.weathers, Kind::weather, itself);
  define_all(language.verbs, Kind::verb, [](const Verb& x) { return x.text; });
  for (std::size_t i = 1; i < mood_words.size(); ++i)
    define(mood_words[i], Kind::mood, static_cast<int>(i));
  for (std::size_t i = 0; i < language.animals.size(); ++i)
    if (!ids_.contains(language.animals[i].gait))
      define(language.animals[i].gait, Kind::gait, static_cast<int>(i));

  the_ = intern("the"), and_ = intern("and"), comma_ = intern(",");
  he_ = intern("he"), she_ = intern("she"), they_ = intern("they");
  his_ = intern("his"), her_ = intern("her");
  for (const Place& place : language.places) intern(place.preposition);
  for (const Trait& trait : language.traits) {
    split_tokens(trait.deed, tokens_);
    std::vector<int>& words = deeds_.emplace_back();
    for (const Token& token : tokens_) words.push_back(intern(std::string(token.text)));
  }
  for (const Wording& wording : language.wordings) compile(wording);
}

int Patterns::intern(const std::string& text) {
  const auto [found, added] = ids_.try_emplace(text, static_cast<int>(words_.size()));
  if (added) words_.emplace_back();
  return found->second;
}

void Patterns::define(const std::string& text, Kind kind, int index) {
  Word& word = words_[intern(text)];
  if (word.kind != Kind::literal)
    throw std::invalid_argument("the word '" + text + "' stands in two lists of the language");
  word = {kind, index};
}

void Patterns::compile(const Wording& wording) {
  Pattern& pattern = patterns_.emplace_back(Pattern{&wording, {}});
  split_tokens(wording.text, tokens_);
  for (const Token& token : tokens_) {
    Element& element = pattern.elements.emplace_back();
    element.spaced = token.spaced;
    if (token.text.front() == '{')
      element.slot = token.text.substr(1, token.text.size() - 2);
    else
      element.word = intern(std::string(token.text));
  }
}

/// Looks the words of a sentence up. The first stands with a capital, whatever it is elsewhere.
void Patterns::look_up(std::string_view sentence) {
  split_tokens(sentence, tokens_);
  input_.clear();
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    buffer_.assign(tokens_[i].text);
    const bool capital = std::isupper(static_cast<unsigned char>(buffer_[0])) != 0;
    auto found = ids_.find(buffer_);
    if (i == 0 && capital && (found == ids_.end() || words_[found->second].kind != Kind::name)) {
      buffer_[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(buffer_[0])));
      found = ids_.find(buffer_);
    } else if (i == 0 && !capital && buffer_ != "\"") {
      found = ids_.end();
    }
    input_.push_back({found == ids_.end() ? -1 : found->second, tokens_[i].spaced});
  }
}

const std::vector<Reading>& Patterns::read(std::string_view sentence) {
  readings_.clear();
  look_up(sentence);
  for (const Input& input : input_)
    if (input.word < 0) return readings_;
  for (const Pattern& pattern : patterns_) {
    const Element& first = pattern.elements.front();
    if (first.slot.empty() && !is(0, first.word, false)) continue;
    Reading reading;
    if (match(pattern, reading)) readings_.push_back(std::move(reading));
  }
  return readings_;
}

bool Patterns::match(const Pattern& pattern, Reading& reading) const {
  reading.wording = pattern.wording;
  std::size_t at = 0;
  for (const Element& element : pattern.elements) {
    if (at >= input_.size() || input_[at].spaced != element.spaced) return false;
    if (element.slot.empty()) {
      if (input_[at++].word != element.word) return false;
    } else if (!match_slot(element.slot, at, reading)) {
      return false;
    }
  }
  return at == input_.size();
}

bool Patterns::match_slot(const std::string& slot, std::size_t& at, Reading& r) const {
  const auto bare_name = [&](Mention& mention) {
    mention.form = Mention::Form::bare_name;
    return take_kind(at, Kind::name, mention.value);
  };
  if (slot == "s") return match_mention(at, true, r.s);
  if (slot == "x") return match_mention(at, false, r.s);
  if (slot == "t") return match_mention(at, false, r.t);
  if (slot == "both") return match_both(at, r.s);
  if (slot == "N") return bare_name(r.s);
  if (slot == "T") return bare_name(r.t);
  if (slot == "he") {
    r.s.form = Mention::Form::fixed_pronoun;
    return match_pronoun(at, he_, she_, r.s.value);
  }
  if (slot == "his") return match_pronoun(at, his_, her_, r.possessive);
  if (slot == "o") return match_thing(at, r.adjective, r.noun);
  if (slot == "adj") return take_kind(at, Kind::adjective, r.adjective);
  if (slot == "noun") return take_kind(at, Kind::noun, r.noun);
  if (slot == "name") return take_kind(at, Kind::name, r.name);
  if (slot == "species") return take_kind(at, Kind::species, r.species);
  if (slot == "trait") return take_kind(at, Kind::trait, r.trait);
  if (slot == "weather") return take_kind(at, Kind::weather, r.weather);
  if (slot == "mood") return take_kind(at, Kind::mood, r.mood);
  if (slot == "p") return match_place(at, true, r.place);
  if (slot == "to") return match_place(at, false, r.place);
  if (slot == "v") return match_verb(at, r);
  if (slot == "deed") return match_deed(at, r.deed);
  if (slot == "list") return match_names(at, r.names);
  if (slot == "things") return match_things(at, r.things);
  throw std::invalid_argument("a wording has the unknown slot {" + slot + "}");
}

bool Patterns::is(std::size_t at, int word, bool spaced) const {
  return at < input_.size() && input_[at].word == word && input_[at].spaced == spaced;
}

bool Patterns::take_kind(std::size_t& at, Kind kind, int& index) const {
  if (at >= input_.size() || words_[input_[at].word].kind != kind) return false;
  index = words_[input_[at++].word].index;
  return true;
}

bool Patterns::match_mention(std::size_t& at, bool pronoun, Mention& mention) const {
  mention.pronoun_allowed = pronoun;
  if (pronoun && match_pronoun(at, he_, she_, mention.value)) {
    mention.form = Mention::Form::pronoun;
    return true;
  }
  if (take_kind(at, Kind::name, mention.value)) {
    mention.form = Mention::Form::name;
    return true;
  }
  mention.form = Mention::Form::species;
  if (at >= input_.size() || input_[at].word != the_) return false;
  ++at;
  return at < input_.size() && input_[at].spaced && take_kind(at, Kind::species, mention.value);
}

bool Patterns::match_both(std::size_t& at, Mention& mention) const {
  if (at < input_.size() && input_[at].word == they_) {
    mention.form = Mention::Form::they;
    ++at;
    return true;
  }
  mention.form = Mention::Form::both_names;
  if (!take_kind(at, Kind::name, mention.value) || !is(at, and_)) return false;
  ++at;
  return at < input_.size() && input_[at].spaced && take_kind(at, Kind::name, mention.second);
}

bool Patterns::match_pronoun(std::size_t& at, int he, int she, int& value) const {
  if (at >= input_.size() || (input_[at].word != he && input_[at].word != she)) return false;
  value = input_[at++].word == she;
  return true;
}

bool Patterns::match_thing(std::size_t& at, int& adjective, int& noun) const {
  return take_kind(at, Kind::adjective, adjective) && at < input_.size() && input_[at].spaced &&
         take_kind(at, Kind::noun, noun);
}

/// "by the river" where the preposition is wanted, else "the river". Each place has its own
/// preposition.
bool Patterns::match_place(std::size_t& at, bool preposition, int& place) const {
  int given = -1;
  if (preposition) {
    if (at >= input_.size()) return false;
    given = input_[at++].word;
    if (!is(at, the_)) return false;
  } else if (at >= input_.size() || input_[at].word != the_) {
    return false;
  }
  ++at;
  if (at >= input_.size() || !input_[at].spaced || !take_kind(at, Kind::place, place)) return false;
  if (!preposition) return true;
  const auto own = ids_.find(language_.places[place].preposition);
  return own != ids_.end() && own->second == given;
}

bool Patterns::match_verb(std::size_t& at, Reading& reading) const {
  if (take_kind(at, Kind::verb, reading.verb)) return true;
  reading.verb = static_cast<int>(language_.verbs.size());
  return take_kind(at, Kind::gait, reading.gait_of);
}

bool Patterns::match_deed(std::size_t& at, int& deed) const {
  for (std::size_t i = 0; i < deeds_.size(); ++i) {
    std::size_t matched = 0;
    while (matched < deeds_[i].size() && at + matched < input_.size() &&
           input_[at + matched].word == deeds_[i][matched] && input_[at + matched].spaced)
      ++matched;
    if (matched < deeds_[i].size()) continue;
    at += matched;
    deed = static_cast<int>(i);
    return true;
  }
  return false;
}

/// Between two items of a series: ", " or, before the last, " and "; false after the last.
bool Patterns::take_separator(std::size_t& at, bool& last) const {
  if (last) return false;
  last = is(at, and_);
  if (!last && !is(at, comma_, false)) return false;
  ++at;
  return true;
}

bool Patterns::match_names(std::size_t& at, std::vector<int>& names) const {
  bool last = false;
  do {
    if (!names.empty() && (at >= input_.size() || !input_[at].spaced)) return false;
    if (!take_kind(at, Kind::name, names.emplace_back())) return false;
  } while (take_separator(at, last));
  return names.size() == 1 || last;
}

bool Patterns::match_things(std::size_t& at, std::vector<std::pair<int, int>>& things) const {
  bool last = false;
  do {
    if (!is(at, the_)) return false;
    ++at;
    auto& [adjective, noun] = things.emplace_back();
    if (at >= input_.size() || !input_[at].spaced || !match_thing(at, adjective, noun))
      return false;
  } while (take_separator(at, last));
  return things.size() == 1 || last;
}

}  // namespace strata::tales
