// Numbers as people read them, and arbitrary bytes as a page may show them.
#pragma once

#include <string>
#include <string_view>

namespace strata::train {

/// Whether `bytes` is well-formed UTF-8 (no overlong forms, no surrogates, nothing past U+10FFFF).
[[nodiscard]] bool is_utf8(std::string_view bytes);

/// `bytes` with U+FFFD for every part that is not UTF-8.
[[nodiscard]] std::string replace_invalid_utf8(std::string_view bytes);

/// `bytes` as HTML text that shows them and does nothing else; also good between double quotes in
/// an attribute. The five special characters become entities, invalid UTF-8 becomes U+FFFD, control
/// characters except tab and line feed become their pictures (U+2400..), and characters that turn
/// the direction of text or are invisible by nature become "<U+202E>" in angle quotes.
[[nodiscard]] std::string escape(std::string_view bytes);

/// 1234567.0 -> "1,234,567" (rounded to an integer); "unknown" if not finite.
[[nodiscard]] std::string grouped(double value);
/// `value` with `decimals` places; "unknown" if not finite.
[[nodiscard]] std::string fixed(double value, int decimals);
/// `value` with at most `digits` significant digits, as short as it goes: 0.0003, 1.5, 2.1e-07.
[[nodiscard]] std::string significant(double value, int digits);
/// 1500 -> "1.5k", 2e6 -> "2M"; for axes.
[[nodiscard]] std::string short_count(double value);
/// 1536 -> "1.5 KiB".
[[nodiscard]] std::string bytes_text(double value);
/// 75.2 -> "1 min 15 s".
[[nodiscard]] std::string duration(double seconds);
/// Seconds since 1970 -> "2026-11-30 14:05 UTC".
[[nodiscard]] std::string utc(double seconds);

}  // namespace strata::train
