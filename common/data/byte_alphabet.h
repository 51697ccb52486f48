// GPT-2's byte alphabet: each byte as one printable character, so that tokens can stand in JSON.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace strata::data {

/// The 256 bytes in GPT-2's order, which is also the order of its first 256 ids: the bytes that
/// Latin-1 prints ('!'..'~', 0xA1..0xAC, 0xAE..0xFF), then the 68 others by value.
[[nodiscard]] const std::array<std::uint8_t, 256>& byte_order();

/// `bytes` in the alphabet, as UTF-8: a printable byte is the Latin-1 character of that value, the
/// n-th other byte is the character U+0100 + n. " the" becomes "Ġthe".
[[nodiscard]] std::string to_alphabet(std::string_view bytes);

/// The bytes that `text`, valid UTF-8, spells in the alphabet; nothing if one of its characters is
/// not in it.
[[nodiscard]] std::optional<std::string> from_alphabet(std::string_view text);

}  // namespace strata::data
