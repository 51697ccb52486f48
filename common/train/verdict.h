// What the corpus's own parser says about text that a model wrote.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace strata::train {

struct Judgement {
  std::int64_t sentences = 0;
  std::int64_t well_formed = 0;  ///< of the sentences
  std::int64_t judged = 0;  ///< well-formed ones that the text so far lets one call true or untrue
  std::int64_t right = 0;   ///< of those, true
  std::string first_malformed;  ///< the first sentence that is not of the language
  std::string first_untrue;     ///< the first that the story speaks against
  std::string untrue_because;   ///< and how
};

/// Reads `text` (arbitrary bytes) as stories of the data set named `data`. Nothing if that data set
/// has no parser.
[[nodiscard]] std::optional<Judgement> judge(const std::string& data, std::string_view text);

}  // namespace strata::train
