// Is the machine quiet? Timings on a shared machine mean something only if we know.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace strata::bench {

/// Processor time at one moment, in clock ticks since the machine started.
struct Usage {
  double seconds = 0;     ///< of the wall clock, monotonic
  std::int64_t busy = 0;  ///< of the whole machine; stolen time counts as busy
  std::int64_t ours = 0;  ///< of this process and of the session that is measured
};

/// Reads /proc/stat and the times of this process and of all processes of `session` (0: none).
/// Throws std::runtime_error where /proc is not Linux's.
[[nodiscard]] Usage usage_now(pid_t session);

/// The share of the machine that others used between two moments: 0 is nobody, 1 everything.
[[nodiscard]] double foreign_share(const Usage& from, const Usage& to);

/// The same from its parts: ticks of the machine and of us in `seconds` on `processors`.
[[nodiscard]] double foreign_share(std::int64_t busy, std::int64_t ours, double seconds,
                                   int processors, long ticks_per_second);

/// Waits until others use less than `share` of the machine over 0.2 s, but at most `longest_wait`
/// seconds. Returns the seconds it waited.
double wait_until_quiet(double share, double longest_wait);

}  // namespace strata::bench
