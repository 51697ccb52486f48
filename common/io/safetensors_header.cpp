#include "common/io/safetensors_header.h"

#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>

namespace strata::io {
namespace {

struct DtypeEntry {
  Dtype dtype;
  std::string_view name;
  std::size_t size;
};

constexpr std::array dtypes{
    DtypeEntry{Dtype::boolean, "BOOL", 1},    DtypeEntry{Dtype::u8, "U8", 1},
    DtypeEntry{Dtype::i8, "I8", 1},           DtypeEntry{Dtype::f8_e5m2, "F8_E5M2", 1},
    DtypeEntry{Dtype::f8_e4m3, "F8_E4M3", 1}, DtypeEntry{Dtype::i16, "I16", 2},
    DtypeEntry{Dtype::u16, "U16", 2},         DtypeEntry{Dtype::f16, "F16", 2},
    DtypeEntry{Dtype::bf16, "BF16", 2},       DtypeEntry{Dtype::i32, "I32", 4},
    DtypeEntry{Dtype::u32, "U32", 4},         DtypeEntry{Dtype::f32, "F32", 4},
    DtypeEntry{Dtype::f64, "F64", 8},         DtypeEntry{Dtype::i64, "I64", 8},
    DtypeEntry{Dtype::u64, "U64", 8}};

const DtypeEntry& entry(Dtype dtype) {
  for (const DtypeEntry& candidate : dtypes)
    if (candidate.dtype == dtype) return candidate;
  throw std::logic_error("a dtype without an entry in the table");
}

std::optional<Dtype> dtype_of(std::string_view name) {
  for (const DtypeEntry& candidate : dtypes)
    if (candidate.name == name) return candidate.dtype;
  return std::nullopt;
}

}  // namespace

std::string_view dtype_name(Dtype dtype) { return entry(dtype).name; }
std::size_t dtype_size(Dtype dtype) { return entry(dtype).size; }

namespace detail {

std::string shown(std::string_view name) {
  constexpr std::size_t longest = 80;
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text = "'";
  for (const char c : name.substr(0, longest)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f)
      text += std::string("\\x") + digits[byte >> 4] + digits[byte & 15];
    else
      text += c;
  }
  return text + (name.size() > longest ? "...'" : "'");
}

namespace {

using Json = nlohmann::json;

/// Receives the parser's events one by one and accepts only what a header may contain. Nothing is
/// kept of what is refused, so a hostile header costs no more memory than its own size.
class HeaderReader : public nlohmann::json_sax<Json> {
 public:
  explicit HeaderReader(const std::filesystem::path& path) : path_(path) {}

  Header take() { return std::move(header_); }

  bool start_object(std::size_t) override {
    switch (place_) {
      case Place::outside:
        return enter(Place::top);
      case Place::top_value:
        entry_ = HeaderEntry{};
        entry_.name = key_;
        seen_.clear();
        return enter(key_ == "__metadata__" ? Place::metadata : Place::tensor);
      default:
        return unexpected("an object");
    }
  }

  bool end_object() override {
    if (place_ == Place::tensor) finish_tensor();
    place_ = place_ == Place::top ? Place::outside : Place::top;
    return true;
  }

  bool start_array(std::size_t) override {
    if (place_ == Place::shape_value) return enter(Place::shape);
    if (place_ == Place::offsets_value) return enter(Place::offsets);
    return unexpected("an array");
  }

  bool end_array() override {
    if (place_ == Place::offsets && offsets_.size() != 2)
      fail_tensor("has " + std::to_string(offsets_.size()) + " data_offsets instead of two");
    return enter(Place::tensor);
  }

  bool key(std::string& name) override {
    if (place_ == Place::top) return top_key(name);
    if (place_ == Place::metadata) {
      if (header_.metadata.contains(name)) fail("names the metadata key " + shown(name) + " twice");
      key_ = name;
      return enter(Place::metadata_value);
    }
    if (!seen_.insert(name).second) fail_tensor("has the field " + shown(name) + " twice");
    if (name == "dtype") return enter(Place::dtype_value);
    if (name == "shape") return enter(Place::shape_value);
    if (name == "data_offsets") return enter(Place::offsets_value);
    fail_tensor("has the field " + shown(name) +
                ", which the format does not know (it has dtype, shape and data_offsets)");
  }

