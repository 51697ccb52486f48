#include "common/io/safetensors.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "common/io/safetensors_header.h"

namespace strata::io {
namespace {

using detail::HeaderEntry;
using detail::shown;

static_assert(std::endian::native == std::endian::little,
              "safetensors files are little endian, and we map them as they are");

/// The reference implementation refuses longer headers, and so do we.
constexpr std::uint64_t longest_header = 100'000'000;
constexpr std::uint64_t length_bytes = 8;

[[noreturn]] void fail(const std::filesystem::path& path, const std::string& what) {
  throw std::runtime_error("the safetensors file '" + path.string() + "' " + what);
}

[[noreturn]] void fail(const std::filesystem::path& path, std::string_view tensor,
                       const std::string& what) {
  throw std::runtime_error("the tensor " + shown(tensor) + " of the safetensors file '" +
                           path.string() + "' " + what);
}

/// Sets `product` to elements times element size; false if that does not fit 64 bits.
bool byte_count(const Shape& shape, Dtype dtype, std::uint64_t& elements, std::uint64_t& bytes) {
  elements = 1;
  // A zero makes the product zero whatever stands beside it.
  if (std::find(shape.begin(), shape.end(), 0U) != shape.end()) elements = 0;
  if (elements != 0)
    for (const std::uint64_t extent : shape)
      if (__builtin_mul_overflow(elements, extent, &elements)) return false;
  return !__builtin_mul_overflow(elements, static_cast<std::uint64_t>(dtype_size(dtype)), &bytes);
}

/// The bytes of the header, after its length has been checked against the file's.
std::string_view header_text(const MappedFile& file) {
  const std::string_view text = file.text();
  if (text.size() < length_bytes)
    fail(file.path(), "is too short: it has " + std::to_string(text.size()) +
                          " bytes, and the length of the header alone takes 8");
  std::uint64_t length = 0;
  std::memcpy(&length, text.data(), length_bytes);
  if (length > longest_header)
    fail(file.path(), "states a header of " + std::to_string(length) +
                          " bytes; the format allows at most " + std::to_string(longest_header) +
                          ", so it is probably not a safetensors file");
  if (length > text.size() - length_bytes)
    fail(file.path(), "states a header of " + std::to_string(length) + " bytes but has only " +
                          std::to_string(text.size() - length_bytes) + " bytes after its length");
  return text.substr(length_bytes, length);
}

/// Checks one entry's shape and range by themselves.
Tensor checked_tensor(const MappedFile& file, HeaderEntry&& entry,
                      std::span<const std::byte> data) {
  Tensor tensor{.name = std::move(entry.name),
                .dtype = entry.dtype,
                .shape = std::move(entry.shape),
                .elements = 0,
                .bytes = {}};
  std::uint64_t bytes = 0;
  if (!byte_count(tensor.shape, tensor.dtype, tensor.elements, bytes))
    fail(file.path(), tensor.name,
         "has the shape " + to_string(tensor.shape) + ", whose size does not fit 64 bits");
  if (entry.begin > entry.end)
    fail(file.path(), tensor.name,
         "ends at byte " + std::to_string(entry.end) + ", before its beginning at " +
             std::to_string(entry.begin));
  if (entry.end > data.size())
    fail(file.path(), tensor.name,
         "ends at byte " + std::to_string(entry.end) + " of the data, but the file has only " +
             std::to_string(data.size()) + " bytes of data");
  if (bytes != entry.end - entry.begin)
    fail(file.path(), tensor.name,
         "has the shape " + to_string(tensor.shape) + " and the dtype " +
             std::string(dtype_name(tensor.dtype)) + ", which takes " + std::to_string(bytes) +
             " bytes, but its data_offsets hold " + std::to_string(entry.end - entry.begin));
  tensor.bytes = data.subspan(entry.begin, bytes);
  return tensor;
}

/// Checks that the ranges, in the order of their positions, tile the data.
void check_tiling(const MappedFile& file, const std::vector<HeaderEntry>& entries,
                  std::uint64_t data_size) {
  std::vector<const HeaderEntry*> order;
  for (const HeaderEntry& entry : entries) order.push_back(&entry);
  std::sort(order.begin(), order.end(), [](const HeaderEntry* a, const HeaderEntry* b) {
    return std::pair(a->begin, a->end) < std::pair(b->begin, b->end);
  });
  std::uint64_t position = 0;
  std::string_view before = "the header";
  for (const HeaderEntry* entry : order) {
    if (entry->begin < position)
      fail(file.path(), entry->name,
           "begins at byte " + std::to_string(entry->begin) + ", inside the tensor " +
               shown(before));
    if (entry->begin > position)
      fail(file.path(), entry->name,
           "begins at byte " + std::to_string(entry->begin) + " and leaves a hole of " +
               std::to_string(entry->begin - position) + " bytes before it");
    position = entry->end;
    before = entry->name;
  }
  if (position != data_size)
    fail(file.path(),
         "has " + std::to_string(data_size - position) + " bytes after the end of its last tensor");
}

float half_to_float(std::uint16_t bits) {
  const int sign = (bits & 0x8000U) != 0U ? -1 : 1;
  const int exponent = (bits >> 10) & 31;
  const int fraction = bits & 1023;
  if (exponent == 31)
    return fraction != 0 ? std::numeric_limits<float>::quiet_NaN()
                         : static_cast<float>(sign) * std::numeric_limits<float>::infinity();
  const int significand = exponent == 0 ? fraction : fraction + 1024;
  return static_cast<float>(sign) *
         std::ldexp(static_cast<float>(significand), std::max(exponent, 1) - 25);
}

/// Converts each element with `convert`, reading it without regard to alignment.
template <typename T, typename Convert>
std::vector<double> converted(std::span<const std::byte> bytes, Convert convert) {
  std::vector<double> values(bytes.size() / sizeof(T));
  for (std::size_t i = 0; i < values.size(); ++i) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    values[i] = static_cast<double>(convert(value));
  }
  return values;
}

}  // namespace

