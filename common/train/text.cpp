#include "common/train/text.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <ctime>

namespace strata::train {
namespace {

/// One step through a byte string: a character, or a stretch that is not UTF-8.
struct Character {
  std::size_t length = 1;
  std::uint32_t code = 0;
  bool valid = false;
};

Character decode(std::string_view bytes) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return {1, first, true};
  const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4) return {};
  // The second byte alone decides about overlong forms, surrogates and the end of Unicode.
  unsigned low = 0x80, high = 0xbf;
  if (first == 0xe0) low = 0xa0;
  if (first == 0xed) high = 0x9f;
  if (first == 0xf0) low = 0x90;
  if (first == 0xf4) high = 0x8f;
  std::uint32_t code = first & (0x7fu >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if (i >= bytes.size() || byte(i) < low || byte(i) > high) return {i, 0, false};
    code = code << 6 | (byte(i) & 0x3fu);
    low = 0x80;
    high = 0xbf;
  }
  return {length, code, true};
}

/// Characters that a page should name rather than obey.
bool is_hidden(std::uint32_t code) {
  return (code >= 0x80 && code <= 0x9f) || code == 0x061c || code == 0x200b || code == 0x200e ||
         code == 0x200f || (code >= 0x2028 && code <= 0x202e) ||
         (code >= 0x2060 && code <= 0x206f) || code == 0xfeff || code == 0xfffe || code == 0xffff ||
         (code & 0xfffe) == 0xfffe;
}

constexpr std::string_view replacement = "\xef\xbf\xbd";  // U+FFFD

}  // namespace

bool is_utf8(std::string_view bytes) {
  while (!bytes.empty()) {
    const Character next = decode(bytes);
    if (!next.valid) return false;
    bytes.remove_prefix(next.length);
  }
  return true;
}

std::string replace_invalid_utf8(std::string_view bytes) {
  std::string out;
  while (!bytes.empty()) {
    const Character next = decode(bytes);
    out += next.valid ? bytes.substr(0, next.length) : replacement;
    bytes.remove_prefix(next.length);
  }
  return out;
}

std::string escape(std::string_view bytes) {
  std::string out;
  while (!bytes.empty()) {
    const Character next = decode(bytes);
    const std::string_view raw = bytes.substr(0, next.length);
    bytes.remove_prefix(next.length);
    if (!next.valid) {
      out += replacement;
    } else if (next.code == '&') {
      out += "&amp;";
    } else if (next.code == '<') {
      out += "&lt;";
    } else if (next.code == '>') {
      out += "&gt;";
    } else if (next.code == '"') {
      out += "&quot;";
    } else if (next.code == '\'') {
      out += "&#39;";
    } else if ((next.code < 0x20 && next.code != '\n' && next.code != '\t') || next.code == 0x7f) {
      // The pictures U+2400..U+241F in order, and U+2421 for DEL.
      const unsigned picture = next.code == 0x7f ? 0x21 : next.code;
      out += {'\xe2', '\x90', static_cast<char>(0x80 + picture)};
    } else if (is_hidden(next.code)) {
      out += fmt::format("\xe2\x80\xb9U+{:04X}\xe2\x80\xba", next.code);
    } else {
      out += raw;
    }
  }
  return out;
}

std::string grouped(double value) {
  if (!std::isfinite(value)) return "unknown";
  std::string digits = fmt::format("{:.0f}", std::fabs(value));
  for (std::ptrdiff_t at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<std::size_t>(at), 1, ',');
  return fmt::format("{}{}", value < 0 && digits != "0" ? "-" : "", digits);
}

std::string fixed(double value, int decimals) {
  if (!std::isfinite(value)) return "unknown";
  if (std::fabs(value) >= 1e7) return fmt::format("{:.{}e}", value, decimals);
  return fmt::format("{:.{}f}", value, decimals);
}

std::string significant(double value, int digits) {
  if (!std::isfinite(value)) return "unknown";
  return fmt::format("{:.{}g}", value, digits);
}

std::string short_count(double value) {
  for (const auto& [unit, suffix] : {std::pair{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}})
    if (std::fabs(value) >= unit) return fmt::format("{:.4g}{}", value / unit, suffix);
  return fmt::format("{:.4g}", value);
}

std::string bytes_text(double value) {
  if (!std::isfinite(value)) return "unknown";
  constexpr std::array<const char*, 6> units = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  std::size_t unit = 0;
  for (; std::fabs(value) >= 1024 && unit + 1 < units.size(); ++unit) value /= 1024;
  return fmt::format("{:.{}f} {}", value, unit == 0 ? 0 : value < 10 ? 2 : 1, units[unit]);
}

std::string duration(double seconds) {
  if (!(std::isfinite(seconds) && seconds >= 0)) return "unknown";
  if (seconds < 1) return fmt::format("{:.0f} ms", seconds * 1e3);
  if (seconds < 60) return fmt::format("{:.1f} s", seconds);
  const double whole = std::floor(seconds + 0.5), minutes = std::floor(whole / 60);
  if (minutes < 60) return fmt::format("{:.0f} min {:.0f} s", minutes, whole - 60 * minutes);
  const double hours = std::floor(minutes / 60);
  return fmt::format("{} h {:.0f} min", grouped(hours), minutes - 60 * hours);
}

std::string utc(double seconds) {
  if (!(seconds >= 0 && seconds < 253402300800.0)) return "unknown";  // the year 10000
  const std::time_t time = static_cast<std::time_t>(seconds);
  std::tm parts{};
  ::gmtime_r(&time, &parts);
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02} UTC", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min);
}

}  // namespace strata::train
