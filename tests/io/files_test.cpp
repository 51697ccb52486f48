#include "common/io/files.h"

#include <fstream>

#include "tests/catch.h"
#include "tests/temporary_directory.h"

namespace {

using strata::io::AtomicFile;
using strata::io::MappedFile;
using strata::io::read_file;
using strata::io::write_file;
using strata::tests::contains;
using strata::tests::TemporaryDirectory;

TEST_CASE("a written file reads back byte for byte") {
  const TemporaryDirectory directory;
  const std::string contents("a\0b\xff\n", 5);
  write_file(directory / "file", contents);
  CHECK(read_file(directory / "file") == contents);
  CHECK(std::filesystem::exists(directory / "file.tmp") == false);
}

TEST_CASE("an empty file maps to an empty span") {
  const TemporaryDirectory directory;
  write_file(directory / "file", "");
  CHECK(MappedFile(directory / "file").bytes().empty());
}

TEST_CASE("an abandoned write leaves the old file whole") {
  const TemporaryDirectory directory;
  write_file(directory / "file", "old");
  {
    AtomicFile file(directory / "file");
    file.write("half of the new contents");
  }
  CHECK(read_file(directory / "file") == "old");
  CHECK_FALSE(std::filesystem::exists(directory / "file.tmp"));
}

TEST_CASE("a header can be filled in after the body") {
  const TemporaryDirectory directory;
  AtomicFile file(directory / "file");
  file.write("....body");
  file.write_at(0, "head", 4);
  CHECK(file.size() == 8);
  file.commit();
  CHECK(read_file(directory / "file") == "headbody");
}

TEST_CASE("a missing file and a directory are refused by name") {
  const TemporaryDirectory directory;
  CHECK_THROWS_WITH(MappedFile(directory / "absent"),
                    contains("absent") && contains("No such file"));
  CHECK_THROWS_WITH(MappedFile(directory.path()), contains("not a regular file"));
  CHECK_THROWS_WITH(write_file(directory / "no/file", ""), contains("cannot create"));
}

TEST_CASE("a full device is reported with the file and the reason") {
  if (!std::filesystem::exists("/dev/full")) return;
  const TemporaryDirectory directory;
  std::filesystem::create_symlink("/dev/full", directory / "file.tmp");
  CHECK_THROWS_WITH(write_file(directory / "file", "contents"),
                    contains("file") && contains("No space left"));
}

}  // namespace