std::string to_string(const Shape& shape) {
  constexpr std::size_t most = 16;
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size() && i < most; ++i)
    text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  return text + (shape.size() > most ? ", ...]" : "]");
}

Safetensors::Safetensors(const std::filesystem::path& path) : file_(path) {
  const std::string_view text = header_text(file_);
  detail::Header header = detail::parse_header(path, text);
  metadata_ = std::move(header.metadata);
  const std::span<const std::byte> data = file_.bytes().subspan(length_bytes + text.size());
  // Ranges are checked one by one first, so that the tiling is computed on sane numbers.
  const std::vector<HeaderEntry> ranges = header.entries;
  tensors_.reserve(header.entries.size());
  for (HeaderEntry& entry : header.entries)
    tensors_.push_back(checked_tensor(file_, std::move(entry), data));
  check_tiling(file_, ranges, data.size());
  std::sort(tensors_.begin(), tensors_.end(),
            [](const Tensor& a, const Tensor& b) { return a.name < b.name; });
}

const Tensor* Safetensors::find(std::string_view name) const {
  const auto found = std::lower_bound(
      tensors_.begin(), tensors_.end(), name,
      [](const Tensor& tensor, std::string_view wanted) { return tensor.name < wanted; });
  return found != tensors_.end() && found->name == name ? &*found : nullptr;
}

const Tensor& Safetensors::at(std::string_view name) const {
  const Tensor* tensor = find(name);
  if (tensor == nullptr) fail(path(), "has no tensor " + shown(name));
  return *tensor;
}

const Tensor& Safetensors::at(std::string_view name, Dtype dtype, const Shape& shape) const {
  const Tensor& tensor = typed(name, dtype);
  if (tensor.shape != shape)
    fail(path(), name,
         "has the shape " + to_string(tensor.shape) + " instead of " + to_string(shape));
  return tensor;
}

const Tensor& Safetensors::typed(std::string_view name, Dtype dtype) const {
  const Tensor& tensor = at(name);
  if (tensor.dtype != dtype)
    fail(path(), name,
         "has the dtype " + std::string(dtype_name(tensor.dtype)) + " instead of " +
             std::string(dtype_name(dtype)));
  return tensor;
}

void Safetensors::require_aligned(const Tensor& tensor) const {
  const auto address = reinterpret_cast<std::uintptr_t>(tensor.bytes.data());
  if (tensor.elements > 0 && address % dtype_size(tensor.dtype) != 0)
    fail(path(), tensor.name,
         "is not aligned to its element size in the file, so that it has to be copied to be read");
}

void Safetensors::copy(const Tensor& tensor, void* destination) {
  if (!tensor.bytes.empty()) std::memcpy(destination, tensor.bytes.data(), tensor.bytes.size());
}

std::vector<double> Safetensors::read_doubles(std::string_view name) const {
  return read_doubles(name, 0, at(name).elements);
}

