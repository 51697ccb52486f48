// Shards for tests: made of bytes here, so that the tests do not trust the writer that they test.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace strata::tests {

/// A shard's bytes, as llm.c writes them; `claimed` is the header's count where it should differ.
[[nodiscard]] std::string shard_bytes(const std::vector<std::uint16_t>& tokens,
                                      std::uint32_t magic = 20240520, std::uint32_t version = 1);
[[nodiscard]] std::string shard_bytes_claiming(std::uint32_t claimed,
                                               const std::vector<std::uint16_t>& tokens);

/// The tokens 0, 1, ..., count - 1, so that a token says where it stands.
[[nodiscard]] std::vector<std::uint16_t> counting(std::size_t count, std::size_t first = 0);

}  // namespace strata::tests
