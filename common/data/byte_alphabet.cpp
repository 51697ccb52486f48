#include "common/data/byte_alphabet.h"

#include <cstddef>

namespace strata::data {
namespace {

constexpr std::size_t printable_bytes = 188;
constexpr std::uint32_t first_stand_in = 0x100;

constexpr bool is_printable(unsigned byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

constexpr std::array<std::uint8_t, 256> make_byte_order() {
  std::array<std::uint8_t, 256> order{};
  std::size_t next = 0;
  for (const bool printable : {true, false})
    for (unsigned byte = 0; byte < 256; ++byte)
      if (is_printable(byte) == printable) order[next++] = static_cast<std::uint8_t>(byte);
  return order;
}
constexpr std::array<std::uint8_t, 256> order = make_byte_order();

/// Code points of the alphabet's characters, by byte; all are under U+0800, two bytes at most.
constexpr std::array<std::uint32_t, 256> make_characters() {
  std::array<std::uint32_t, 256> characters{};
  for (std::size_t i = 0; i < order.size(); ++i)
    characters[order[i]] = i < printable_bytes
                               ? order[i]
                               : first_stand_in + static_cast<std::uint32_t>(i - printable_bytes);
  return characters;
}
constexpr std::array<std::uint32_t, 256> characters = make_characters();

/// The byte that `character` stands for, if any.
std::optional<char> byte_of(std::uint32_t character) {
  if (character < first_stand_in)
    return is_printable(character) ? std::optional(static_cast<char>(character)) : std::nullopt;
  const std::size_t index = printable_bytes + (character - first_stand_in);
  return index < order.size() ? std::optional(static_cast<char>(order[index])) : std::nullopt;
}

}  // namespace

const std::array<std::uint8_t, 256>& byte_order() { return order; }

std::string to_alphabet(std::string_view bytes) {
  std::string text;
  text.reserve(2 * bytes.size());
  for (const char byte : bytes) {
    const std::uint32_t character = characters[static_cast<std::uint8_t>(byte)];
    if (character < 0x80) {
      text += static_cast<char>(character);
    } else {
      text += static_cast<char>(0xC0 | character >> 6);
      text += static_cast<char>(0x80 | (character & 0x3F));
    }
  }
  return text;
}

std::optional<std::string> from_alphabet(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::uint32_t character = static_cast<std::uint8_t>(text[i]);
    if (character >= 0xE0) return std::nullopt;
    if (character >= 0x80) {
      if (++i == text.size()) return std::nullopt;
      character = (character & 0x1F) << 6 | (static_cast<std::uint8_t>(text[i]) & 0x3F);
    }
    const std::optional<char> byte = byte_of(character);
    if (!byte) return std::nullopt;
    bytes += *byte;
  }
  return bytes;
}

}  // namespace strata::data
