// What a person sees while a data set is made.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace strata::data {

/// Lines of a word and a sentence on standard output. Work that takes time shows how far it has come:
/// on a terminal as a line that changes (on standard error), else as a plain line every ten seconds.
class Progress {
 public:
  enum class Style { silent, plain, terminal };

  explicit Progress(Style style) : style_(style) {}
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() { clear(); }

  /// `word` tells the kind of line, at most eight letters.
  void say(std::string_view word, std::string_view text);

  /// Begins a piece of work on `total` bytes.
  void begin(std::string_view word, std::string_view what, std::uint64_t total);
  /// `done` of them are done.
  void advance(std::uint64_t done);
  /// Ends the work; returns the seconds it took.
  double end();

 private:
  using Clock = std::chrono::steady_clock;
  void clear();

  Style style_;
  std::string word_;
  std::string what_;
  std::uint64_t total_ = 0;
  Clock::time_point start_;
  Clock::time_point shown_;
  bool line_open_ = false;
};

/// 1234567 as "1,234,567".
[[nodiscard]] std::string with_commas(std::uint64_t number);
/// A number of bytes as "24.0 MB" (powers of ten).
[[nodiscard]] std::string in_bytes(std::uint64_t bytes);
/// Seconds as "0.3 s", "42 s", "3 min 20 s", "2 h 5 min".
[[nodiscard]] std::string in_time(double seconds);

}  // namespace strata::data
