#include "common/io/safetensors.h"

#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <random>

#include "common/io/files.h"
#include "tests/catch.h"
#include "tests/temporary_directory.h"

namespace {

using strata::io::Dtype;
using strata::io::read_file;
using strata::io::Safetensors;
using strata::io::SafetensorsWriter;
using strata::io::Shape;
using strata::io::write_file;
using strata::tests::contains;
using strata::tests::TemporaryDirectory;

const std::filesystem::path python_file =
    std::filesystem::path(STRATA_SOURCE_DIR) / "tests/fixtures/safetensors/python.safetensors";

/// The bytes of a file with this header, its true length before it and `data` behind it.
std::string file_of(const std::string& header, const std::string& data = "") {
  const std::uint64_t length = header.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes + header + data;
}

/// What the reader says about these bytes in a file; empty if it accepts them.
std::string complaint(const TemporaryDirectory& directory, const std::string& bytes) {
  std::ofstream(directory / "file", std::ios::binary) << bytes;
  try {
    const Safetensors file(directory / "file");
    return "";
  } catch (const std::runtime_error& error) {
    return error.what();
  }
}

/// A valid file of two tensors, for damaging.
std::string valid_file(const TemporaryDirectory& directory) {
  SafetensorsWriter writer(directory / "valid", {{"a", Dtype::f32, {2, 3}}, {"b", Dtype::i32, {4}}},
                           {{"key", "value"}});
  writer.append("a", std::vector<float>{1, 2, 3, 4, 5, 6});
  writer.append("b", std::vector<std::int32_t>{7, 8, 9, 10});
  writer.commit();
  return read_file(directory / "valid");
}

TEST_CASE("written tensors and metadata read back bit for bit") {
  const TemporaryDirectory directory;
  const std::vector<float> floats{1.5F, -0.0F, 1e-42F, std::numeric_limits<float>::infinity()};
  const std::vector<double> doubles{1.0 / 3};
  const std::vector<std::int64_t> integers{std::int64_t{1} << 62};
  SafetensorsWriter writer(directory / "file",
                           {{"z.bytes", Dtype::u8, {3}},
                            {"weights", Dtype::f32, {2, 2}},
                            {"scalar", Dtype::f64, {}},
                            {"empty", Dtype::f32, {0, 7}},
                            {"integers", Dtype::i64, {1}}},
                           {{"stage", "01"}, {"quote", "\"\\\n\xc3\xbc"}});
  writer.append("integers", integers);
  writer.append("weights", std::span<const float>(floats).first(3));
  writer.append("z.bytes", std::vector<std::uint8_t>{1, 2, 255});
  writer.append("scalar", doubles);
  writer.append("weights", std::span<const float>(floats).last(1));
  writer.commit();

  const Safetensors file(directory / "file");
  CHECK(file.tensors().size() == 5);
  CHECK(file.metadata().at("quote") == "\"\\\n\xc3\xbc");
  CHECK(std::memcmp(file.view<float>("weights").data(), floats.data(), 16) == 0);
  CHECK(file.read<double>("scalar") == doubles);
  CHECK(file.at("scalar").shape.empty());
  CHECK(file.read<std::int64_t>("integers") == integers);
  CHECK(file.view<std::uint8_t>("z.bytes")[2] == 255);
  CHECK(file.read<float>("empty").empty());
  CHECK(file.at("weights", Dtype::f32, {2, 2}).elements == 4);
  CHECK(file.find("absent") == nullptr);
}

TEST_CASE("a file without tensors is a file") {
  const TemporaryDirectory directory;
  SafetensorsWriter(directory / "file", {}).commit();
  CHECK(Safetensors(directory / "file").tensors().empty());
}

TEST_CASE("every dtype of a file that Python wrote has the values that Python gave it") {
  const Safetensors file(python_file);
  CHECK(file.metadata().at("umlaut") == "\xc3\xbc");
  CHECK(file.read<float>("f32") == std::vector<float>{1.5F, -2.0F, 3.25F, 0.0F, -0.0F, 1e-40F});
  CHECK(file.at("f32").shape == Shape{2, 3});
  CHECK(file.read<double>("f64") == std::vector<double>{1.0 / 3});
  CHECK(file.read_doubles("f16") ==
        std::vector<double>{1, -0.5, 65504, 0x1p-24, std::numeric_limits<double>::infinity()});
  CHECK(file.read_doubles("bf16")[1] == -3.140625);
  CHECK(file.read<std::int64_t>("i64") == std::vector<std::int64_t>{std::int64_t{1} << 62, -1});
  CHECK(file.read_doubles("i32") == std::vector<double>{-0x1p31, 0x1p31 - 1});
  CHECK(file.read_doubles("i16") == std::vector<double>{-300});
  CHECK(file.read_doubles("i8") == std::vector<double>{-128, 127});
  CHECK(file.read_doubles("u8") == std::vector<double>{0, 255, 7});
  CHECK(file.read_doubles("bool") == std::vector<double>{1, 0});
  CHECK(file.read<float>("scalar") == std::vector<float>{2.5F});
  CHECK(file.at("empty").shape == Shape{0, 4});
}

TEST_CASE("half precision converts exactly, NaN and subnormal numbers included") {
  const TemporaryDirectory directory;
  const std::string header = R"({"h":{"dtype":"F16","shape":[4],"data_offsets":[0,8]}})";
  write_file(directory / "file",
             file_of(header, std::string("\x01\x7e\xff\x03\x00\xfc\x00\x80", 8)));
  const std::vector<double> values = Safetensors(directory / "file").read_doubles("h");
  CHECK(std::isnan(values[0]));
  CHECK(values[1] == 1023 * 0x1p-24);
  CHECK(values[2] == -std::numeric_limits<double>::infinity());
  CHECK(std::signbit(values[3]));
}

TEST_CASE("a tensor at an odd address is copied, and not handed out in place") {
  const TemporaryDirectory directory;
  std::string header = R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  if (header.size() % 2 == 0) header += ' ';
  const float value = 2.5F;
  write_file(directory / "file",
             file_of(header, std::string(reinterpret_cast<const char*>(&value), 4)));
  const Safetensors file(directory / "file");
  CHECK(file.read<float>("a") == std::vector<float>{2.5F});
  CHECK(file.read_doubles("a") == std::vector<double>{2.5});
  CHECK_THROWS_WITH(file.view<float>("a"),
                    contains("the tensor 'a'") && contains("has to be copied"));
}

TEST_CASE("asking for the wrong tensor, dtype or shape names file and tensor") {
  const TemporaryDirectory directory;
  valid_file(directory);
  const Safetensors file(directory / "valid");
  CHECK(file.read_doubles("b", 1, 2) == std::vector<double>{8, 9});
  CHECK_THROWS_WITH(file.read_doubles("b", 3, 2),
                    contains("'b'") && contains("2 from number 3 on cannot be read"));
  CHECK_THROWS_WITH(file.read_doubles("b", 1, ~std::uint64_t{0}), contains("cannot be read"));
  CHECK_THROWS_WITH(file.at("c"), contains("valid' has no tensor 'c'"));
  CHECK_THROWS_WITH(file.view<double>("a"), contains("'a'") && contains("F32 instead of F64"));
  CHECK_THROWS_WITH(file.at("a", Dtype::f32, {3, 2}),
                    contains("has the shape [2, 3] instead of [3, 2]"));
}

TEST_CASE("a damaged, foreign or hostile file is refused with one sentence that says why") {
  const TemporaryDirectory directory;
  const std::string valid = valid_file(directory);
  REQUIRE(complaint(directory, valid) == "");
  const auto tensor = [](const std::string& fields) { return "{\"a\":{" + fields + "}}"; };
  const std::string f32 = R"("dtype":"F32",)";
  const std::string four(4, 'x');
  const std::string eight(8, 'x');
  const std::string deep(100000, '[');
  std::string long_name = "{\"";
  long_name.append(5000, 'n').append("\":1}");
  struct Case {
    std::string bytes;
    std::string sentence;
  };
  const Case cases[] = {
      {"", "is too short: it has 0 bytes"},
      {"1234567", "is too short: it has 7 bytes"},
      {std::string(8, '\0'), "is not valid JSON"},
      {std::string(8, '\xff'), "states a header of 18446744073709551615 bytes"},
      {std::string("GGUF\x03\0\0\0 and so on", 18), "states a header of "},
      {std::string("PK\x03\x04\0\0\0\0 a zip file", 19), "states a header of "},
      {valid.substr(0, 40), "bytes but has only 32 bytes after its length"},
      {valid.substr(0, valid.size() - 1), "but the file has only 39 bytes of data"},
      {valid + "x", "has 1 bytes after the end of its last tensor"},
      {file_of("[]"), "has a header that is an array instead of an object"},
      {file_of("7"), "has a header that is a number instead of an object"},
      {file_of("{} {}"), "is not valid JSON"},
      {file_of(deep), "has a header that is an array instead of an object"},
      {file_of("{\"a\":" + deep), "has an array as the description of the tensor 'a'"},
      {file_of("{\"a\xff\":{}}"), "is not valid JSON"},
      {file_of("{\"a\":null}"), "has null as the description of the tensor 'a'"},
      {file_of(R"({"a":{},"a":{}})"), "has no dtype"},
      {file_of(tensor(f32 + R"("shape":[1])")), "has no data_offsets"},
      {file_of(tensor(f32 + R"("data_offsets":[0,4])"), four), "has no shape"},
      {file_of(tensor(R"("dtype":"F33","shape":[1],"data_offsets":[0,4])"), four),
       "has the dtype 'F33', which is not a known one"},
      {file_of(tensor(R"("dtype":32,"shape":[1],"data_offsets":[0,4])"), four),
       "is described with a number where the format has none"},
      {file_of(tensor(f32 + R"("shape":[-1],"data_offsets":[0,4])"), four),
       "has a negative number in its shape"},
      {file_of(tensor(f32 + R"("shape":[1.5],"data_offsets":[0,4])"), four),
       "has the number '1.5' in its shape"},
      {file_of(tensor(f32 + R"("shape":[18446744073709551616],"data_offsets":[0,4])"), four),
       "has the number '18446744073709551616' in its shape"},
      {file_of(tensor(f32 + R"("shape":[[1]],"data_offsets":[0,4])"), four),
       "is described with an array where the format has none"},
      {file_of(tensor(f32 + R"("shape":[1],"data_offsets":[0])"), four),
       "has 1 data_offsets instead of two"},
      {file_of(tensor(f32 + R"("shape":[1],"data_offsets":[0,4,4])"), four),
       "has 3 data_offsets instead of two"},
      {file_of(tensor(f32 + R"("shape":[1],"data_offsets":[4,0])"), four),
       "ends at byte 0, before its beginning at 4"},
      {file_of(tensor(f32 + R"("shape":[1],"data_offsets":[0,8])"), eight),
       "takes 4 bytes, but its data_offsets hold 8"},
      {file_of(tensor(f32 + R"("shape":[2],"data_offsets":[0,8])"), four),
       "ends at byte 8 of the data, but the file has only 4 bytes of data"},
      {file_of(tensor(f32 + R"("shape":[4294967296,4294967296],"data_offsets":[0,0])")),
       "has the shape [4294967296, 4294967296], whose size does not fit 64 bits"},
      {file_of(tensor(f32 + R"("shape":[4611686018427387904],"data_offsets":[0,0])")),
       "whose size does not fit 64 bits"},
      {file_of(tensor(f32 + R"("shape":[1],"shape":[1],"data_offsets":[0,4])"), four),
       "has the field 'shape' twice"},
      {file_of(tensor(f32 + R"("shape":[1],"data_offsets":[0,4],"strides":[1])"), four),
       "has the field 'strides', which the format does not know"},
      {file_of(tensor(f32 + R"("shape":[1],"data_offsets":[4,8])"), eight),
       "begins at byte 4 and leaves a hole of 4 bytes before it"},
      {file_of(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
               R"("b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
               four),
       "begins at byte 0, inside the tensor"},
      {file_of(R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},)"
               R"("b":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})",
               four),
       "the tensor 'b'"},
      {file_of(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
               R"("a":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})",
               four),
       "names the tensor 'a' twice"},
      {file_of(R"({"__metadata__":{"k":1}})"), "has a number as its metadata 'k'"},
      {file_of(R"({"__metadata__":{"k":{}}})"), "has an object as its metadata 'k'"},
      {file_of(R"({"__metadata__":{"k":"1","k":"2"}})"), "names the metadata key 'k' twice"},
      {file_of(R"({"__metadata__":[]})"), "has an array as the description of the tensor"},
      {file_of(long_name), "nnn...'"},
  };
  for (const Case& damaged : cases) {
    const std::string said = complaint(directory, damaged.bytes);
    INFO("expected: " << damaged.sentence);
    CHECK_THAT(said, contains("safetensors file '") && contains((directory / "file").string()) &&
                         contains(damaged.sentence));
    CHECK(said.find('\n') == std::string::npos);
    CHECK(said.size() < 400 + (directory / "file").string().size());
  }
}

