// Token shards: llm.c's file format, read through a memory map and written atomically.
//
//   byte 0     int32  20240520, the format's mark
//   byte 4     int32  1, its version
//   byte 8     uint32 n, the number of tokens (llm.c reads an int32; up to 2^31 - 1 both agree)
//   byte 12    253 unused int32, zero
//   byte 1024  n x uint16, the tokens; the file ends here
//
// All numbers are little-endian. A shard of 2^32 - 1 tokens has 8 GiB, so every position here and
// every offset is 64 bits wide.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/io/files.h"

namespace strata::data {

inline constexpr std::uint32_t shard_magic = 20240520;
inline constexpr std::uint32_t shard_version = 1;
inline constexpr std::uint64_t shard_header_bytes = 1024;
/// What the header's 32-bit count can say.
inline constexpr std::uint64_t max_shard_tokens = 0xffff'ffff;
/// Tokens are 16 bits wide, so a larger vocabulary cannot be stored.
inline constexpr std::uint32_t max_shard_vocabulary = 65536;
/// Where our writer starts a new shard unless told otherwise: 200 MB, llm.c's habit.
inline constexpr std::uint64_t default_shard_tokens = 100'000'000;

/// One shard, mapped into memory: opening it reads only the header, whatever its size.
///
/// The file must not be changed while it is open. (`strata-data` never does that: it replaces a
/// data set's directory as a whole, and a running training keeps the old files.)
class ShardReader {
 public:
  /// Checks the header and the file's size. Throws std::runtime_error, one sentence that names the
  /// file and says what it is if it is no shard: truncated, longer than it should be, empty, or
  /// another kind of file.
  explicit ShardReader(const std::filesystem::path& path);

  /// Number of tokens; at least 1.
  [[nodiscard]] std::uint64_t size() const { return size_; }
  [[nodiscard]] const std::filesystem::path& path() const { return file_.path(); }

  /// The tokens first .. first + count - 1, valid as long as this object lives.
  /// Throws std::out_of_range if they are not all there.
  [[nodiscard]] std::span<const std::uint16_t> tokens(std::uint64_t first,
                                                      std::uint64_t count) const;

  /// Throws std::runtime_error naming the shard, the position, the token and the vocabulary if one
  /// of the tokens first .. first + count - 1 is not under `vocab_size`. It reads just these
  /// tokens, so the loader checks every window that it deals, and only those: a scan of a whole
  /// data set at every start would cost minutes. `strata-data info` scans everything.
  void check(std::uint64_t first, std::uint64_t count, std::uint32_t vocab_size) const;

 private:
  io::MappedFile file_;
  std::uint64_t size_ = 0;
};

/// Writes one split as DIRECTORY/PREFIX_000000.bin, DIRECTORY/PREFIX_000001.bin, ...
///
/// Each shard but the last has `tokens_per_shard` tokens, and each appears under its name only when
/// it is whole. What was begun and not finished is removed by the destructor.
class ShardWriter {
 public:
  /// Throws std::runtime_error if tokens_per_shard is not in 1 .. max_shard_tokens or vocab_size not
  /// in 1 .. max_shard_vocabulary.
  ShardWriter(std::filesystem::path directory, std::string prefix, std::uint32_t vocab_size,
              std::uint64_t tokens_per_shard = default_shard_tokens);
  ~ShardWriter();
  ShardWriter(const ShardWriter&) = delete;
  ShardWriter& operator=(const ShardWriter&) = delete;

  /// Appends tokens. Throws std::runtime_error if one is not under vocab_size or a file cannot be
  /// written.
  void append(std::span<const std::uint32_t> tokens);

  /// Completes the last shard. Without it the last shard is lost.
  void finish();

  /// Tokens appended so far, in all shards.
  [[nodiscard]] std::uint64_t tokens() const { return tokens_; }
  /// Shards begun so far.
  [[nodiscard]] std::uint64_t shards() const { return shards_; }

 private:
  void begin_shard();
  void end_shard();

  std::filesystem::path directory_;
  std::string prefix_;
  std::uint32_t vocab_size_;
  std::uint64_t tokens_per_shard_;
  std::uint64_t tokens_ = 0;
  std::uint64_t shards_ = 0;
  std::uint64_t shard_tokens_ = 0;        // in the shard being written
  std::unique_ptr<io::AtomicFile> file_;  // null between shards
  std::vector<std::uint16_t> buffer_;     // tokens on their way to file_
};

/// The name of a split's shard, for example train_000003.bin.
[[nodiscard]] std::string shard_name(const std::string& prefix, std::uint64_t index);
/// The other way round: 3 for train_000003.bin, nothing for a name that is not one of the split's.
[[nodiscard]] std::optional<std::uint64_t> shard_index(const std::string& name,
                                                       const std::string& prefix);

}  // namespace strata::data
