#include "common/data/output_directory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "common/data/shards.h"

namespace strata::data {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const std::string& what, const fs::path& path, int error) {
  throw std::runtime_error(
      fmt::format("cannot {} '{}': {}.", what, path.string(), std::strerror(error)));
}

/// May `name` be a file of a data set, whole or half written, or the mark that ./run leaves?
bool is_ours(std::string name) {
  if (name == "made-with") return true;
  if (name.ends_with(".tmp")) name.resize(name.size() - 4);
  return name == "dataset.json" || name == "tokenizer.json" || name == "tokenizer.bin" ||
         shard_index(name, "train") || shard_index(name, "val");
}

/// The first entry of a directory that is not a file of a data set.
std::optional<fs::path> foreign_entry(const fs::path& directory) {
  for (const auto& entry : fs::directory_iterator(directory)) {
    const bool file = entry.is_regular_file() && !entry.is_symlink();
    if (!file || !is_ours(entry.path().filename().string())) return entry.path();
  }
  return std::nullopt;
}

void remove_files(const fs::path& directory) {
  for (const auto& entry : fs::directory_iterator(directory)) fs::remove_all(entry.path());
}

/// A descriptor of a directory that no other process holds locked; -1 if one does.
int lock_directory(const fs::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) fail("open", path, errno);
  if (::flock(descriptor, LOCK_EX | LOCK_NB) == 0) return descriptor;
  const int error = errno;
  ::close(descriptor);
  if (error == EWOULDBLOCK) return -1;
  fail("lock", path, error);
}

/// Is `path` still the directory of `descriptor`, or has another taken its place?
bool still_there(const fs::path& path, int descriptor) {
  struct stat by_name {};
  struct stat by_descriptor {};
  return ::stat(path.c_str(), &by_name) == 0 && ::fstat(descriptor, &by_descriptor) == 0 &&
         by_name.st_dev == by_descriptor.st_dev && by_name.st_ino == by_descriptor.st_ino;
}

}  // namespace

OutputDirectory::OutputDirectory(const fs::path& out, bool force) {
  fs::path absolute = fs::absolute(out).lexically_normal();
  if (!absolute.has_filename()) absolute = absolute.parent_path();  // a slash at the end
  final_ = fs::weakly_canonical(absolute);
  temporary_ = final_.string() + ".tmp";
  if (final_ == final_.root_path())
    throw std::runtime_error("the root directory cannot be a data set.");
  if (fs::exists(final_)) {
    if (!fs::is_directory(final_))
      throw std::runtime_error(
          fmt::format("'{}' is a file, and no directory can take its place.", final_.string()));
    if (const auto foreign = foreign_entry(final_); foreign && !force)
      throw std::runtime_error(fmt::format(
          "'{}' has '{}' in it, which is no part of a data set, so it is not replaced; choose "
          "another directory, or delete it all with --force.",
          final_.string(), foreign->filename().string()));
  }
  std::error_code error;
  fs::create_directories(final_.parent_path(), error);
  if (error) fail("create", final_.parent_path(), error.value());
  lock_temporary();
}

void OutputDirectory::lock_temporary() {
  do {
    if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
    if (::mkdir(temporary_.c_str(), 0777) != 0 && errno != EEXIST)
      fail("create", temporary_, errno);
    descriptor_ = lock_directory(temporary_);
    if (descriptor_ < 0)
      throw std::runtime_error(
          fmt::format("another process is writing '{}' at this moment ('{}' is locked).",
                      final_.string(), temporary_.string()));
  } while (!still_there(temporary_, descriptor_));
  if (const auto foreign = foreign_entry(temporary_)) {
    ::close(std::exchange(descriptor_, -1));
    throw std::runtime_error(fmt::format(
        "'{}' is in the way: it should hold what an interrupted run left, but has '{}' in it.",
        temporary_.string(), foreign->filename().string()));
  }
  remove_files(temporary_);
}

OutputDirectory::~OutputDirectory() {
  if (descriptor_ < 0) return;
  std::error_code ignored;
  fs::remove_all(temporary_, ignored);
  ::close(descriptor_);
}

void OutputDirectory::commit() {
  if (::fsync(descriptor_) != 0) fail("write", temporary_, errno);
  if (::rename(temporary_.c_str(), final_.c_str()) != 0) {
    if (errno != EEXIST && errno != ENOTEMPTY) fail("create", final_, errno);
    // The old one, locked, so that nobody writes into it when it bears the name of the new one.
    const int old = lock_directory(final_);
    if (old < 0) throw std::runtime_error(fmt::format("'{}' is in use.", final_.string()));
    fs::path outdated = temporary_;
    if (::renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, final_.c_str(), RENAME_EXCHANGE) != 0) {
      // A file system that cannot exchange two names: for a moment there is no directory.
      outdated = final_.string() + ".old";
      if (::rename(final_.c_str(), outdated.c_str()) != 0 ||
          ::rename(temporary_.c_str(), final_.c_str()) != 0) {
        const int error = errno;
        ::close(old);
        fail("replace", final_, error);
      }
    }
    fs::remove_all(outdated);
    ::close(old);
  }
  ::close(std::exchange(descriptor_, -1));
  const int parent = ::open(final_.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (parent >= 0) {
    ::fsync(parent);  // so that the new name survives a power failure
    ::close(parent);
  }
}

}  // namespace strata::data
