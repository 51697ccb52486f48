// One name for Catch2's header and its matchers in version 2 (Debian 12) and version 3.
#pragma once

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;
#else
#include <catch2/catch.hpp>
#endif

#include <string>

namespace strata::tests {

/// Matches a string that has `part` in it, for CHECK_THROWS_WITH and CHECK_THAT.
inline auto contains(const std::string& part) {
#if __has_include(<catch2/catch_all.hpp>)
  return Catch::Matchers::ContainsSubstring(part);
#else
  return Catch::Contains(part);
#endif
}

}  // namespace strata::tests