  bool string(std::string& text) override {
    if (place_ == Place::metadata_value) {
      header_.metadata.emplace(key_, std::move(text));
      return enter(Place::metadata);
    }
    if (place_ != Place::dtype_value) return unexpected("a string");
    const std::optional<Dtype> dtype = dtype_of(text);
    if (!dtype) fail_tensor("has the dtype " + shown(text) + ", which is not a known one");
    entry_.dtype = *dtype;
    return enter(Place::tensor);
  }

  bool number_unsigned(number_unsigned_t number) override {
    if (place_ == Place::shape) {
      entry_.shape.push_back(number);
    } else if (place_ == Place::offsets) {
      offsets_.push_back(number);
    } else {
      return unexpected("a number");
    }
    return true;
  }

  bool number_integer(number_integer_t) override { return bad_number("a negative number"); }
  bool number_float(number_float_t, const string_t& text) override {
    return bad_number("the number " + shown(text));
  }
  bool null() override { return unexpected("null"); }
  bool boolean(bool) override { return unexpected("a truth value"); }
  bool binary(binary_t&) override { return unexpected("binary data"); }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    fail("is not valid JSON at byte " + std::to_string(position) + " of the header");
  }

 private:
  /// Where in the header the parser is; the ..._value places expect the value of a key.
  enum class Place {
    outside,
    top,
    top_value,
    metadata,
    metadata_value,
    tensor,
    dtype_value,
    shape_value,
    shape,
    offsets_value,
    offsets
  };

  bool enter(Place place) {
    if (place == Place::shape) entry_.shape.clear();
    if (place == Place::offsets) offsets_.clear();
    place_ = place;
    return true;
  }

  bool top_key(const std::string& name) {
    if (!names_.insert(name).second) fail("names the tensor " + shown(name) + " twice");
    key_ = name;
    return enter(Place::top_value);
  }

  void finish_tensor() {
    for (const char* field : {"dtype", "shape", "data_offsets"})
      if (!seen_.contains(field)) fail_tensor(std::string("has no ") + field);
    entry_.begin = offsets_[0];
    entry_.end = offsets_[1];
    header_.entries.push_back(std::move(entry_));
  }

  bool bad_number(const std::string& what) {
    if (place_ == Place::shape || place_ == Place::offsets)
      fail_tensor("has " + what +
                  (place_ == Place::shape ? " in its shape" : " in its data_offsets") +
                  " instead of whole numbers from 0 to 2^64-1");
    return unexpected("a number");
  }

  [[noreturn]] bool unexpected(const std::string& what) {
    if (place_ == Place::outside) fail("has a header that is " + what + " instead of an object");
    if (place_ == Place::metadata_value)
      fail("has " + what + " as its metadata " + shown(key_) + " instead of a string");
    if (place_ == Place::top_value)
      fail("has " + what + " as the description of the tensor " + shown(key_) +
           " instead of an object");
    fail_tensor("is described with " + what + " where the format has none");
  }

  [[noreturn]] void fail_tensor(const std::string& what) {
    throw std::runtime_error("the tensor " + shown(entry_.name) + " of the safetensors file '" +
                             path_.string() + "' " + what);
  }
  [[noreturn]] void fail(const std::string& what) {
    throw std::runtime_error("the safetensors file '" + path_.string() + "' " + what);
  }

  const std::filesystem::path& path_;
  Place place_ = Place::outside;
  Header header_;
  HeaderEntry entry_;
  std::vector<std::uint64_t> offsets_;
  std::string key_;
  std::set<std::string> names_;
  std::set<std::string> seen_;
};

}  // namespace

Header parse_header(const std::filesystem::path& path, std::string_view text) {
  HeaderReader reader(path);
  Json::sax_parse(text, &reader);
  return reader.take();
}

}  // namespace detail
}  // namespace strata::io
