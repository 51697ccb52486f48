// On what machine, and when, a figure was measured.
#pragma once

#include <string>

namespace strata::bench {

struct Machine {
  std::string processor;  ///< its name, as the system gives it
  int processors = 0;     ///< that programs may run on at once
  double memory_bytes = 0;
  std::string system;    ///< kernel and version
  std::string compiler;  ///< that built this program, and the stage beside it
};

[[nodiscard]] Machine this_machine();

/// The time now, "2026-11-30T14:05:00Z".
[[nodiscard]] std::string utc_now();

}  // namespace strata::bench