TEST_CASE("a missing file and a directory are refused") {
  const TemporaryDirectory directory;
  CHECK_THROWS_WITH(Safetensors(directory / "absent"), contains("absent"));
  CHECK_THROWS_WITH(Safetensors(directory.path()), contains("not a regular file"));
}

TEST_CASE("the writer refuses what would not be a file of the format") {
  const TemporaryDirectory directory;
  const auto path = directory / "file";
  const std::vector<float> one{1};
  CHECK_THROWS_WITH(SafetensorsWriter(path, {{"a", Dtype::f32, {1}}, {"a", Dtype::f32, {1}}}),
                    contains("'a'") && contains("is declared twice"));
  CHECK_THROWS_WITH(SafetensorsWriter(path, {{"a", Dtype::f32, {1ULL << 62}}}),
                    contains("does not fit 64 bits"));
  CHECK_THROWS_WITH(SafetensorsWriter(path, {{"__metadata__", Dtype::f32, {1}}}),
                    contains("reserves"));
  SafetensorsWriter writer(path, {{"a", Dtype::f32, {2}}});
  CHECK_THROWS_WITH(writer.append("b", one), contains("'b'") && contains("was not declared"));
  CHECK_THROWS_WITH(writer.append("a", std::vector<double>{1}),
                    contains("was declared as F32 and is written as F64"));
  writer.append("a", one);
  CHECK_THROWS_WITH(writer.commit(), contains("'a'") && contains("is incomplete: 4 bytes"));
  writer.append("a", one);
  CHECK_THROWS_WITH(writer.append("a", one), contains("4 bytes more than were declared"));
  writer.commit();
  CHECK(Safetensors(path).view<float>("a").size() == 2);
}

