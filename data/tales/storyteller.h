// Tells a story: chooses what happens, sentence by sentence, and writes it down.
#pragma once

#include <string>

#include "data/tales/chooser.h"
#include "data/tales/language.h"

namespace strata::tales {

/// One story from the choices of `chooser`, ending in a line break. Different choices make
/// different texts, so that the information content of the text is what `chooser.bits()` grew by.
[[nodiscard]] std::string tell_story(const Language& language, Chooser& chooser);

}  // namespace strata::tales
