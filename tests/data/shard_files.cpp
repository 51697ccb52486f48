#include "tests/data/shard_files.h"

#include <cstring>
#include <numeric>

namespace strata::tests {
namespace {

std::string bytes_of(std::uint32_t magic, std::uint32_t version, std::uint32_t count,
                     const std::vector<std::uint16_t>& tokens) {
  std::string bytes(1024 + 2 * tokens.size(), '\0');
  const std::uint32_t header[] = {magic, version, count};
  std::memcpy(bytes.data(), header, sizeof header);
  if (!tokens.empty()) std::memcpy(bytes.data() + 1024, tokens.data(), 2 * tokens.size());
  return bytes;
}

}  // namespace

std::string shard_bytes(const std::vector<std::uint16_t>& tokens, std::uint32_t magic,
                        std::uint32_t version) {
  return bytes_of(magic, version, static_cast<std::uint32_t>(tokens.size()), tokens);
}

std::string shard_bytes_claiming(std::uint32_t claimed, const std::vector<std::uint16_t>& tokens) {
  return bytes_of(20240520, 1, claimed, tokens);
}

std::vector<std::uint16_t> counting(std::size_t count, std::size_t first) {
  std::vector<std::uint16_t> tokens(count);
  std::iota(tokens.begin(), tokens.end(), static_cast<std::uint16_t>(first));
  return tokens;
}

}  // namespace strata::tests
