// The safetensors format, read and written: checkpoints, traces and fixtures are such files.
//
// A file is: the header's length (8 bytes, little endian) | the header, a JSON object | the data.
// The header maps each tensor's name to its dtype, its shape and the range of bytes that it occupies
// in the data; the key "__metadata__" holds strings. The ranges tile the data without holes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/io/files.h"

namespace strata::io {

/// The element types of the format, named as the format names them ("F32" is `Dtype::f32`).
enum class Dtype {
  boolean,
  u8,
  i8,
  f8_e5m2,
  f8_e4m3,
  i16,
  u16,
  f16,
  bf16,
  i32,
  u32,
  f32,
  f64,
  i64,
  u64
};

/// The format's name of a dtype, for example "BF16".
[[nodiscard]] std::string_view dtype_name(Dtype dtype);
/// Bytes of one element.
[[nodiscard]] std::size_t dtype_size(Dtype dtype);

/// The dtype that a C++ element type is stored as.
template <typename T>
struct DtypeOf;
template <>
struct DtypeOf<float> {
  static constexpr Dtype value = Dtype::f32;
};
template <>
struct DtypeOf<double> {
  static constexpr Dtype value = Dtype::f64;
};
template <>
struct DtypeOf<std::uint8_t> {
  static constexpr Dtype value = Dtype::u8;
};
template <>
struct DtypeOf<std::uint16_t> {
  static constexpr Dtype value = Dtype::u16;
};
template <>
struct DtypeOf<std::int32_t> {
  static constexpr Dtype value = Dtype::i32;
};
template <>
struct DtypeOf<std::int64_t> {
  static constexpr Dtype value = Dtype::i64;
};

using Shape = std::vector<std::uint64_t>;

/// "[2, 3]"; "[]" is a scalar.
[[nodiscard]] std::string to_string(const Shape& shape);

/// One tensor of an open file.
struct Tensor {
  std::string name;
  Dtype dtype;
  Shape shape;
  std::uint64_t elements;            ///< product of the shape
  std::span<const std::byte> bytes;  ///< inside the mapped file; not necessarily aligned
};

/// A safetensors file, mapped into memory and checked completely when opened.
///
/// The constructor throws std::runtime_error with one full sentence naming the file (and the tensor)
/// if anything about it is not as the format demands: a length that does not fit the file, a header
/// that is not the JSON expected, an unknown dtype, a shape whose product overflows 64 bits or does
/// not fit its range, ranges that overlap or leave holes, doubled names, trailing bytes.
/// After that no access can read outside the file.
class Safetensors {
 public:
  explicit Safetensors(const std::filesystem::path& path);

  [[nodiscard]] const std::filesystem::path& path() const { return file_.path(); }
  /// All tensors in the order of their names.
  [[nodiscard]] const std::vector<Tensor>& tensors() const { return tensors_; }
  [[nodiscard]] const std::map<std::string, std::string>& metadata() const { return metadata_; }

  /// The tensor of that name, or null.
  [[nodiscard]] const Tensor* find(std::string_view name) const;
  /// The tensor of that name; throws naming file and tensor if there is none.
  [[nodiscard]] const Tensor& at(std::string_view name) const;
  /// As above, and throws unless it has this dtype and shape.
  [[nodiscard]] const Tensor& at(std::string_view name, Dtype dtype, const Shape& shape) const;

  /// The elements of a tensor in row-major order, copied. Throws unless its dtype is T's.
  template <typename T>
  [[nodiscard]] std::vector<T> read(std::string_view name) const {
    const Tensor& tensor = typed(name, DtypeOf<T>::value);
    std::vector<T> values(tensor.elements);
    copy(tensor, values.data());
    return values;
  }

  /// The elements of a tensor in place, without a copy. Throws unless its dtype is T's; throws too
  /// if the file keeps the tensor at an address that is not a multiple of its element size, which
  /// the format permits (older writers did not pad the header): `read` copes with that.
  template <typename T>
  [[nodiscard]] std::span<const T> view(std::string_view name) const {
    const Tensor& tensor = typed(name, DtypeOf<T>::value);
    require_aligned(tensor);
    return {reinterpret_cast<const T*>(tensor.bytes.data()), tensor.elements};
  }

  /// The elements of a tensor of any floating or integer dtype, each converted to double (exactly,
  /// but for 64-bit integers beyond 2^53). Throws for the 8-bit floating dtypes.
  [[nodiscard]] std::vector<double> read_doubles(std::string_view name) const;
  /// As above, but only `count` elements from number `first` on; throws if there are not as many.
  [[nodiscard]] std::vector<double> read_doubles(std::string_view name, std::uint64_t first,
                                                 std::uint64_t count) const;

 private:
  [[nodiscard]] const Tensor& typed(std::string_view name, Dtype dtype) const;
  void require_aligned(const Tensor& tensor) const;
  static void copy(const Tensor& tensor, void* destination);

  MappedFile file_;
  std::vector<Tensor> tensors_;
  std::map<std::string, std::string> metadata_;
};

/// What a tensor is, before it has contents.
struct TensorSpec {
  std::string name;
  Dtype dtype = Dtype::f32;
  Shape shape;
};

/// Writes a safetensors file without holding it in memory: all tensors are declared first, then
/// their bytes are appended, each tensor in as many pieces as is convenient and in any order.
///
/// The file appears under its name only on `commit`, whole (see AtomicFile). Every tensor is aligned
/// to its element size, and the header is padded to a multiple of 8 bytes, so that readers can map
/// it. Throws std::runtime_error naming file and tensor for doubled names, sizes that overflow,
/// more bytes than declared, and (in `commit`) fewer.
class SafetensorsWriter {
 public:
  SafetensorsWriter(const std::filesystem::path& path, std::vector<TensorSpec> specs,
                    const std::map<std::string, std::string>& metadata = {});

  /// Appends elements to the named tensor; T must be the declared dtype's.
  template <typename T>
  void append(std::string_view name, std::span<const T> values) {
    append_bytes(name, DtypeOf<T>::value, std::as_bytes(values));
  }
  template <typename T>
  void append(std::string_view name, const std::vector<T>& values) {
    append(name, std::span<const T>(values));
  }
  /// Appends raw bytes; `dtype` must be the declared one.
  void append_bytes(std::string_view name, Dtype dtype, std::span<const std::byte> bytes);

  /// Checks that every tensor is complete, then syncs the file and puts it in its place.
  void commit();

 private:
  struct Slot {
    Dtype dtype;
    std::uint64_t next;  ///< where in the file the next byte goes
    std::uint64_t end;
  };

  [[noreturn]] void fail(std::string_view tensor, const std::string& what) const;

  std::filesystem::path path_;
  AtomicFile file_;
  std::map<std::string, Slot, std::less<>> slots_;
};

}  // namespace strata::io
