// Recognises sentences: which wording a sentence has, and what stands in its slots. Whether that
// makes sense in a story is not asked here.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "data/tales/language.h"
#include "data/tales/sentences.h"

namespace strata::tales {

/// How a person, or a pair, is spoken of.
struct Mention {
  /// A fixed pronoun or a bare name is one that the wording prescribes; the others were chosen.
  enum class Form : std::uint8_t {
    none,
    pronoun,
    fixed_pronoun,
    name,
    bare_name,
    species,
    they,
    both_names
  };
  Form form = Form::none;
  bool pronoun_allowed = false;  ///< whether the wording has room for a pronoun here
  int value = -1;                ///< name or species; 1 for "she", 0 for "he"
  int second = -1;               ///< the other name of a pair
};

/// A sentence as it stands: indices are those of the word lists, -1 where there is no such word.
struct Reading {
  const Wording* wording = nullptr;
  Mention s, t;
  int possessive = -1;  ///< 1 for "her", 0 for "his"
  int name = -1, species = -1, trait = -1, adjective = -1, noun = -1;
  int place = -1, weather = -1, deed = -1, mood = -1;
  int verb = -1;     ///< index of a common verb; their number for a gait
  int gait_of = -1;  ///< an animal that moves so
  std::vector<int> names;
  std::vector<std::pair<int, int>> things;  ///< adjective and noun of each
};

/// Knows all wordings of a language. Borrows the language.
class Patterns {
 public:
  explicit Patterns(const Language& language);

  /// All wordings that fit the sentence: one for each act that can be put into these words. Not
  /// safe to be called by two threads at a time.
  [[nodiscard]] const std::vector<Reading>& read(std::string_view sentence);

 private:
  enum class Kind : std::uint8_t {
    literal,
    name,
    species,
    trait,
    adjective,
    noun,
    place,
    weather,
    mood,
    verb,
    gait
  };
  /// What a word can be, beside a literal part of a wording: at most one of the lists.
  struct Word {
    Kind kind = Kind::literal;
    int index = -1;
  };
  struct Element {
    std::string slot;  ///< empty for a literal
    int word = -1;
    bool spaced = false;
  };
  struct Pattern {
    const Wording* wording;
    std::vector<Element> elements;
  };
  /// A word of the sentence at hand; -1 for one that the language does not have.
  struct Input {
    int word;
    bool spaced;
  };

  int intern(const std::string& text);
  void define(const std::string& text, Kind kind, int index);
  void compile(const Wording& wording);
  void look_up(std::string_view sentence);

  bool match(const Pattern& pattern, Reading& reading) const;
  bool match_slot(const std::string& slot, std::size_t& at, Reading& reading) const;
  bool match_mention(std::size_t& at, bool pronoun, Mention& mention) const;
  bool match_both(std::size_t& at, Mention& mention) const;
  bool match_pronoun(std::size_t& at, int he, int she, int& value) const;
  bool match_thing(std::size_t& at, int& adjective, int& noun) const;
  bool match_place(std::size_t& at, bool preposition, int& place) const;
  bool match_verb(std::size_t& at, Reading& reading) const;
  bool match_deed(std::size_t& at, int& deed) const;
  bool match_names(std::size_t& at, std::vector<int>& names) const;
  bool match_things(std::size_t& at, std::vector<std::pair<int, int>>& things) const;

  /// True if the word at `at` is `word`, with a space before it unless a slot starts there.
  [[nodiscard]] bool is(std::size_t at, int word, bool spaced = true) const;
  bool take_kind(std::size_t& at, Kind kind, int& index) const;
  bool take_separator(std::size_t& at, bool& last) const;

  const Language& language_;
  std::unordered_map<std::string, int> ids_;
  std::vector<Word> words_;
  std::vector<Pattern> patterns_;
  std::vector<std::vector<int>> deeds_;  ///< the words of each
  int the_, and_, comma_, he_, she_, his_, her_, they_;

  std::vector<Token> tokens_;
  std::vector<Input> input_;
  std::vector<Reading> readings_;
  std::string buffer_;
};

}  // namespace strata::tales
