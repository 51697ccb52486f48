// The header of a safetensors file as parsed, before its numbers are checked against the file.
// Internal to common/io: readers use safetensors.h.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/io/safetensors.h"

namespace strata::io::detail {

/// One entry of the header.
struct HeaderEntry {
  std::string name;
  Dtype dtype = Dtype::f32;
  Shape shape;
  std::uint64_t begin = 0;  ///< first byte, counted from the start of the data
  std::uint64_t end = 0;    ///< one past the last byte
};

struct Header {
  std::vector<HeaderEntry> entries;
  std::map<std::string, std::string> metadata;
};

/// Parses a header. Throws std::runtime_error naming `path` unless it is exactly a JSON object of
/// the format: no other keys, no doubled ones, no negative or fractional numbers.
[[nodiscard]] Header parse_header(const std::filesystem::path& path, std::string_view text);

/// A name as error messages show it: in quotes, control characters escaped, cut after 80 bytes.
[[nodiscard]] std::string shown(std::string_view name);

}  // namespace strata::io::detail
