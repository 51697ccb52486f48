// Languages small enough to list all their stories.
#pragma once

#include <array>
#include <initializer_list>

#include "data/tales/language.h"

namespace strata::tests {

/// A girl and a boy, one thing, two places; only the given acts beside the openings
/// and the turns of the day, and only the first wording of each act; nobody is called by their
/// species. `steps` gives the longest duration of each phase.
inline tales::Language small_language(std::initializer_list<tales::Act> acts,
                                      std::array<int, tales::phase_count> steps) {
  using namespace tales;
  Language language = default_language();
  language.names = {{"Mia", true}, {"Tom", false}};
  language.animals = {{"fox", "trotted"}, {"bear", "padded"}};
  language.traits = {{"brave", "climbed a tall tree"}, {"shy", "looked at the ground"}};
  language.adjectives = {"red"};
  language.nouns = {"ball"};
  language.places = {{"in", "garden"}, {"by", "river"}};
  language.weathers = {"sunny"};
  language.verbs = {{"went", 3}};
  language.weights.species = 0;
  language.limits = {.people = 2, .things = 1, .places = 2, .spans = {}};
  for (std::size_t phase = 0; phase < phase_count; ++phase)
    language.limits.spans[phase] = {phase == 3 && steps[phase] > 0 ? 1 : 0, steps[phase], 2};

  std::erase_if(language.likelihoods, [&](const Likelihood& likelihood) {
    for (const Act act : acts)
      if (act == likelihood.act) return false;
    return true;
  });
  std::vector<Wording> first;
  for (const Wording& wording : language.wordings)
    if (first.empty() || first.back().act != wording.act) first.push_back(wording);
  language.wordings = std::move(first);
  return language;
}

}  // namespace strata::tests