std::vector<double> Safetensors::read_doubles(std::string_view name, std::uint64_t first,
                                              std::uint64_t count) const {
  const Tensor& tensor = at(name);
  if (first > tensor.elements || count > tensor.elements - first)
    fail(path(), name,
         "has " + std::to_string(tensor.elements) + " elements, so that " + std::to_string(count) +
             " from number " + std::to_string(first) + " on cannot be read");
  const std::size_t size = dtype_size(tensor.dtype);
  const std::span<const std::byte> bytes = tensor.bytes.subspan(first * size, count * size);
  const auto same = [](auto value) { return value; };
  switch (tensor.dtype) {
    case Dtype::boolean:
    case Dtype::u8:
      return converted<std::uint8_t>(bytes, same);
    case Dtype::i8:
      return converted<std::int8_t>(bytes, same);
    case Dtype::i16:
      return converted<std::int16_t>(bytes, same);
    case Dtype::u16:
      return converted<std::uint16_t>(bytes, same);
    case Dtype::f16:
      return converted<std::uint16_t>(bytes, half_to_float);
    case Dtype::bf16:
      return converted<std::uint16_t>(bytes, [](std::uint16_t bits) {
        return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
      });
    case Dtype::i32:
      return converted<std::int32_t>(bytes, same);
    case Dtype::u32:
      return converted<std::uint32_t>(bytes, same);
    case Dtype::f32:
      return converted<float>(bytes, same);
    case Dtype::f64:
      return converted<double>(bytes, same);
    case Dtype::i64:
      return converted<std::int64_t>(bytes, same);
    case Dtype::u64:
      return converted<std::uint64_t>(bytes, same);
    case Dtype::f8_e5m2:
    case Dtype::f8_e4m3:
      break;
  }
  fail(path(), name,
       "has the dtype " + std::string(dtype_name(tensor.dtype)) +
           ", which cannot be read as double");
}

SafetensorsWriter::SafetensorsWriter(const std::filesystem::path& path,
                                     std::vector<TensorSpec> specs,
                                     const std::map<std::string, std::string>& metadata)
    : path_(path), file_(path) {
  // Wide elements first keeps every tensor aligned without holes, which the format forbids.
  std::stable_sort(specs.begin(), specs.end(), [](const TensorSpec& a, const TensorSpec& b) {
    return dtype_size(a.dtype) > dtype_size(b.dtype);
  });
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::uint64_t position = 0;
  for (const TensorSpec& spec : specs) {
    if (spec.name == "__metadata__") fail(spec.name, "has a name that the format reserves");
    std::uint64_t elements = 0;
    std::uint64_t bytes = 0;
    std::uint64_t end = 0;
    if (!byte_count(spec.shape, spec.dtype, elements, bytes) ||
        __builtin_add_overflow(position, bytes, &end))
      fail(spec.name,
           "has the shape " + to_string(spec.shape) + ", whose size does not fit 64 bits");
    if (!slots_.emplace(spec.name, Slot{spec.dtype, position, end}).second)
      fail(spec.name, "is declared twice");
    header[spec.name] = {{"dtype", dtype_name(spec.dtype)},
                         {"shape", spec.shape},
                         {"data_offsets", {position, end}}};
    position = end;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const std::uint64_t length = text.size();
  if (length > longest_header)
    strata::io::fail(path_, "would need a header of " + std::to_string(length) +
                                " bytes; the format allows at most " +
                                std::to_string(longest_header));
  file_.write(&length, length_bytes);
  file_.write(text);
  for (auto& [name, slot] : slots_) {
    slot.next += file_.size();
    slot.end += file_.size();
  }
}

void SafetensorsWriter::append_bytes(std::string_view name, Dtype dtype,
                                     std::span<const std::byte> bytes) {
  const auto found = slots_.find(name);
  if (found == slots_.end()) fail(name, "was not declared before it was written");
  Slot& slot = found->second;
  if (slot.dtype != dtype)
    fail(name, "was declared as " + std::string(dtype_name(slot.dtype)) + " and is written as " +
                   std::string(dtype_name(dtype)));
  if (bytes.size() > slot.end - slot.next)
    fail(name, "is written with " + std::to_string(bytes.size() - (slot.end - slot.next)) +
                   " bytes more than were declared");
  file_.write_at(slot.next, bytes.data(), bytes.size());
  slot.next += bytes.size();
}

void SafetensorsWriter::commit() {
  for (const auto& [name, slot] : slots_)
    if (slot.next != slot.end)
      fail(name, "is incomplete: " + std::to_string(slot.end - slot.next) +
                     " bytes of it have not been written");
  file_.commit();
}

void SafetensorsWriter::fail(std::string_view tensor, const std::string& what) const {
  strata::io::fail(path_, tensor, what);
}

}  // namespace strata::io
