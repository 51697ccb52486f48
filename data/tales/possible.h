// What could be told next: every meaning that an act can have in a world.
#pragma once

#include <vector>

#include "data/tales/world.h"

namespace strata::tales {

/// The meanings of `act` that are possible now, each with its weight; empty where there is none.
/// `meanings` is overwritten, so that a caller can use one buffer again and again.
void possible_meanings(Act act, const World& world, const Language& language,
                       std::vector<Meaning>& meanings);

/// The act that ends the phase.
[[nodiscard]] Act turning_act(const World& world);

/// The weight of ending the phase now, 0 where it has to go on.
[[nodiscard]] std::uint32_t turning_weight(const World& world, const Language& language);

/// True if the phase can only end.
[[nodiscard]] bool phase_is_full(const World& world, const Language& language);

}  // namespace strata::tales
