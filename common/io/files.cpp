#include "common/io/files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace strata::io {
namespace {

std::string quoted(const std::filesystem::path& path) { return "'" + path.string() + "'"; }

/// Owns a descriptor until the end of the scope.
struct Descriptor {
  int value;
  ~Descriptor() { ::close(value); }
};

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) : path_(path) {
  const int opened = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (opened < 0)
    throw std::runtime_error("cannot open " + quoted(path) + ": " + std::strerror(errno));
  const Descriptor descriptor{opened};
  struct stat status {};
  if (::fstat(descriptor.value, &status) != 0)
    throw std::runtime_error("cannot inspect " + quoted(path) + ": " + std::strerror(errno));
  if (!S_ISREG(status.st_mode)) throw std::runtime_error(quoted(path) + " is not a regular file");
  size_ = static_cast<std::size_t>(status.st_size);
  if (size_ == 0) return;
  void* address = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, descriptor.value, 0);
  if (address == MAP_FAILED)
    throw std::runtime_error("cannot map " + quoted(path) + " (" + std::to_string(size_) +
                             " bytes) into memory: " + std::strerror(errno));
  data_ = static_cast<const std::byte*>(address);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

std::string read_file(const std::filesystem::path& path) {
  return std::string(MappedFile(path).text());
}

void write_file(const std::filesystem::path& path, std::string_view contents) {
  AtomicFile file(path);
  file.write(contents);
  file.commit();
}

AtomicFile::AtomicFile(std::filesystem::path path)
    : path_(std::move(path)), temporary_(path_.string() + ".tmp") {
  descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor_ < 0)
    throw std::runtime_error("cannot create " + quoted(temporary_) + ": " + std::strerror(errno));
}

AtomicFile::~AtomicFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(temporary_.c_str());
}

void AtomicFile::fail(int error) {
  throw std::runtime_error("cannot write " + quoted(path_) + ": " + std::strerror(error));
}

void AtomicFile::write(const void* data, std::size_t size) {
  write_at(size_, data, size);
  size_ += size;
}

void AtomicFile::write_at(std::uint64_t offset, const void* data, std::size_t size) {
  const char* next = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t written = ::pwrite(descriptor_, next, size, static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail(errno);
    next += written;
    offset += static_cast<std::uint64_t>(written);
    size -= static_cast<std::size_t>(written);
  }
}

void AtomicFile::commit() {
  if (::fsync(descriptor_) != 0) fail(errno);
  if (::close(std::exchange(descriptor_, -1)) != 0) {
    const int error = errno;
    ::unlink(temporary_.c_str());
    fail(error);
  }
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) {
    const int error = errno;
    ::unlink(temporary_.c_str());
    fail(error);
  }
}

}  // namespace strata::io
