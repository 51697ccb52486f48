// How likely a sentence was: its information content, recomputed from the text alone.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "data/tales/ledger.h"
#include "data/tales/pattern.h"

namespace strata::tales {

/// Follows one whole story and weighs each of its sentences against all that could have stood in
/// its place. Where the storyteller lists the possible meanings of an act, this tries every
/// combination of people, things and places and asks the ledger about each.
class Odds {
 public:
  explicit Odds(const Language& language);

  /// -log2 of the probability of a sentence that is true, given the story before it; nothing if
  /// the sentence is out of its time (too early, too late, a question asked twice).
  /// `claim` has -1 for a newcomer.
  [[nodiscard]] std::optional<double> bits(const Reading& reading, const Claim& claim,
                                           const Ledger& ledger) const;

  /// Goes on to the next sentence.
  void pass(const Reading& reading);

 private:
  [[nodiscard]] double act_bits(Act act, const Ledger& ledger) const;
  [[nodiscard]] double claim_bits(Act act, const Claim& claim, const Ledger& ledger) const;
  [[nodiscard]] double newcomer_bits(const Reading& reading, const Ledger& ledger) const;
  [[nodiscard]] double wording_bits(const Reading& reading) const;
  [[nodiscard]] double mention_bits(const Mention& mention, int person, const Claim& claim,
                                    const Ledger& ledger) const;
  [[nodiscard]] double word_choice_bits(const Reading& reading, const Claim& claim,
                                        const Ledger& ledger) const;

  /// The weight of an act in the present phase, if its time has come; of its possibility in the
  /// world this says nothing.
  [[nodiscard]] std::uint64_t timely_weight(Act act, const Ledger& ledger) const;
  [[nodiscard]] std::uint64_t turn_weight(const Ledger& ledger) const;
  [[nodiscard]] Act turn() const;

  /// The weight of one claim, and of all possible claims together.
  [[nodiscard]] std::uint64_t emphasis(Act act, const Claim& claim, const Ledger& ledger) const;
  [[nodiscard]] std::uint64_t total_emphasis(Act act, const Ledger& ledger) const;
  [[nodiscard]] std::uint64_t destination(Act act, const Claim& claim, const Ledger& ledger) const;

  const Language& language_;
  const Weights& weights_;
  std::array<std::array<std::uint32_t, phase_count>, act_count> likelihood_{};
  int phase_ = 0;
  int steps_ = 0;
  std::array<bool, act_count> asked_{};
  int weather_ = -1;
};

}  // namespace strata::tales
