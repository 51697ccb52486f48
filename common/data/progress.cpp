#include "common/data/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace strata::data {

void Progress::say(std::string_view word, std::string_view text) {
  clear();
  if (style_ == Style::silent) return;
  fmt::print("{:<8} {}\n", word, text);
  std::fflush(stdout);
}

void Progress::begin(std::string_view word, std::string_view what, std::uint64_t total) {
  word_ = word;
  what_ = what;
  total_ = std::max<std::uint64_t>(total, 1);
  start_ = shown_ = Clock::now();
}

void Progress::advance(std::uint64_t done) {
  const auto now = Clock::now();
  const auto pause = style_ == Style::terminal ? std::chrono::milliseconds(100)
                                               : std::chrono::milliseconds(10'000);
  if (style_ == Style::silent || now - shown_ < pause) return;
  shown_ = now;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  const double rate = static_cast<double>(done) / seconds;
  const double left = static_cast<double>(total_ - std::min(done, total_)) / rate;
  const std::string text =
      fmt::format("{}: {:.0f} % of {}, {}/s{}", what_,
                  100.0 * static_cast<double>(std::min(done, total_)) / static_cast<double>(total_),
                  in_bytes(total_), in_bytes(static_cast<std::uint64_t>(rate)),
                  done > 0 ? ", " + in_time(left) + " left" : "");
  if (style_ == Style::plain) return say(word_, text);
  fmt::print(stderr, "\r{:<8} {}\x1b[K", word_, text);
  line_open_ = true;
}

double Progress::end() {
  clear();
  return std::chrono::duration<double>(Clock::now() - start_).count();
}

void Progress::clear() {
  if (line_open_) fmt::print(stderr, "\r\x1b[K");
  line_open_ = false;
}

std::string with_commas(std::uint64_t number) {
  if (number < 1000) return std::to_string(number);
  return fmt::format("{},{:03}", with_commas(number / 1000), number % 1000);
}

std::string in_bytes(std::uint64_t bytes) {
  if (bytes < 1000) return fmt::format("{} bytes", bytes);
  double value = static_cast<double>(bytes);
  const char* unit = "";
  for (const char* next : {"kB", "MB", "GB", "TB"}) {
    if (value < 1000) break;
    value /= 1000;
    unit = next;
  }
  return fmt::format("{:.1f} {}", value, unit);
}

std::string in_time(double seconds) {
  if (seconds < 9.95) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<std::uint64_t>(std::llround(std::min(seconds, 1e15)));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole / 60 % 60);
}

}  // namespace strata::data
