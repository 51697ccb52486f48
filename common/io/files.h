// Files as every part of Strata reads and writes them: mapped for reading, replaced as a whole
// when written, and with errors that name the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace strata::io {

/// A file mapped read-only into memory; empty files map to an empty span.
///
/// Throws std::runtime_error with a full sentence naming the file if it cannot be opened, is not a
/// regular file, or cannot be mapped.
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  /// The whole file. Valid as long as this object lives.
  [[nodiscard]] std::span<const std::byte> bytes() const { return {data_, size_}; }
  [[nodiscard]] std::string_view text() const {
    return {reinterpret_cast<const char*>(data_), size_};
  }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

/// Reads a whole file into a string. Throws std::runtime_error naming the file.
[[nodiscard]] std::string read_file(const std::filesystem::path& path);

/// Replaces `path` by `contents` so that a crash or a full disk at any moment leaves either the old
/// file or the new one, whole: writes `path` + ".tmp", syncs it, renames it over `path`.
/// Throws std::runtime_error naming the file and the reason; the temporary file is removed.
void write_file(const std::filesystem::path& path, std::string_view contents);

/// A file that is written piece by piece and appears under its name only on `commit`.
///
/// Until then it is `path` + ".tmp"; destruction without `commit` removes it. Every member throws
/// std::runtime_error naming the file and the reason (disk full, permission, ...).
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  /// Appends `size` bytes.
  void write(const void* data, std::size_t size);
  void write(std::string_view text) { write(text.data(), text.size()); }
  /// Overwrites `size` bytes at `offset`, for headers that are known only at the end.
  void write_at(std::uint64_t offset, const void* data, std::size_t size);
  /// Bytes appended so far.
  [[nodiscard]] std::uint64_t size() const { return size_; }
  /// Flushes, syncs and renames.
  void commit();

 private:
  [[noreturn]] void fail(int error);

  std::filesystem::path path_;
  std::filesystem::path temporary_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
};

}  // namespace strata::io