TEST_CASE("a writer that is given up leaves the old file as it was") {
  const TemporaryDirectory directory;
  const std::string valid = valid_file(directory);
  { SafetensorsWriter writer(directory / "valid", {{"a", Dtype::f32, {1}}}); }
  CHECK(read_file(directory / "valid") == valid);
  CHECK_FALSE(std::filesystem::exists(directory / "valid.tmp"));
}

/// Damages valid files at random. Each result must either be refused with a sentence or be readable
/// to its last byte; the sanitizers watch that nothing else happens. Returns how many were refused.
int fuzz(int rounds, std::uint32_t seed) {
  const TemporaryDirectory directory;
  const std::string seeds[] = {valid_file(directory), read_file(python_file)};
  const std::string tokens = "{}[]\",:0123456789.-eF32IU8 \\u\x01\xff";
  std::mt19937 engine(seed);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(engine()) % n; };
  int refused = 0;
  for (int round = 0; round < rounds; ++round) {
    std::string bytes = seeds[below(2)];
    for (std::size_t change = 1 + below(3); change > 0 && !bytes.empty(); --change) {
      const std::size_t at = below(bytes.size());
      const std::size_t near = below(std::min<std::size_t>(bytes.size(), 300));
      switch (below(6)) {
        case 0:
          bytes[at] = static_cast<char>(engine());
          break;
        case 1:
          bytes[near] = tokens[below(tokens.size())];
          break;
        case 2:
          bytes.erase(near, 1 + below(4));
          break;
        case 3:
          bytes.insert(near, 1, tokens[below(tokens.size())]);
          break;
        case 4:
          bytes.resize(at);
          break;
        default:
          bytes.insert(near, bytes.substr(at, below(40)));
          break;
      }
    }
    // Most changes of length would only trip the first check: mend the header's length half the time.
    if (bytes.size() > 8 && below(2) == 0) {
      const std::size_t end = bytes.rfind('}', std::min<std::size_t>(bytes.size() - 1, 900));
      const std::uint64_t length = end == std::string::npos || end < 8 ? 0 : end + 1 - 8;
      std::memcpy(bytes.data(), &length, 8);
    }
    std::ofstream(directory / "file", std::ios::binary) << bytes;
    try {
      const Safetensors file(directory / "file");
      for (const auto& tensor : file.tensors())
        if (tensor.dtype != Dtype::f8_e4m3 && tensor.dtype != Dtype::f8_e5m2)
          CHECK(file.read_doubles(tensor.name).size() == tensor.elements);
    } catch (const std::runtime_error& error) {
      ++refused;
      if (std::string(error.what()).find((directory / "file").string()) == std::string::npos)
        FAIL("a message without the file's name: " << error.what());
    }
  }
  return refused;
}

TEST_CASE("random damage is refused or harmless") {
  const int refused = fuzz(3000, 1);
  CHECK(refused > 1000);
  CHECK(refused < 3000);
}

TEST_CASE("random damage is refused or harmless, for long", "[.fuzz]") {
  CHECK(fuzz(200000, std::random_device{}()) > 0);
}

}  // namespace
