// Random integers that are the same on every platform.
#pragma once

#include <array>
#include <cstdint>

namespace strata::tales {

/// xoshiro256** (Blackman and Vigna), seeded through splitmix64 from two numbers: a corpus' seed and
/// a story's index. So every story can be written by itself.
class Random {
 public:
  Random(std::uint64_t seed, std::uint64_t stream) {
    std::uint64_t state = mix(seed) + stream;
    for (std::uint64_t& word : state_) word = mix(state += golden);
  }

  /// 64 random bits.
  std::uint64_t next() {
    const std::uint64_t result = rotate_left(state_[1] * 5, 7) * 9;
    const std::uint64_t shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = rotate_left(state_[3], 45);
    return result;
  }

  /// A number from 0 to bound - 1, each exactly as likely (Lemire's multiplication, with rejection);
  /// bound must not be 0.
  std::uint32_t below(std::uint32_t bound) {
    const std::uint32_t reject = (0u - bound) % bound;  // 2^32 mod bound
    while (true) {
      const std::uint64_t product = (next() >> 32) * bound;
      if (static_cast<std::uint32_t>(product) >= reject)
        return static_cast<std::uint32_t>(product >> 32);
    }
  }

 private:
  static constexpr std::uint64_t golden = 0x9e3779b97f4a7c15;

  static constexpr std::uint64_t rotate_left(std::uint64_t x, int k) {
    return x << k | x >> (64 - k);
  }

  /// The finaliser of splitmix64: a permutation of the 64-bit numbers.
  static constexpr std::uint64_t mix(std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
  }

  std::array<std::uint64_t, 4> state_;
};

}  // namespace strata::tales
