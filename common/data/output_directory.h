// A data set directory that appears all at once.
#pragma once

#include <filesystem>

namespace strata::data {

/// The directory `out` while it is being made: until `commit` everything is written to a directory
/// beside it, `out` + ".tmp", and `out` is as it was.
///
/// It replaces `out` if that is empty or holds nothing but files that strata-data (and ./run, which
/// leaves one more) writes; with `force` also a directory with other files, which are deleted then.
/// Two processes cannot write one `out` at the same time: the second is refused. What a killed
/// process left in `out`.tmp is cleared by the next.
class OutputDirectory {
 public:
  /// Throws std::runtime_error, one sentence, if `out` may not be replaced or cannot be written.
  OutputDirectory(const std::filesystem::path& out, bool force);
  /// Without `commit`, removes what was written.
  ~OutputDirectory();
  OutputDirectory(const OutputDirectory&) = delete;
  OutputDirectory& operator=(const OutputDirectory&) = delete;

  /// Where to write.
  [[nodiscard]] const std::filesystem::path& path() const { return temporary_; }
  /// Where it will be: `out`, absolute, links resolved.
  [[nodiscard]] const std::filesystem::path& final_path() const { return final_; }

  /// Puts the new directory in the place of the old one, in one step where the file system can do
  /// that, and removes the old one.
  void commit();

 private:
  void lock_temporary();

  std::filesystem::path final_;
  std::filesystem::path temporary_;
  int descriptor_ = -1;  // of temporary_, locked
};

}  // namespace strata::data
