// A strict reader of well-formed XML, for pages that are to be well formed.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace strata::tests {

/// What keeps `text` from being one well-formed XML element (after an HTML doctype), in a sentence;
/// nothing if it is one. Knows elements, attributes in double quotes, character data and the five
/// entities plus numeric ones; comments, processing instructions and CDATA are errors, since our
/// pages have none.
[[nodiscard]] std::optional<std::string> xml_error(std::string_view text);

}  // namespace strata::tests
