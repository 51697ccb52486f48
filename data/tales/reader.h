// Reads a story, sentence by sentence: is it of the language, and is it true?
#pragma once

#include <string_view>

#include "data/tales/ledger.h"
#include "data/tales/odds.h"
#include "data/tales/pattern.h"

namespace strata::tales {

/// What the reader thinks of one sentence.
struct Verdict {
  enum class Kind : std::uint8_t {
    malformed,  ///< no sentence of the language
    untrue,     ///< of the language, but the story so far speaks against it
    unknown,    ///< of the language; what it speaks of was told before the text begins
    right       ///< of the language, and true
  };
  Kind kind = Kind::malformed;
  const char* reason = "";  ///< why, unless right
  bool new_part = false;    ///< a part of the day begins with it, so that it starts a new line
  bool ends = false;        ///< the story ends with it
};

/// Reads the sentences of one story.
class StoryReader {
 public:
  /// A `whole` story is read from its first sentence: then what has not been told is not so.
  /// `odds`, for whole stories only, also weighs each sentence.
  StoryReader(const Language& language, Patterns& patterns, bool whole, Odds* odds = nullptr)
      : language_(language), patterns_(patterns), odds_(odds), ledger_(language, whole) {}

  Verdict read(std::string_view sentence);

  /// The information content of the sentences so far; nothing once one was not right, or not
  /// possible at its time.
  [[nodiscard]] std::optional<double> bits() const { return bits_; }

 private:
  /// Truth and its reason, gathered while a sentence is understood.
  struct Finding {
    Truth truth = Truth::yes;
    const char* reason = "";
    bool resolved = true;  ///< false where it stays open of whom or what the sentence speaks
    void want(Truth condition, const char* why);
  };
  /// A question or request that waits for its reply.
  struct Pending {
    Act act;
    Claim claim;
    Finding finding;
  };

  const Reading* choose(const std::vector<Reading>& readings) const;
  Verdict conclude(const Reading& reading, const Claim& claim, const Finding& finding);

  void tell(const Reading& reading, Claim& claim, Finding& finding);
  void reply(const Reading& reading, Claim& claim, Finding& finding);
  void answer(const Reading& reading, Claim& claim, Finding& finding);
  void answer_about_person(const Reading& reading, Claim& claim, Finding& finding);
  void answer_about_thing(const Reading& reading, Claim& claim, Finding& finding);

  int resolve(const Mention& mention, Finding& finding);
  int resolve_pronoun(bool female, Finding& finding) const;
  void resolve_pair(const Mention& mention, Claim& claim, Finding& finding);
  int resolve_thing(int adjective, int noun, Finding& finding);
  int resolve_name(int name, Finding& finding);

  void check_newcomers(const Reading& reading, Finding& finding) const;
  void check_time(Act act, Finding& finding) const;
  void check_words(const Reading& reading, const Claim& claim, Finding& finding);
  void check_things(const Reading& reading, int holder, Finding& finding);
  template <typename Belongs>
  void check_names(const std::vector<int>& names, Belongs belongs, Finding& finding);

  void bring_in(const Reading& reading, Claim& claim);
  void learn_answer(const Reading& reading, const Claim& claim);

  const Language& language_;
  Patterns& patterns_;
  Odds* odds_;
  Ledger ledger_;
  Fact<Phase> phase_;
  bool begun_ = false;  ///< has the sentence before this one been understood?
  std::optional<Pending> pending_;
  std::optional<double> bits_ = 0.0;
};

}  // namespace strata::tales
