// Stage 01: the whole of GPT-2 training in one file.
//
//   g++ -std=c++20 -O3 -march=native -fopenmp train.cpp -o strata01
//
// It needs nothing but a C++20 compiler with OpenMP, and it is the reference of truth for every
// later stage: where clear and clever differ, it is clear. Read it from top to bottom:
//
//   1. small tools         errors, JSON                       6. AdamW, schedules, outliers
//   2. the model's shape   descriptors, the layout            7. data and tokens
//   3. random numbers      PyTorch's normal draws             8. safetensors, checkpoints, traces
//   4. the layers          forward with its backward beside   9. sampling
//   5. the model           one forward, one backward         10. settings, the training loop, main
//
// Shapes in comments: B sequences, T positions, C channels, H heads, V words of the vocabulary,
// Vp the vocabulary padded to a multiple of 128, L blocks. Everything is row-major fp32.

// [includes]
#include <fcntl.h>
#include <omp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <numbers>
#include <numeric>
#include <optional>
#include <random>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>
// [/includes]

namespace stage01 {

namespace fs = std::filesystem;
using Index = std::int64_t;  // sizes, offsets and token counts: never 32 bits

// =================================================================================================
// 1. Small tools
// =================================================================================================

// [errors]
// What went wrong, as one sentence for the person at the keyboard; main prints it and returns 1.
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A text made of its arguments, in the default format of streams with nine digits.
template <class... Parts>
std::string text(const Parts&... parts) {
  std::ostringstream out;
  out.precision(9);
  (out << ... << parts);
  return out.str();
}

template <class... Parts>
[[noreturn]] void fail(const Parts&... parts) {
  throw Error(text(parts...));
}
// [/errors]

// [json]
// Just enough JSON for configurations, states and the headers of safetensors files.
struct Json {
  using Array = std::vector<Json>;
  using Object = std::map<std::string, Json>;
  std::variant<std::nullptr_t, bool, double, std::string, Array, Object> value = nullptr;

  Json() = default;
  template <class T>
    requires(!std::is_same_v<std::remove_cvref_t<T>, Json>)
  Json(T&& v) {  // implicit, so that objects can be written down as they read
    using U = std::remove_cvref_t<T>;
    if constexpr (std::is_same_v<U, bool>) value = v;
    else if constexpr (std::is_arithmetic_v<U>) value = static_cast<double>(v);
    else value = std::forward<T>(v);
  }
  Json(const char* v) : value(std::string(v)) {}

  bool operator==(const Json&) const = default;
  template <class T>
  const T* get() const { return std::get_if<T>(&value); }
  const Json* find(const std::string& key) const {
    const Object* object = get<Object>();
    if (object == nullptr) return nullptr;
    const auto member = object->find(key);
    return member == object->end() ? nullptr : &member->second;
  }
};

// Reads one JSON value out of `source`; `name` is the file that messages speak of.
class JsonParser {
 public:
  JsonParser(std::string_view source, std::string name) : source_(source), name_(std::move(name)) {}

  Json parse() {
    Json json = value(0);
    if (peek() != '\0' || at_ < source_.size()) bad("the end of the file");
    return json;
  }

 private:
  [[noreturn]] void bad(const char* expected) {
    fail(name_, " is not valid JSON: byte ", at_, " should be ", expected);
  }
  char peek() {
    while (at_ < source_.size() && std::strchr(" \t\r\n", source_[at_]) && source_[at_]) ++at_;
    return at_ < source_.size() ? source_[at_] : '\0';
  }
  bool accept(char c) { return peek() == c && ++at_; }
  void expect(char c, const char* what) { if (!accept(c)) bad(what); }
  bool accept_word(std::string_view word) {
    if (source_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }

  Json value(int depth) {
    if (depth > 64) bad("nested less deeply");
    const char c = peek();
    if (c == '"') return string();
    if (accept('{')) {
      Json::Object object;
      if (accept('}')) return object;
      do {
        if (peek() != '"') bad("a name in quotes");
        std::string key = string();
        expect(':', "a colon");
        object[std::move(key)] = value(depth + 1);
      } while (accept(','));
      expect('}', "a comma or a closing brace");
      return object;
    }
    if (accept('[')) {
      Json::Array array;
      if (accept(']')) return array;
      do array.push_back(value(depth + 1));
      while (accept(','));
      expect(']', "a comma or a closing bracket");
      return array;
    }
    if (accept_word("true")) return true;
    if (accept_word("false")) return false;
    if (accept_word("null")) return nullptr;
    const std::string digits(
        source_.substr(at_, source_.find_first_not_of("+-.0123456789eE", at_) - at_));
    char* end = nullptr;
    const double number = std::strtod(digits.c_str(), &end);
    if (digits.empty() || *end != '\0' || !std::isfinite(number)) bad("a value");
    at_ += digits.size();
    return number;
  }

  std::string string() {
    std::string out;
    for (++at_;; ++at_) {
      if (at_ >= source_.size()) bad("a closing quote");
      const char c = source_[at_];
      if (c == '"') break;
      if (c != '\\') { out += c; continue; }
      const char escape = ++at_ < source_.size() ? source_[at_] : '\0';
      const char* plain = std::strchr("\"\"\\\\//b\bf\fn\nr\rt\t", escape);
      if (escape == 'u') append_utf8(out, unicode());
      else if (escape != '\0' && plain != nullptr) out += plain[1];
      else bad("an escape that JSON knows");
    }
    ++at_;
    return out;
  }

  unsigned unicode() {  // the four digits after \u, and the second half of a surrogate pair
    const auto four = [&] {
      unsigned code = 0;
      for (int i = 0; i < 4; ++i) {
        const char c = ++at_ < source_.size() ? source_[at_] : '\0';
        if (!std::isxdigit(static_cast<unsigned char>(c))) bad("four hexadecimal digits");
        code = code * 16 + static_cast<unsigned>(c <= '9' ? c - '0' : (c | 32) - 'a' + 10);
      }
      return code;
    };
    const unsigned high = four();
    if (high < 0xD800 || high > 0xDBFF || source_.substr(at_ + 1, 2) != "\\u") return high;
    at_ += 2;
    return 0x10000 + ((high - 0xD800) << 10) + ((four() - 0xDC00) & 0x3FF);
  }

  static void append_utf8(std::string& out, unsigned code) {
    const int extra = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    constexpr unsigned lead[] = {0, 0xC0, 0xE0, 0xF0};
    out += static_cast<char>(lead[extra] | (code >> (6 * extra)));
    for (int i = extra - 1; i >= 0; --i) out += static_cast<char>(0x80 | ((code >> (6 * i)) & 63));
  }

  std::string_view source_;
  std::string name_;
  std::size_t at_ = 0;
};

// Writes JSON on one line. What is not UTF-8 (a model may say anything) and what is not a finite
// number cannot stand in JSON: stray bytes become U+FFFD, such numbers null.
class JsonWriter {
 public:
  static std::string write(const Json& json) {
    JsonWriter writer;
    std::visit(writer, json.value);
    return writer.out_;
  }
  void operator()(std::nullptr_t) { out_ += "null"; }
  void operator()(bool b) { out_ += b ? "true" : "false"; }
  void operator()(double x) {
    char digits[40];
    const bool whole = x == std::floor(x) && std::abs(x) < 9e15;
    std::snprintf(digits, sizeof digits, whole ? "%.0f" : "%.17g", x);
    out_ += std::isfinite(x) ? digits : "null";
  }
  void operator()(const std::string& s) {
    out_ += '"';
    for (std::size_t i = 0; i < s.size();) {
      const auto byte = static_cast<unsigned char>(s[i]);
      const std::size_t size = byte < 0x80 ? 1 : byte < 0xC2 ? 0 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3
                               : byte < 0xF5 ? 4 : 0;
      bool valid = size > 0 && i + size <= s.size();
      for (std::size_t k = 1; valid && k < size; ++k) valid = (s[i + k] & 0xC0) == 0x80;
      if (!valid) { out_ += "\\ufffd"; ++i; continue; }
      if (byte == '"' || byte == '\\') { out_ += '\\'; out_ += s[i]; }
      else if (byte < 0x20) { char u[8]; std::snprintf(u, sizeof u, "\\u%04x", byte); out_ += u; }
      else out_.append(s, i, size);
      i += size;
    }
    out_ += '"';
  }
  void operator()(const Json::Array& array) {
    out_ += '[';
    for (const Json& item : array) { if (&item != array.data()) out_ += ','; std::visit(*this, item.value); }
    out_ += ']';
  }
  void operator()(const Json::Object& object) {
    out_ += '{';
    for (bool first = true; const auto& [key, item] : object) {
      if (!std::exchange(first, false)) out_ += ',';
      (*this)(key);
      out_ += ':';
      std::visit(*this, item.value);
    }
    out_ += '}';
  }

 private:
  std::string out_;
};

std::string read_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file || fs::is_directory(path)) fail("cannot open '", path.string(), "': ", std::strerror(errno));
  return {std::istreambuf_iterator<char>(file), {}};
}

Json read_json(const fs::path& path) {
  return JsonParser(read_text(path), "'" + path.string() + "'").parse();
}

// The member `key` of the object in `path` as a number from `low` to `high` (a whole one).
Index whole(const Json& json, const std::string& key, const fs::path& path, Index low, Index high) {
  const Json* member = json.find(key);
  const double* number = member ? member->get<double>() : nullptr;
  if (number == nullptr) fail("'", path.string(), "' has no number \"", key, "\"");
  if (!(*number >= double(low) && *number <= double(high)) || *number != std::floor(*number))
    fail("\"", key, "\" in '", path.string(), "' is ", *number, ", expected a whole number from ", low, " to ", high);
  return static_cast<Index>(*number);
}
// [/json]

// =================================================================================================
// 2. The model's shape
// =================================================================================================

// [config]
struct Config {
  Index L = 12, C = 768, H = 12, maxT = 1024, V = 50257;
  Index Vp() const { return (V + 127) / 128 * 128; }  // rows of wte; the rest of them stay zero
  std::string describe() const {
    return text("L", L, ",C", C, ",H", H, ",T", maxT, ",V", V);
  }
  bool operator==(const Config&) const = default;
};

// Refuses a shape that the layers below could not compute, in words; `origin` is where it came from.
void validate(const Config& config, const std::string& origin) {
  const auto check = [&](const char* what, Index value, Index high) {
    if (value < 1 || value > high) fail(origin, ": ", what, " is ", value, ", expected 1 to ", high);
  };
  check("the number of blocks (L)", config.L, 1000);
  check("the number of channels (C)", config.C, 1 << 17);
  check("the number of heads (H)", config.H, config.C);
  check("the number of positions (T)", config.maxT, 1 << 20);
  check("the vocabulary (V)", config.V, 1 << 24);
  if (config.C % config.H != 0)
    fail(origin, ": ", config.H, " heads do not divide ", config.C, " channels evenly");
}

// "d12", "gpt3:c768", "L4,C128,H4,T128,V1024", or a named one changed: "d12,V1024,T256".
Config parse_descriptor(const std::string& descriptor) {
  const std::string origin = "--init " + descriptor;
  static const std::map<std::string, Config> named = {
      {"d6", {6, 384, 6}},     {"d12", {12, 768, 12}},  {"d24", {24, 1024, 16}}, {"d36", {36, 1280, 20}},
      {"d48", {48, 1600, 25}}, {"d60", {60, 1920, 30}}, {"d72", {72, 2880, 30}}, {"d84", {84, 3456, 36}},
      {"gpt3:c384", {6, 384, 6, 2048}},     {"gpt3:c768", {12, 768, 12, 2048}},
      {"gpt3:c1024", {24, 1024, 16, 2048}}, {"gpt3:c1536", {24, 1536, 16, 2048}},
      {"gpt3:c2048", {24, 2048, 16, 2048}}, {"gpt3:c2560", {32, 2560, 32, 2048}},
      {"gpt3:c4096", {32, 4096, 32, 2048}}, {"gpt3:c5140", {40, 5140, 20, 2048}},
      {"gpt3:c12288", {96, 12288, 96, 2048}}};
  Config config;
  std::istringstream parts(descriptor);
  std::string seen;
  for (std::string part; std::getline(parts, part, ',');) {
    const std::string name = part.starts_with("gpt2:") ? part.substr(5) : part;
    if (const auto found = named.find(name); found != named.end() && seen.empty()) {
      config = found->second;
      seen = "LCHTV";
      continue;
    }
    const std::string digits = part.empty() ? "" : part.substr(1);
    if (digits.empty() || digits.size() > 9 || digits.find_first_not_of("0123456789") != digits.npos ||
        !std::strchr("LCHTV", part[0]))
      fail(origin, ": '", part, "' is neither a known model (d6 to d84, gpt3:c384 to gpt3:c12288) "
           "nor one of L, C, H, T, V with a number, as in L4,C128,H4,T128,V1024");
    const Index number = std::stoll(digits);
    (part[0] == 'L' ? config.L : part[0] == 'C' ? config.C : part[0] == 'H' ? config.H
     : part[0] == 'T' ? config.maxT : config.V) = number;
    seen += part[0];
  }
  for (const char key : std::string("LCHTV"))
    if (seen.find(key) == seen.npos) fail(origin, ": ", key, " is missing, as in L4,C128,H4,T128,V1024");
  validate(config, origin);
  return config;
}
// [/config]

// [layout]
// One parameter tensor. Its identity is its place in this list; its elements are counted row-major
// from `offset` in a buffer that holds all tensors of one role: parameters, gradients, m, v.
struct Tensor {
  std::string name;        // as Hugging Face calls it
  std::vector<Index> shape;  // matrices are (out, in): row o holds the weights of output o
  Index offset = 0, size = 0;
  bool conv1d = false;     // Hugging Face stores this matrix as (in, out)
  bool decay = false;      // AdamW decays matrices only, biases and LayerNorms stay free
  double init_std = 0;     // normal draws with this deviation; 0: a constant
  float init_value = 0;
};

struct Layout {
  std::vector<Tensor> tensors;  // block-major: wte, wpe, all of block 0, of block 1, ..., ln_f
  Index size = 0;               // floats in a buffer, the gaps of the alignment included
  Index parameters = 0;         // without the gaps
};

Layout make_layout(const Config& config) {
  const Index C = config.C;
  Layout layout;
  const auto add = [&](std::string name, std::vector<Index> shape, bool conv1d, double std, float value) {
    const Index size = std::accumulate(shape.begin(), shape.end(), Index{1}, std::multiplies<>());
    layout.tensors.push_back({.name = std::move(name), .shape = shape, .offset = layout.size, .size = size,
        .conv1d = conv1d, .decay = shape.size() == 2, .init_std = std, .init_value = value});
    layout.size += (size + 63) / 64 * 64;  // every tensor starts at a multiple of 256 bytes
    layout.parameters += size;
  };
  const auto norm = [&](const std::string& name) {
    add(name + ".weight", {C}, false, 0, 1);
    add(name + ".bias", {C}, false, 0, 0);
  };
  const auto linear = [&](const std::string& name, Index out, Index in, double std) {
    add(name + ".weight", {out, in}, true, std, 0);
    add(name + ".bias", {out}, false, 0, 0);
  };
  const double std = 0.02, residual_std = 0.02 / std::sqrt(2.0 * double(config.L));
  add("wte.weight", {config.Vp(), C}, false, std, 0);
  add("wpe.weight", {config.maxT, C}, false, std, 0);
  for (Index l = 0; l < config.L; ++l) {
    const std::string block = text("h.", l, ".");
    norm(block + "ln_1");
    linear(block + "attn.c_attn", 3 * C, C, std);
    linear(block + "attn.c_proj", C, C, residual_std);
    norm(block + "ln_2");
    linear(block + "mlp.c_fc", 4 * C, C, std);
    linear(block + "mlp.c_proj", C, 4 * C, residual_std);
  }
  norm("ln_f");
  return layout;
}

// Where the tensors of one buffer lie, by name instead of by number.
struct Block {
  float *ln1_weight, *ln1_bias, *qkv_weight, *qkv_bias, *attn_proj_weight, *attn_proj_bias;
  float *ln2_weight, *ln2_bias, *fc_weight, *fc_bias, *fc_proj_weight, *fc_proj_bias;
};

struct View {
  float *wte, *wpe;
  std::vector<Block> blocks;
  float *lnf_weight, *lnf_bias;

  View(const Layout& layout, float* buffer) {
    auto tensor = layout.tensors.begin();
    const auto next = [&] { return buffer + (tensor++)->offset; };
    wte = next();
    wpe = next();
    for (Index l = 0; l < Index(layout.tensors.size() - 4) / 12; ++l)
      blocks.push_back({next(), next(), next(), next(), next(), next(),  // braces: left to right
                        next(), next(), next(), next(), next(), next()});
    lnf_weight = next();
    lnf_bias = next();
  }
};

// A zeroed allocation for one role.
struct Buffer {
  std::unique_ptr<float[], void (*)(float*)> data{nullptr, [](float* p) { std::free(p); }};
  Index size = 0;

  Buffer() = default;
  Buffer(Index count, const char* role) : size(count) {
    const std::size_t bytes = (std::size_t(count) * sizeof(float) + 255) / 256 * 256;
    data.reset(static_cast<float*>(std::aligned_alloc(256, bytes)));
    if (!data) fail("not enough memory: ", bytes >> 20, " MiB for ", role, " could not be allocated");
    zero();
  }
  void zero() { std::fill_n(data.get(), size, 0.0f); }
  operator float*() const { return data.get(); }
};
// [/layout]

// =================================================================================================
// 3. Random numbers
// =================================================================================================

// [random]
// SplitMix64 (Steele, Lea and Flood 2014): a bijection of 64 bits that looks random. Shuffling and
// sampling hash counters with it, so that there is no generator whose state could get lost.
std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// The draws of PyTorch's `normal_` on the CPU, so that our first weights are PyTorch's: the same
// bits of the Mersenne Twister, the same Box-Muller transform in the same order.
class TorchNormal {
 public:
  explicit TorchNormal(std::uint64_t seed) : engine_(static_cast<std::uint32_t>(seed)) {}

  void fill(float* data, Index n, double std) {
    if (n < 16) {
      for (Index i = 0; i < n; ++i) data[i] = static_cast<float>(one() * std);
      return;
    }
    for (Index i = 0; i < n; ++i) data[i] = uniform();
    for (Index i = 0; i + 16 <= n; i += 16) transform(data + i, float(std));
    if (n % 16 != 0) {  // the last sixteen are drawn again, as a whole
      for (Index i = n - 16; i < n; ++i) data[i] = uniform();
      transform(data + n - 16, float(std));
    }
  }

 private:
  float uniform() { return float(engine_() & 0xFFFFFF) * 0x1p-24f; }
  double uniform53() {
    const std::uint64_t high = engine_();
    const std::uint64_t low = engine_();
    return double((high << 32 | low) & ((std::uint64_t{1} << 53) - 1)) * 0x1p-53;
  }
  static void transform(float* data, float std) {  // 8 pairs of uniforms to 16 normals
    for (int i = 0; i < 8; ++i) {
      const float radius = std::sqrt(-2.0f * std::log(1.0f - data[i]));
      const float angle = 2.0f * std::numbers::pi_v<float> * data[i + 8];
      data[i] = radius * std::cos(angle) * std;
      data[i + 8] = radius * std::sin(angle) * std;
    }
  }
  double one() {  // in double precision, keeping the second of a pair for the next call
    if (spare_) return *std::exchange(spare_, std::nullopt);
    const double angle = 2.0 * std::numbers::pi * uniform53();
    const double radius = std::sqrt(-2.0 * std::log1p(-uniform53()));
    spare_ = radius * std::sin(angle);
    return radius * std::cos(angle);
  }
  std::mt19937 engine_;
  std::optional<double> spare_;
};

void initialise(const Config& config, const Layout& layout, std::uint64_t seed, float* parameters) {
  TorchNormal normal(seed);
  for (const Tensor& tensor : layout.tensors) {
    float* data = parameters + tensor.offset;
    const bool padded = tensor.name == "wte.weight";
    if (tensor.init_std > 0) normal.fill(data, padded ? config.V * config.C : tensor.size, tensor.init_std);
    else std::fill_n(data, tensor.size, tensor.init_value);
  }
}
// [/random]

// =================================================================================================
// 4. The layers: forward, with its backward beside it
//
// A backward function gets the gradient of the loss with respect to the layer's output and adds to
// the gradients of its parameters (they accumulate over micro-batches); what it does with the
// gradient of its input stands in its comment. Every element of every result is computed by one
// thread in one order, so the bits do not depend on the number of threads.
// =================================================================================================

// [strip]
constexpr Index strip = 64;  // rows or columns that a thread takes at once: they stay in its cache

Index strips(Index n) { return (n + strip - 1) / strip; }

// y[j] += sum over k < count of a[k * a_stride] * b[k * b_stride + j], for j < n.
template <int count>
inline void add_rows(float* y, const float* a, Index a_stride, const float* b, Index b_stride, Index n) {
  float weight[count];
  for (int k = 0; k < count; ++k) weight[k] = a[k * a_stride];
#pragma omp simd
  for (Index j = 0; j < n; ++j) {
    float sum = y[j];
    for (int k = 0; k < count; ++k) sum += weight[k] * b[k * b_stride + j];
    y[j] = sum;
  }
}

// Y (rows, n) += A (rows, depth) B (depth, n), where A may be read with any strides.
//
// The outer-product order: eight rows of B, scaled by eight numbers of A, are added to a row of Y.
// The compiler vectorises over j, and each load of Y pays for eight multiply-adds.
void add_product(float* y, Index y_stride, const float* a, Index a_row, Index a_column, const float* b,
                 Index b_stride, Index rows, Index depth, Index n) {
  Index k = 0;
  for (; k + 8 <= depth; k += 8)
    for (Index r = 0; r < rows; ++r)
      add_rows<8>(y + r * y_stride, a + r * a_row + k * a_column, a_column, b + k * b_stride, b_stride, n);
  for (; k < depth; ++k)
    for (Index r = 0; r < rows; ++r)
      add_rows<1>(y + r * y_stride, a + r * a_row + k * a_column, a_column, b + k * b_stride, b_stride, n);
}
// [/strip]

// [embedding]
// x (B, T, C) = wte[token] + wpe[t].
void embedding_forward(float* x, const std::int32_t* tokens, const float* wte, const float* wpe, Index B,
                       Index T, Index C) {
#pragma omp parallel for
  for (Index row = 0; row < B * T; ++row)
    for (Index c = 0; c < C; ++c) x[row * C + c] = wte[tokens[row] * C + c] + wpe[row % T * C + c];
}

// dwte[token] += dx, dwpe[t] += dx. One token may stand in many rows: a thread takes all rows of
// its channels, so that no two threads ever add to the same number.
void embedding_backward(float* dwte, float* dwpe, const float* dx, const std::int32_t* tokens, Index B,
                        Index T, Index C) {
#pragma omp parallel for
  for (Index begin = 0; begin < C; begin += 16)
    for (Index row = 0; row < B * T; ++row)
      for (Index c = begin; c < std::min(begin + 16, C); ++c) {
        dwte[tokens[row] * C + c] += dx[row * C + c];
        dwpe[row % T * C + c] += dx[row * C + c];
      }
}
// [/embedding]

// [layernorm]
// y = (x - mean) * rstd * weight + bias for each row of x (rows, C), where rstd = 1 / sqrt(var + eps).
void layernorm_forward(float* y, float* mean, float* rstd, const float* x, const float* weight,
                       const float* bias, Index rows, Index C) {
  constexpr float epsilon = 1e-5f;
#pragma omp parallel for
  for (Index row = 0; row < rows; ++row) {
    const float* in = x + row * C;
    float sum = 0, squares = 0;
#pragma omp simd reduction(+ : sum)
    for (Index c = 0; c < C; ++c) sum += in[c];
    const float m = sum / float(C);
#pragma omp simd reduction(+ : squares)
    for (Index c = 0; c < C; ++c) squares += (in[c] - m) * (in[c] - m);
    const float r = 1.0f / std::sqrt(squares / float(C) + epsilon);
    for (Index c = 0; c < C; ++c) y[row * C + c] = (in[c] - m) * r * weight[c] + bias[c];
    mean[row] = m;
    rstd[row] = r;
  }
}

// With the normalised input h = (x - mean) * rstd and g = dy * weight:
//   dx += rstd * (g - mean_c(g) - h * mean_c(g * h)),  dweight += sum of dy * h,  dbias += sum of dy.
// The two means are what is left of the derivatives of the mean and of rstd. dx is added to,
// because x also runs past this layer along the residual stream.
void layernorm_backward(float* dx, float* dweight, float* dbias, const float* dy, const float* x,
                        const float* weight, const float* mean, const float* rstd, Index rows, Index C) {
#pragma omp parallel for
  for (Index row = 0; row < rows; ++row) {
    const float *in = x + row * C, *dout = dy + row * C;
    const float m = mean[row], r = rstd[row];
    float sum_g = 0, sum_gh = 0;
#pragma omp simd reduction(+ : sum_g, sum_gh)
    for (Index c = 0; c < C; ++c) {
      const float g = dout[c] * weight[c];
      sum_g += g;
      sum_gh += g * (in[c] - m) * r;
    }
    for (Index c = 0; c < C; ++c) {
      const float h = (in[c] - m) * r;
      dx[row * C + c] += r * (dout[c] * weight[c] - sum_g / float(C) - h * sum_gh / float(C));
    }
  }
#pragma omp parallel for
  for (Index begin = 0; begin < C; begin += 16)
    for (Index row = 0; row < rows; ++row)
      for (Index c = begin; c < std::min(begin + 16, C); ++c) {
        dweight[c] += dy[row * C + c] * (x[row * C + c] - mean[row]) * rstd[row];
        dbias[c] += dy[row * C + c];
      }
}
// [/layernorm]

// [linear]
// y (rows, out) = x (rows, in) W^T + bias, with W (out, in); no bias where it is null.
//
// A thread takes a strip of outputs. It turns their weights round, to (in, strip), so that the
// product runs along memory.
void linear_forward(float* y, const float* x, const float* weight, const float* bias, Index rows, Index in,
                    Index out) {
#pragma omp parallel
  {
    std::vector<float> turned(std::size_t(in * strip));
#pragma omp for
    for (Index begin = 0; begin < out; begin += strip) {
      const Index n = std::min(strip, out - begin);
      for (Index o = 0; o < n; ++o)
        for (Index i = 0; i < in; ++i) turned[std::size_t(i * strip + o)] = weight[(begin + o) * in + i];
      for (Index row = 0; row < rows; ++row)
        for (Index o = 0; o < n; ++o) y[row * out + begin + o] = bias ? bias[begin + o] : 0.0f;
      add_product(y + begin, out, x, in, 1, turned.data(), strip, rows, in, n);
    }
  }
}

// dx (rows, in) = dy W;  dW (out, in) += dy^T x;  dbias (out) += sum of dy over the rows.
void linear_backward(float* dx, float* dweight, float* dbias, const float* dy, const float* x,
                     const float* weight, Index rows, Index in, Index out) {
#pragma omp parallel
  {
#pragma omp for
    for (Index begin = 0; begin < rows; begin += strip) {  // a strip of rows of dx
      const Index n = std::min(strip, rows - begin);
      std::fill_n(dx + begin * in, n * in, 0.0f);
      add_product(dx + begin * in, in, dy + begin * out, out, 1, weight, in, n, out, in);
    }
#pragma omp for
    for (Index begin = 0; begin < out; begin += strip) {  // a strip of rows of dW
      const Index n = std::min(strip, out - begin);
      add_product(dweight + begin * in, in, dy + begin, 1, out, x, in, n, rows, in);
      if (dbias == nullptr) continue;
      for (Index row = 0; row < rows; ++row)
        for (Index o = begin; o < begin + n; ++o) dbias[o] += dy[row * out + o];
    }
  }
}
// [/linear]

// [attention]
// Causal self-attention. qkv (B, T, 3C) holds queries, keys and values, each (H, head size) a row;
//   score[t][s] = q_t . k_s / sqrt(head size) for s <= t,  probability = softmax(score[t]),
//   y_t = sum over s of probability[t][s] v_s.
// The probabilities (B, H, T, T) are kept for the backward pass; nothing above the diagonal is
// read or written. A thread takes a sequence and a head.
void attention_forward(float* y, float* probability, const float* qkv, Index B, Index T, Index C, Index H) {
  const Index D = C / H;  // the head size
  const float scale = 1.0f / std::sqrt(float(D));
#pragma omp parallel
  {
    std::vector<float> keys(std::size_t(D * T));  // k turned round to (D, T)
#pragma omp for collapse(2)
    for (Index b = 0; b < B; ++b)
      for (Index h = 0; h < H; ++h) {
        const float* q = qkv + b * T * 3 * C + h * D;
        const float *k = q + C, *v = q + 2 * C;
        for (Index t = 0; t < T; ++t)
          for (Index d = 0; d < D; ++d) keys[std::size_t(d * T + t)] = k[t * 3 * C + d];
        for (Index t = 0; t < T; ++t) {
          float* p = probability + ((b * H + h) * T + t) * T;
          std::fill_n(p, t + 1, 0.0f);
          add_product(p, T, q + t * 3 * C, 0, 1, keys.data(), T, 1, D, t + 1);
          const float largest = *std::max_element(p, p + t + 1) * scale;
          float sum = 0;
          for (Index s = 0; s <= t; ++s) sum += p[s] = std::exp(p[s] * scale - largest);
          for (Index s = 0; s <= t; ++s) p[s] /= sum;
          float* out = y + (b * T + t) * C + h * D;
          std::fill_n(out, D, 0.0f);
          add_product(out, C, p, 0, 1, v, 3 * C, 1, t + 1, D);
        }
      }
  }
}

// With dp[t][s] = dy_t . v_s, softmax gives dscore = p * (dp - sum over s of p * dp), and then
//   dq_t = scale * sum over s of dscore[t][s] k_s,   dk_s = scale * sum over t of dscore[t][s] q_t,
//   dv_s = sum over t of p[t][s] dy_t.
// dqkv is written. The probabilities are overwritten by scale * dscore, row by row, once dv has
// used them. The sum over s is taken once a row, so all of it is O(T^2).
void attention_backward(float* dqkv, float* probability, const float* dy, const float* qkv, Index B, Index T,
                        Index C, Index H) {
  const Index D = C / H;
  const float scale = 1.0f / std::sqrt(float(D));
  std::fill_n(dqkv, B * T * 3 * C, 0.0f);
#pragma omp parallel
  {
    std::vector<float> values(std::size_t(D * T)), dp(static_cast<std::size_t>(T));  // v as (D, T)
#pragma omp for collapse(2)
    for (Index b = 0; b < B; ++b)
      for (Index h = 0; h < H; ++h) {
        const Index start = b * T * 3 * C + h * D;
        const float *q = qkv + start, *k = q + C, *v = q + 2 * C;
        float *dq = dqkv + start, *dk = dq + C, *dv = dq + 2 * C;
        float* p = probability + (b * H + h) * T * T;
        const float* dout = dy + b * T * C + h * D;
        for (Index t = 0; t < T; ++t)
          for (Index d = 0; d < D; ++d) values[std::size_t(d * T + t)] = v[t * 3 * C + d];
        for (Index s = 0; s < T; ++s)  // column s of p, from the diagonal down
          add_product(dv + s * 3 * C, 0, p + s * T + s, 0, T, dout + s * C, C, 1, T - s, D);
        for (Index t = 0; t < T; ++t) {
          float* row = p + t * T;
          std::fill_n(dp.data(), t + 1, 0.0f);
          add_product(dp.data(), 0, dout + t * C, 0, 1, values.data(), T, 1, D, t + 1);
          float sum = 0;
          for (Index s = 0; s <= t; ++s) sum += row[s] * dp[std::size_t(s)];
          for (Index s = 0; s <= t; ++s) row[s] *= scale * (dp[std::size_t(s)] - sum);
          add_product(dq + t * 3 * C, 0, row, 0, 1, k, 3 * C, 1, t + 1, D);
        }
        for (Index s = 0; s < T; ++s)
          add_product(dk + s * 3 * C, 0, p + s * T + s, 0, T, q + s * 3 * C, 3 * C, 1, T - s, D);
      }
  }
}
// [/attention]

// [gelu]
// GELU in the tanh form of GPT-2: 0.5 x (1 + tanh(u)) with u = sqrt(2/pi) (x + 0.044715 x^3). Since
// 0.5 (1 + tanh(u)) is the logistic function of 2u, gelu(x) = x * gate(x) with one exponential, and
// it is exactly 0 or x where the gate is. Beyond |x| = 12 the gate is 0 or 1 to the last bit.
constexpr float gelu_scale = 0.7978845608f;  // sqrt(2 / pi)

inline float gelu_gate(float x) {
  const float u = gelu_scale * (x + 0.044715f * x * x * x);
  return 1.0f / (1.0f + std::exp(-2.0f * u));
}

void gelu_forward(float* y, const float* x, Index n) {
#pragma omp parallel for
  for (Index i = 0; i < n; ++i) y[i] = x[i] * gelu_gate(x[i]);
}

// gelu'(x) = gate + x * gate' with gate' = gate (1 - gate) 2u'. x is held within 12 there, lest
// an overflowing u' meet a zero.
void gelu_backward(float* dx, const float* dy, const float* x, Index n) {
#pragma omp parallel for
  for (Index i = 0; i < n; ++i) {
    const float held = std::clamp(x[i], -12.0f, 12.0f);
    const float gate = gelu_gate(held);
    const float slope = 2.0f * gelu_scale * (1.0f + 3.0f * 0.044715f * held * held);
    dx[i] = dy[i] * (gate + held * gate * (1.0f - gate) * slope);
  }
}
// [/gelu]

// [residual]
// y = a + b: where a block's output joins the stream. Its gradient goes both ways unchanged.
void residual_forward(float* y, const float* a, const float* b, Index n) {
#pragma omp parallel for simd
  for (Index i = 0; i < n; ++i) y[i] = a[i] + b[i];
}
// [/residual]

// [classifier]
// loss[row] = lse - logit[target], where lse = log(sum over v < V of exp(logit[v])). The largest
// logit is taken out before the exponentials and put back after the logarithm, so the loss is
// finite for any finite logits; a probability is never divided by, nor its logarithm taken.
void cross_entropy_forward(float* loss, float* lse, const float* logits, const std::int32_t* targets,
                           Index rows, Index V, Index Vp) {
#pragma omp parallel for
  for (Index row = 0; row < rows; ++row) {
    const float* z = logits + row * Vp;
    const float largest = *std::max_element(z, z + V);
    float sum = 0;
    for (Index v = 0; v < V; ++v) sum += std::exp(z[v] - largest);
    lse[row] = largest + std::log(sum);
    loss[row] = lse[row] - z[targets[row]];
  }
}

// dlogits[v] = (softmax(logits)[v] - [v is the target]) * weight, in place of the logits; `weight` is
// what one row counts in the mean. The padded words have no part in the loss: their gradient is zero.
void cross_entropy_backward(float* logits, const float* lse, const std::int32_t* targets, float weight,
                            Index rows, Index V, Index Vp) {
#pragma omp parallel for
  for (Index row = 0; row < rows; ++row) {
    float* z = logits + row * Vp;
    for (Index v = 0; v < V; ++v) z[v] = std::exp(z[v] - lse[row]) * weight;
    z[targets[row]] -= weight;
    std::fill(z + V, z + Vp, 0.0f);
  }
}
// [/classifier]

// =================================================================================================
// 5. The model
// =================================================================================================

// [activations]
// What the forward pass keeps for the backward pass, for one block of rows = B T.
struct BlockActivations {
  float *ln1, *ln1_mean, *ln1_rstd;  // (rows, C), (rows), (rows)
  float *qkv, *probability;          // (rows, 3C), (B, H, T, T)
  float *attended, *middle;          // (rows, C): attention's output; the stream after attention
  float *ln2, *ln2_mean, *ln2_rstd;  // (rows, C), (rows), (rows)
  float *fc, *gelu;                  // (rows, 4C)
  float *stream;                     // (rows, C): the stream after the block
};

struct Activations {
  float* embedded;  // (rows, C): the stream before the first block
  std::vector<BlockActivations> blocks;
  float *lnf, *lnf_mean, *lnf_rstd;  // (rows, C), (rows), (rows)
  float *logits, *loss, *lse;        // (rows, Vp), (rows), (rows)
  float* branch;                     // (rows, C): what is about to join the stream
  float *d_stream, *d_branch;        // (rows, C): gradients, only when training
  float* d_wide;                     // (rows, 4C): of fc and gelu, then of qkv

  // Carves everything out of one buffer and returns how many floats that takes; with a null buffer
  // it only counts, which is how the memory plan is made.
  Index carve(float* buffer, const Config& config, Index B, Index T, bool training) {
    const Index rows = B * T, wide = rows * config.C;
    Index used = 0;
    const auto take = [&](Index size) {
      float* start = buffer ? buffer + used : nullptr;
      used += (size + 63) / 64 * 64;
      return start;
    };
    embedded = take(wide);
    blocks.resize(std::size_t(config.L));
    for (BlockActivations& block : blocks)
      block = {take(wide), take(rows), take(rows), take(3 * wide), take(B * config.H * T * T), take(wide),
               take(wide), take(wide), take(rows), take(rows),     take(4 * wide),             take(4 * wide),
               take(wide)};
    lnf = take(wide), lnf_mean = take(rows), lnf_rstd = take(rows);
    logits = take(rows * config.Vp()), loss = take(rows), lse = take(rows);
    branch = take(wide);
    d_stream = take(training ? wide : 0), d_branch = take(training ? wide : 0);
    d_wide = take(training ? 4 * wide : 0);
    return used;
  }
};
// [/activations]

// [memory-plan]
// Every allocation of a model with its floats, known before the first of them is made.
using MemoryPlan = std::vector<std::pair<const char*, Index>>;

MemoryPlan plan_memory(const Config& config, Index B, Index T, bool training) {
  const Index parameters = make_layout(config).size;
  MemoryPlan plan = {{"parameters", parameters}};
  if (training) plan.insert(plan.end(), {{"gradients", parameters}, {"AdamW m", parameters}, {"AdamW v", parameters}});
  plan.push_back({"activations", Activations().carve(nullptr, config, B, T, training)});
  return plan;
}
// [/memory-plan]

// [model]
struct Model {
  Config config;
  Index B, T;  // the largest batch that the activations have room for
  Layout layout;
  Buffer parameters, gradients, m, v, workspace;
  View weight, gradient;
  Activations act;

  // Parameters are all zero until `initialise` or `load_model` fills them.
  Model(const Config& shape, Index max_B, Index max_T, bool training)
      : config(shape), B(max_B), T(max_T), layout(make_layout(shape)),
        parameters(layout.size, "parameters"),
        gradients(training ? layout.size : 0, "gradients"),
        m(training ? layout.size : 0, "AdamW's first moments"),
        v(training ? layout.size : 0, "AdamW's second moments"),
        workspace(act.carve(nullptr, shape, B, T, training), "activations"),
        weight(layout, parameters), gradient(layout, gradients) {
    act.carve(workspace, shape, B, T, training);
  }
  Model(const Model&) = delete;

  // Runs `batch` sequences of `length` tokens through all blocks; act.lnf (rows, C) is the result.
  void forward(const std::int32_t* tokens, Index batch, Index length);

  // act.logits (count, Vp) for the rows from `first` on of the last forward pass.
  void classify(Index first, Index count) {
    linear_forward(act.logits, act.lnf + first * config.C, weight.wte, nullptr, count, config.C, config.Vp());
  }

  // The sum of the losses (nats) over the rows of the last forward pass, given the token that
  // follows in each of them.
  double loss(const std::int32_t* targets, Index batch, Index length) {
    classify(0, batch * length);
    cross_entropy_forward(act.loss, act.lse, act.logits, targets, batch * length, config.V, config.Vp());
    return std::accumulate(act.loss, act.loss + batch * length, 0.0);
  }

  // Adds the gradient of loss_weight * loss() to `gradients`. Overwrites logits and probabilities.
  void backward(const std::int32_t* tokens, const std::int32_t* targets, Index batch, Index length,
                float loss_weight);
};

void Model::forward(const std::int32_t* tokens, Index batch, Index length) {
  const Index C = config.C, rows = batch * length;
  for (Index i = 0; i < rows; ++i)
    if (tokens[i] < 0 || tokens[i] >= config.V)
      fail("token ", tokens[i], " at position ", i, " of a batch is outside the vocabulary of ", config.V);
  if (length > config.maxT) fail("a sequence of ", length, " tokens does not fit the model's ", config.maxT, " positions");
  embedding_forward(act.embedded, tokens, weight.wte, weight.wpe, batch, length, C);
  const float* stream = act.embedded;
  for (std::size_t l = 0; l < act.blocks.size(); ++l) {
    const Block& w = weight.blocks[l];
    BlockActivations& a = act.blocks[l];
    layernorm_forward(a.ln1, a.ln1_mean, a.ln1_rstd, stream, w.ln1_weight, w.ln1_bias, rows, C);
    linear_forward(a.qkv, a.ln1, w.qkv_weight, w.qkv_bias, rows, C, 3 * C);
    attention_forward(a.attended, a.probability, a.qkv, batch, length, C, config.H);
    linear_forward(act.branch, a.attended, w.attn_proj_weight, w.attn_proj_bias, rows, C, C);
    residual_forward(a.middle, stream, act.branch, rows * C);
    layernorm_forward(a.ln2, a.ln2_mean, a.ln2_rstd, a.middle, w.ln2_weight, w.ln2_bias, rows, C);
    linear_forward(a.fc, a.ln2, w.fc_weight, w.fc_bias, rows, C, 4 * C);
    gelu_forward(a.gelu, a.fc, rows * 4 * C);
    linear_forward(act.branch, a.gelu, w.fc_proj_weight, w.fc_proj_bias, rows, 4 * C, C);
    residual_forward(a.stream, a.middle, act.branch, rows * C);
    stream = a.stream;
  }
  layernorm_forward(act.lnf, act.lnf_mean, act.lnf_rstd, stream, weight.lnf_weight, weight.lnf_bias, rows, C);
}

// The forward pass read from its end. d_stream is the gradient with respect to the residual stream:
// each branch takes it as the gradient of its output and adds to it that of its input.
void Model::backward(const std::int32_t* tokens, const std::int32_t* targets, Index batch, Index length,
                     float loss_weight) {
  const Index C = config.C, rows = batch * length;
  cross_entropy_backward(act.logits, act.lse, targets, loss_weight, rows, config.V, config.Vp());
  linear_backward(act.d_branch, gradient.wte, nullptr, act.logits, act.lnf, weight.wte, rows, C, config.Vp());
  std::fill_n(act.d_stream, rows * C, 0.0f);
  layernorm_backward(act.d_stream, gradient.lnf_weight, gradient.lnf_bias, act.d_branch, act.blocks.back().stream,
                     weight.lnf_weight, act.lnf_mean, act.lnf_rstd, rows, C);
  for (std::size_t l = act.blocks.size(); l-- > 0;) {
    const Block &w = weight.blocks[l], &g = gradient.blocks[l];
    const BlockActivations& a = act.blocks[l];
    const float* stream = l == 0 ? act.embedded : act.blocks[l - 1].stream;
    linear_backward(act.d_wide, g.fc_proj_weight, g.fc_proj_bias, act.d_stream, a.gelu, w.fc_proj_weight, rows, 4 * C, C);
    gelu_backward(act.d_wide, act.d_wide, a.fc, rows * 4 * C);
    linear_backward(act.d_branch, g.fc_weight, g.fc_bias, act.d_wide, a.ln2, w.fc_weight, rows, C, 4 * C);
    layernorm_backward(act.d_stream, g.ln2_weight, g.ln2_bias, act.d_branch, a.middle, w.ln2_weight, a.ln2_mean,
                       a.ln2_rstd, rows, C);
    linear_backward(act.d_branch, g.attn_proj_weight, g.attn_proj_bias, act.d_stream, a.attended,
                    w.attn_proj_weight, rows, C, C);
    attention_backward(act.d_wide, a.probability, act.d_branch, a.qkv, batch, length, C, config.H);
    linear_backward(act.d_branch, g.qkv_weight, g.qkv_bias, act.d_wide, a.ln1, w.qkv_weight, rows, C, 3 * C);
    layernorm_backward(act.d_stream, g.ln1_weight, g.ln1_bias, act.d_branch, stream, w.ln1_weight, a.ln1_mean,
                       a.ln1_rstd, rows, C);
  }
  embedding_backward(gradient.wte, gradient.wpe, act.d_stream, tokens, batch, length, C);
}
// [/model]

// =================================================================================================
// 6. AdamW, schedules, outliers
// =================================================================================================

// [norm]
// The L2 norm of a whole gradient. Chunks are summed in double precision and then one after the
// other, so that the number of threads changes nothing.
double global_norm(const float* gradient, Index size) {
  constexpr Index chunk = 1 << 14;
  std::vector<double> sums(std::size_t((size + chunk - 1) / chunk));
#pragma omp parallel for
  for (Index i = 0; i < Index(sums.size()); ++i)
    for (Index j = i * chunk; j < std::min((i + 1) * chunk, size); ++j)
      sums[std::size_t(i)] += double(gradient[j]) * gradient[j];
  return std::sqrt(std::accumulate(sums.begin(), sums.end(), 0.0));
}
// [/norm]

// [adamw]
// AdamW (Loshchilov and Hutter 2019): Adam's step, with the decay taken from the weights directly
// instead of added to the gradient. `update` counts from 1; `scale` is what clipping leaves of g.
struct AdamW {
  double lr, beta1, beta2, eps, weight_decay;
};

void adamw_update(const Layout& layout, float* parameters, const float* gradients, float* m, float* v,
                  const AdamW& o, Index update, double scale) {
  const float beta1 = float(o.beta1), beta2 = float(o.beta2), eps = float(o.eps), s = float(scale);
  const float step = float(o.lr / (1.0 - std::pow(o.beta1, double(update))));
  const float v_scale = float(1.0 / std::sqrt(1.0 - std::pow(o.beta2, double(update))));
  for (const Tensor& tensor : layout.tensors) {
    const float decay = tensor.decay ? float(o.lr * o.weight_decay) : 0.0f;
#pragma omp parallel for simd
    for (Index i = tensor.offset; i < tensor.offset + tensor.size; ++i) {
      const float g = gradients[i] * s;
      m[i] = beta1 * m[i] + (1.0f - beta1) * g;
      v[i] = beta2 * v[i] + (1.0f - beta2) * g * g;
      parameters[i] -= step * m[i] / (std::sqrt(v[i]) * v_scale + eps) + decay * parameters[i];
    }
  }
}
// [/adamw]

// [schedule]
// The learning rate of step s = 0 ... steps - 1 as a share of the peak: a linear warm-up, then a
// descent to `final_share`, which the last step reaches. "wsd" (warm-up, stable, decay) holds the peak for
// four fifths of the run and then falls with the square root (Hagele et al. 2024).
double schedule_share(const std::string& name, Index s, Index steps, Index warmup, double final_share) {
  if (s < warmup) return double(s + 1) / double(warmup);
  const auto progress = [&](Index from) {
    return std::min(1.0, double(s - from) / double(std::max<Index>(1, steps - 1 - from)));
  };
  double left = 1.0;  // of the way from final_share up to the peak
  if (name == "linear") left = 1.0 - progress(warmup);
  if (name == "cosine") left = 0.5 * (1.0 + std::cos(std::numbers::pi * progress(warmup)));
  if (const Index decay = std::max(warmup, steps * 4 / 5); name == "wsd" && s >= decay)
    left = 1.0 - std::sqrt(progress(decay));
  return final_share + left * (1.0 - final_share);
}
// [/schedule]

// [outliers]
// Tells values that lie far above the last 128 accepted ones. A value is held against the window
// before it enters it, and one that is refused never enters.
struct OutlierWindow {
  static constexpr std::size_t capacity = 128;
  std::deque<double> values;

  // Standard deviations above the mean; 0 until the window is full. NaN and infinity are infinitely
  // far out, at any time.
  double z(double value) const {
    if (!std::isfinite(value)) return std::numeric_limits<double>::infinity();
    if (values.size() < capacity) return 0;
    const double mean = std::accumulate(values.begin(), values.end(), 0.0) / double(capacity);
    double squares = 0;
    for (const double x : values) squares += (x - mean) * (x - mean);
    return (value - mean) / std::max(std::sqrt(squares / double(capacity)), 1e-12);
  }
  void accept(double value) {
    values.push_back(value);
    if (values.size() > capacity) values.pop_front();
  }
};
// [/outliers]

// =================================================================================================
// 7. Data and tokens
// =================================================================================================

// [split]
// The shards of one split ("train" or "val") of a data set directory, cut into windows of T + 1
// tokens that start at multiples of T: the last token of one is the first of the next. Windows do
// not cross shards, and what is left at a shard's end, fewer than T tokens, is not used.
class Split {
 public:
  Split(const fs::path& directory, const std::string& name, Index T, Index vocabulary)
      : T_(T), vocabulary_(vocabulary) {
    std::vector<fs::path> paths;
    for (const auto& entry : fs::directory_iterator(directory))
      if (const std::string file = entry.path().filename().string();
          file.starts_with(name + "_") && file.ends_with(".bin"))
        paths.push_back(entry.path());
    std::sort(paths.begin(), paths.end());
    for (const fs::path& path : paths) add(path);
    if (windows_ == 0)
      fail("'", directory.string(), "' has no ", name, " window of ", T, " + 1 tokens (", paths.size(),
           " shards, ", tokens_, " tokens); give it more text or lower --seq");
  }

  Index windows() const { return windows_; }
  Index tokens() const { return tokens_; }

  // Writes window number `window` as T inputs and the T targets that follow them.
  void read(Index window, std::int32_t* inputs, std::int32_t* targets) {
    const Shard& shard = *std::prev(std::upper_bound(shards_.begin(), shards_.end(), window,
        [](Index w, const Shard& s) { return w < s.first_window; }));
    std::vector<std::uint16_t> raw(std::size_t(T_ + 1));
    const Index start = (window - shard.first_window) * T_;
    std::ifstream file(shard.path, std::ios::binary);
    file.seekg(header_bytes + start * 2);
    if (!file.read(reinterpret_cast<char*>(raw.data()), std::streamsize(raw.size() * 2)))
      fail("cannot read tokens ", start, " to ", start + T_, " of '", shard.path.string(), "'");
    for (Index t = 0; t <= T_; ++t) {
      const std::int32_t token = raw[std::size_t(t)];
      if (token >= vocabulary_)
        fail("'", shard.path.string(), "' has token ", token, " at position ", start + t,
             ", but the model's vocabulary ends at ", vocabulary_ - 1);
      if (t < T_) inputs[t] = token;
      if (t > 0) targets[t - 1] = token;
    }
  }

 private:
  struct Shard {
    fs::path path;
    Index first_window;
  };
  static constexpr Index header_bytes = 1024;

  void add(const fs::path& path) {  // llm.c's format: 256 int32 of header, then uint16 tokens
    std::array<std::uint32_t, 256> header{};
    std::ifstream file(path, std::ios::binary);
    if (!file.read(reinterpret_cast<char*>(header.data()), header_bytes))
      fail("'", path.string(), "' is too short for the 1024 bytes of a shard's header");
    if (header[0] != 20240520 || header[1] != 1)
      fail("'", path.string(), "' is not a shard: it starts with ", header[0], " version ", header[1],
           ", expected 20240520 version 1");
    const Index count = header[2], bytes = Index(fs::file_size(path));
    if (bytes != header_bytes + 2 * count)
      fail("'", path.string(), "' should have ", header_bytes + 2 * count, " bytes for its ", count,
           " tokens, but has ", bytes);
    shards_.push_back({path, windows_});
    windows_ += count > T_ ? (count - 1) / T_ : 0;
    tokens_ += count;
  }

  Index T_, vocabulary_, windows_ = 0, tokens_ = 0;
  std::vector<Shard> shards_;
};
// [/split]

// [shuffle]
// Where number q of 0 ... n - 1 goes in the shuffle of an epoch: a Feistel network on the next power
// of four, walked until it lands below n. A bijection by construction, so every window comes up
// exactly once an epoch, and there is no list to store: position and seed say everything.
Index permute(Index q, Index n, std::uint64_t seed, Index epoch) {
  int half = 1;
  while (Index{1} << (2 * half) < n) ++half;
  const std::uint64_t mask = (std::uint64_t{1} << half) - 1;
  auto x = static_cast<std::uint64_t>(q);
  do {
    std::uint64_t left = x >> half, right = x & mask;
    for (std::uint64_t round = 0; round < 4; ++round) {
      const std::uint64_t key = mix(mix(seed) + 4 * std::uint64_t(epoch) + round);
      left = std::exchange(right, left ^ (mix(right ^ key) & mask));
    }
    x = left << half | right;
  } while (x >= std::uint64_t(n));
  return Index(x);
}

// One micro-batch: inputs and targets, each (B, T).
struct Batch {
  Index B, T;
  std::vector<std::int32_t> inputs, targets;
  Batch(Index b, Index t) : B(b), T(t), inputs(std::size_t(b * t)), targets(std::size_t(b * t)) {}
};

// Fills `batch` with the windows at stream positions `position` on. An endless stream: epoch after
// epoch, each in its own order.
void deal(Split& split, std::uint64_t seed, Index position, Batch& batch) {
  for (Index b = 0; b < batch.B; ++b) {
    const Index epoch = (position + b) / split.windows(), slot = (position + b) % split.windows();
    split.read(permute(slot, split.windows(), seed, epoch), &batch.inputs[std::size_t(b * batch.T)],
               &batch.targets[std::size_t(b * batch.T)]);
  }
}
// [/shuffle]

// [tokenizer]
// The words of the vocabulary, from llm.c's tokenizer.bin: enough to print what a model says and
// to encode a prompt.
class Tokenizer {
 public:
  explicit Tokenizer(const fs::path& path) : name_("'" + path.string() + "'") {
    const std::string file = read_text(path);
    std::array<std::uint32_t, 256> header{};
    if (file.size() < sizeof header) fail(name_, " is too short for the 1024 bytes of a tokenizer's header");
    std::memcpy(header.data(), file.data(), sizeof header);
    if (header[0] != 20240328 || header[1] < 1 || header[1] > 2)
      fail(name_, " is not a tokenizer: it starts with ", header[0], " version ", header[1],
           ", expected 20240328 version 1 or 2");
    end_of_text_ = header[1] == 1 ? 50256 : std::int32_t(header[3]);
    std::size_t at = sizeof header;
    for (std::uint32_t id = 0; id < header[2]; ++id) {
      const std::size_t size = at < file.size() ? static_cast<unsigned char>(file[at]) : 0;
      if (size == 0 || at + 1 + size > file.size())
        fail(name_, " ends at token ", id, " of ", header[2], " (or that token is empty)");
      words_.push_back(file.substr(at + 1, size));
      ids_.emplace(words_.back(), std::int32_t(id));
      at += 1 + size;
    }
    if (at != file.size()) fail(name_, " has ", file.size() - at, " bytes behind its last token");
    if (end_of_text_ < 0 || end_of_text_ >= size())
      fail(name_, ": the end-of-text token ", end_of_text_, " is outside its ", size(), " tokens");
  }

  Index size() const { return Index(words_.size()); }
  std::int32_t end_of_text() const { return end_of_text_; }
  const std::string& word(std::int32_t id) const { return words_[std::size_t(id)]; }

  // Byte-pair encoding: of all neighbours that together are a word, join the pair with the lowest
  // number, again and again. GPT-2 first cuts the text by classes of Unicode characters; here only
  // ASCII is known, and a prompt with other characters is refused instead of encoded wrongly.
  std::vector<std::int32_t> encode(std::string_view prompt) const {
    std::vector<std::int32_t> out;
    for (const char c : prompt)
      if (static_cast<unsigned char>(c) >= 128)
        fail("--prompt: this stage encodes ASCII only; encode the text with `strata-data encode` and "
             "give the numbers to --prompt-tokens");
    while (!prompt.empty()) {
      const std::size_t size = piece(prompt);
      std::vector<std::string> parts;
      for (const char c : prompt.substr(0, size)) parts.emplace_back(1, c);
      for (;;) {
        std::size_t best = 0;
        std::int32_t lowest = std::numeric_limits<std::int32_t>::max();
        for (std::size_t i = 0; i + 1 < parts.size(); ++i)
          if (const auto id = ids_.find(parts[i] + parts[i + 1]); id != ids_.end() && id->second < lowest)
            lowest = id->second, best = i;
        if (lowest == std::numeric_limits<std::int32_t>::max()) break;
        parts[best] += parts[best + 1];
        parts.erase(parts.begin() + std::ptrdiff_t(best) + 1);
      }
      for (const std::string& part : parts) {
        if (!ids_.contains(part)) fail("--prompt: ", name_, " has no token for the byte ", int(part[0]));
        out.push_back(ids_.at(part));
      }
      prompt.remove_prefix(size);
    }
    return out;
  }

 private:
  // The length of the first piece of `s` under GPT-2's pattern
  //   's|'t|'re|'ve|'m|'ll|'d| ?letters| ?digits| ?others|white space, less one if text follows
  static std::size_t piece(std::string_view s) {
    const auto kind = [](char c) {
      const auto u = static_cast<unsigned char>(c);
      return std::isspace(u) || (u >= 28 && u <= 31) ? 0 : std::isalpha(u) ? 1 : std::isdigit(u) ? 2 : 3;
    };
    for (const std::string_view suffix : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"})
      if (s.starts_with(suffix)) return suffix.size();
    const std::size_t start = s[0] == ' ' && s.size() > 1 && kind(s[1]) != 0 ? 1 : 0;
    std::size_t end = start;
    while (end < s.size() && kind(s[end]) == kind(s[start])) ++end;
    const bool spaces_before_text = kind(s[start]) == 0 && end < s.size() && end > 1;
    return spaces_before_text ? end - 1 : end;
  }

  std::string name_;
  std::vector<std::string> words_;
  std::map<std::string, std::int32_t, std::less<>> ids_;
  std::int32_t end_of_text_ = 0;
};
// [/tokenizer]

// =================================================================================================
// 8. Safetensors, checkpoints, traces
// =================================================================================================

// [safetensors-write]
// Writes a file to its end and onto the disk, or says why not.
void write_file(const fs::path& path, const std::function<void(std::FILE*)>& write) {
  errno = 0;
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) fail("cannot create '", path.string(), "': ", std::strerror(errno));
  write(file);
  const bool complete = std::fflush(file) == 0 && !std::ferror(file) && fsync(fileno(file)) == 0;
  const int reason = errno;
  std::fclose(file);
  if (!complete) fail("cannot write '", path.string(), "': ", std::strerror(reason));
}

void write_text(const fs::path& path, const std::string& contents) {
  write_file(path, [&](std::FILE* file) { std::fwrite(contents.data(), 1, contents.size(), file); });
}

// One tensor of a safetensors file; `bytes` is asked for its contents when it is written.
struct Entry {
  std::string name, dtype;
  std::vector<Index> shape;
  std::function<std::vector<char>()> bytes;
  Index size() const {
    const Index width = dtype == "F64" ? 8 : 4;
    return std::accumulate(shape.begin(), shape.end(), width, std::multiplies<>());
  }
};

template <class T>
Entry make_entry(std::string name, std::vector<Index> shape, std::span<const T> values) {
  std::vector<char> copy(values.size_bytes());
  std::memcpy(copy.data(), values.data(), copy.size());
  return {std::move(name), std::is_same_v<T, double> ? "F64" : std::is_same_v<T, float> ? "F32" : "I32",
          std::move(shape), [copy = std::move(copy)] { return copy; }};
}

// The format: eight bytes with the header's size, the header in JSON, then the tensors end to end.
void write_safetensors(const fs::path& path, const std::vector<Entry>& entries, const Json::Object& metadata) {
  Json::Object header = {{"__metadata__", metadata}};
  Index offset = 0;
  for (const Entry& entry : entries) {
    const Json::Array shape(entry.shape.begin(), entry.shape.end());
    header[entry.name] = Json::Object{{"dtype", entry.dtype}, {"shape", shape},
                                      {"data_offsets", Json::Array{offset, offset + entry.size()}}};
    offset += entry.size();
  }
  std::string json = JsonWriter::write(header);
  json.resize((json.size() + 7) / 8 * 8, ' ');
  write_file(path, [&](std::FILE* file) {
    const std::uint64_t size = json.size();
    std::fwrite(&size, 8, 1, file);
    std::fwrite(json.data(), 1, json.size(), file);
    for (const Entry& entry : entries) {
      const std::vector<char> bytes = entry.bytes();
      std::fwrite(bytes.data(), 1, bytes.size(), file);
    }
  });
}
// [/safetensors-write]

// [safetensors-read]
class Safetensors {
 public:
  explicit Safetensors(const fs::path& path) : path_(path), file_(path, std::ios::binary) {
    if (!file_ || !fs::is_regular_file(path)) fail("cannot open '", path.string(), "': ", std::strerror(errno));
    std::uint64_t size = 0;
    const std::uint64_t bytes = fs::file_size(path);
    if (!file_.read(reinterpret_cast<char*>(&size), 8) || size > bytes - 8 || size > (100u << 20))
      fail("'", path.string(), "' is not a safetensors file: its ", bytes, " bytes cannot hold a header of ", size);
    std::string json(size, '\0');
    file_.read(json.data(), std::streamsize(size));
    header_ = JsonParser(json, "the header of '" + path.string() + "'").parse();
    if (!header_.get<Json::Object>()) fail("the header of '", path.string(), "' is not a JSON object");
    data_ = 8 + size;
    data_bytes_ = bytes - data_;
  }

  const Json& header() const { return header_; }
  bool contains(const std::string& name) const { return header_.find(name) != nullptr; }

  // The elements of tensor `name`, which must have this type and shape.
  template <class T>
  std::vector<T> read(const std::string& name, const std::vector<Index>& shape) {
    const std::string origin = "tensor " + name + " of '" + path_.string() + "'";
    const Json* entry = header_.find(name);
    if (entry == nullptr) fail("'", path_.string(), "' has no tensor ", name);
    const std::string expected = std::is_same_v<T, float> ? "F32" : std::is_same_v<T, double> ? "F64" : "I32";
    const Json *dtype = entry->find("dtype"), *dims = entry->find("shape"), *offsets = entry->find("data_offsets");
    if (!dtype || !dims || !offsets || !dtype->get<std::string>()) fail(origin, " is not described in full");
    if (*dtype->get<std::string>() != expected)
      fail(origin, " has type ", *dtype->get<std::string>(), ", expected ", expected);
    const auto list = [](const std::vector<Index>& numbers) {
      std::string out;
      for (const Index n : numbers) out += (out.empty() ? "" : ", ") + std::to_string(n);
      return "(" + out + ")";
    };
    if (const auto found = numbers(*dims); found != shape)
      fail(origin, " has shape ", list(found), ", expected ", list(shape));
    const auto range = numbers(*offsets);
    const Index count = std::accumulate(shape.begin(), shape.end(), Index{1}, std::multiplies<>());
    if (range.size() != 2 || range[0] < 0 || range[1] > Index(data_bytes_) ||
        range[1] - range[0] != count * Index(sizeof(T)))
      fail(origin, " lies at bytes ", list(range), " of ", data_bytes_, ", which do not fit its shape ", list(shape));
    std::vector<T> values(static_cast<std::size_t>(count));
    file_.seekg(std::streamoff(data_) + range[0]);
    if (!file_.read(reinterpret_cast<char*>(values.data()), range[1] - range[0])) fail(origin, " cannot be read");
    return values;
  }

 private:
  static std::vector<Index> numbers(const Json& json) {
    std::vector<Index> out;
    if (const auto* array = json.get<Json::Array>())
      for (const Json& item : *array) {
        const double* number = item.get<double>();
        out.push_back(number && *number >= 0 && *number < 9e15 ? Index(*number) : -1);
      }
    return out;
  }
  fs::path path_;
  std::ifstream file_;
  Json header_;
  std::uint64_t data_ = 0, data_bytes_ = 0;
};
// [/safetensors-read]

// [hugging-face]
// A tensor as Hugging Face stores it: Conv1D matrices turned to (in, out), wte without padding.
std::vector<Index> stored_shape(const Config& config, const Tensor& tensor) {
  if (tensor.name == "wte.weight") return {config.V, config.C};
  if (tensor.conv1d) return {tensor.shape[1], tensor.shape[0]};
  return tensor.shape;
}

// Copies between our buffer and the stored form; `to_store` says in which direction.
void convert(const Config& config, const Tensor& tensor, float* ours, float* stored, bool to_store) {
  const auto copy = [&](float& mine, float& theirs) { (to_store ? theirs : mine) = to_store ? mine : theirs; };
  const Index rows = tensor.conv1d ? tensor.shape[0] : 1;
  const Index columns = tensor.name == "wte.weight" ? config.V * config.C : tensor.size / rows;
  for (Index r = 0; r < rows; ++r)
    for (Index c = 0; c < columns; ++c) copy(ours[r * columns + c], stored[c * rows + r]);
}

// All tensors of one buffer as entries of a file, under `prefix` + their names. The entries read the
// buffer when they are written.
void add_entries(std::vector<Entry>& entries, const std::string& prefix, const Model& model, float* buffer) {
  for (const Tensor& tensor : model.layout.tensors) {
    const std::vector<Index> shape = stored_shape(model.config, tensor);
    entries.push_back({prefix + tensor.name, "F32", shape, [&model, &tensor, buffer] {
      std::vector<char> bytes(std::size_t(tensor.size) * sizeof(float));
      convert(model.config, tensor, buffer + tensor.offset, reinterpret_cast<float*>(bytes.data()), true);
      if (tensor.name == "wte.weight") bytes.resize(std::size_t(model.config.V * model.config.C) * sizeof(float));
      return bytes;
    }});
  }
}

void load_entries(Safetensors& file, const std::string& prefix, const Model& model, float* buffer) {
  for (const Tensor& tensor : model.layout.tensors) {
    std::vector<float> stored = file.read<float>(prefix + tensor.name, stored_shape(model.config, tensor));
    convert(model.config, tensor, buffer + tensor.offset, stored.data(), false);
  }
}

// The shape of the model in a Hugging Face directory; refuses what this trainer does not compute.
Config read_config(const fs::path& directory) {
  const fs::path path = directory / "config.json";
  const Json json = read_json(path);
  const auto expect = [&](const char* key, const Json& wanted) {
    const Json* found = json.find(key);
    if (found && !found->get<std::nullptr_t>() && found->value != wanted.value)
      fail("\"", key, "\" in '", path.string(), "' is ", JsonWriter::write(*found), ", but this trainer computes only ",
           JsonWriter::write(wanted));
  };
  if (!json.find("model_type")) fail("'", path.string(), "' has no \"model_type\": it is no Hugging Face configuration");
  expect("model_type", "gpt2");
  if (const Json* name = json.find("activation_function"); name && name->value != Json("gelu_pytorch_tanh").value)
    expect("activation_function", "gelu_new");
  expect("layer_norm_epsilon", 1e-5);
  expect("scale_attn_weights", true);
  expect("scale_attn_by_inverse_layer_idx", false);
  expect("tie_word_embeddings", true);
  const auto number = [&](const char* key) { return whole(json, key, path, 1, Index{1} << 24); };
  const Config config = {number("n_layer"), number("n_embd"), number("n_head"), number("n_positions"), number("vocab_size")};
  expect("n_inner", double(4 * config.C));
  validate(config, "'" + path.string() + "'");
  return config;
}

void load_model(const fs::path& directory, const Model& model) {
  Safetensors file(directory / "model.safetensors");
  const bool prefixed = file.contains("transformer.wte.weight");
  load_entries(file, prefixed ? "transformer." : "", model, model.parameters);
}

Json::Object hugging_face_config(const Config& config, std::int32_t end_of_text) {
  return {{"model_type", "gpt2"}, {"architectures", Json::Array{"GPT2LMHeadModel"}}, {"n_layer", config.L},
          {"n_embd", config.C}, {"n_head", config.H}, {"n_positions", config.maxT}, {"vocab_size", config.V},
          {"activation_function", "gelu_new"}, {"layer_norm_epsilon", 1e-5}, {"tie_word_embeddings", true},
          {"bos_token_id", end_of_text}, {"eos_token_id", end_of_text}, {"torch_dtype", "float32"}};
}
// [/hugging-face]

// =================================================================================================
// 9. Sampling
// =================================================================================================

// [pick]
struct SampleOptions {
  double temperature = 1, top_p = 1;
  Index top_k = 0, seed = 0;
};

// Picks a token from logits[0 .. V) with draw `u` in [0, 1): of the `top_k` likeliest (0: of all), and of
// those the fewest that together reach `top_p`. Temperature 0 takes the likeliest.
std::int32_t pick_token(const float* logits, Index V, const SampleOptions& options, double u) {
  std::vector<std::int32_t> order(static_cast<std::size_t>(V));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) { return logits[a] > logits[b]; });
  if (options.temperature == 0) return order[0];
  if (options.top_k > 0) order.resize(std::size_t(std::min(options.top_k, V)));
  std::vector<double> mass;
  double total = 0;
  for (const std::int32_t id : order) {
    mass.push_back(std::exp((double(logits[id]) - logits[order[0]]) / options.temperature));
    total += mass.back();
  }
  double kept = 0;
  std::size_t count = 0;
  while (count < mass.size() && (count == 0 || kept < options.top_p * total)) kept += mass[count++];
  double left = u * kept;
  for (std::size_t i = 0; i + 1 < count; ++i)
    if ((left -= mass[i]) < 0) return order[i];
  return order[count - 1];
}

// Continues `tokens` by up to `count` tokens, ending early after `end_of_text`, and returns the new ones. The
// model sees the last act-T tokens; every one of them is run through the model again for each new one.
std::vector<std::int32_t> sample(Model& model, std::vector<std::int32_t> tokens, Index count, Index vocabulary,
                                 std::int32_t end_of_text, const SampleOptions& options) {
  const std::size_t start = tokens.size();
  for (Index i = 0; i < count; ++i) {
    const Index length = std::min({Index(tokens.size()), model.T, model.config.maxT});
    model.forward(tokens.data() + (Index(tokens.size()) - length), 1, length);
    model.classify(length - 1, 1);
    const double u = double(mix(mix(std::uint64_t(options.seed)) + std::uint64_t(i)) >> 11) * 0x1p-53;
    tokens.push_back(pick_token(model.act.logits, std::min(vocabulary, model.config.V), options, u));
    if (tokens.back() == end_of_text) break;
  }
  return {tokens.begin() + std::ptrdiff_t(start), tokens.end()};
}
// [/pick]

// =================================================================================================
// 10. Settings, the training loop, main
// =================================================================================================

// [settings]
struct Settings {
  std::string data = "datasets/tales", out, init = "L4,C128,H4,T128,V1024", schedule = "cosine";
  Index batch = 16, seq = 0, accum = 1, steps = 1000, warmup = 100;
  double lr = 1e-3, final_lr = 0.1, weight_decay = 0.1, beta1 = 0.9, beta2 = 0.95, eps = 1e-8, clip = 1;
  double skip_loss_z = 0, skip_norm_z = 0;
  Index val_every = 100, val_batches = 20, sample_every = 250, sample_tokens = 200;
  double temperature = 1, top_p = 1;
  Index top_k = 0, sample_seed = 1;
  std::string prompt, prompt_tokens;
  Index checkpoint_every = 250, keep = 2, keep_every = 0, seed = 42, data_seed = 1, threads = 0;
  std::string trace, trace_steps = "0", replay;
  bool resume = false, overfit = false, plan = false, sample = false, help = false;
};

// One flag: its name, where its value goes, the range it may have, and the sentence of --help.
struct Flag {
  std::string name;
  std::variant<Index*, double*, std::string*, bool*> value;
  double low = 0, high = 0;
  std::string help;
};

std::vector<Flag> make_flags(Settings& s) {
  constexpr double many = 1e12, any = 1e6;
  return {
      {"data", &s.data, 0, 0, "directory of a data set (dataset.json, shards, tokenizer)"},
      {"out", &s.out, 0, 0, "directory for metrics and checkpoints; without it nothing is saved"},
      {"init", &s.init, 0, 0, "model: d12, gpt3:c768, L4,C128,H4,T128,V1024, or a directory to start from"},
      {"resume", &s.resume, 0, 0, "go on from the newest checkpoint in --out, with its settings"},
      {"batch", &s.batch, 1, any, "sequences in a micro-batch (B)"},
      {"seq", &s.seq, 0, 1 << 20, "tokens in a sequence (T); 0: as many as the model has positions"},
      {"accum", &s.accum, 1, any, "micro-batches whose gradients make one step"},
      {"steps", &s.steps, 1, many, "steps of the whole run"},
      {"lr", &s.lr, 0, 10, "peak learning rate"},
      {"schedule", &s.schedule, 0, 0, "constant, cosine, linear or wsd"},
      {"warmup", &s.warmup, 0, many, "steps over which the learning rate rises from zero"},
      {"final-lr", &s.final_lr, 0, 1, "share of the peak that the last step has (not for constant)"},
      {"weight-decay", &s.weight_decay, 0, 10, "AdamW's decay of matrices"},
      {"beta1", &s.beta1, 0, 0.9999999, "AdamW's decay of the first moment"},
      {"beta2", &s.beta2, 0, 0.9999999, "AdamW's decay of the second moment"},
      {"eps", &s.eps, 1e-15, 1, "AdamW's guard of the division"},
      {"clip", &s.clip, 0, any, "largest norm of the gradient; 0: no clipping"},
      {"skip-loss-z", &s.skip_loss_z, 0, any, "skip a step whose loss is so many deviations too high; 0: never"},
      {"skip-norm-z", &s.skip_norm_z, 0, any, "the same for the gradient's norm"},
      {"val-every", &s.val_every, 0, many, "steps from validation to validation; 0: never"},
      {"val-batches", &s.val_batches, -1, many, "batches of a validation; -1: the whole split"},
      {"sample-every", &s.sample_every, 0, many, "steps from sample to sample; 0: never"},
      {"sample-tokens", &s.sample_tokens, 1, any, "length of a sample, at most"},
      {"temperature", &s.temperature, 0, 100, "of the samples; 0: always the likeliest token"},
      {"top-k", &s.top_k, 0, any * 16, "sample from the k likeliest tokens; 0: from all"},
      {"top-p", &s.top_p, 1e-6, 1, "sample from the likeliest tokens that have this share together"},
      {"prompt", &s.prompt, 0, 0, "text that samples go on from (ASCII)"},
      {"prompt-tokens", &s.prompt_tokens, 0, 0, "the same in token numbers: 464,3290"},
      {"sample-seed", &s.sample_seed, 0, 9e15, "seed of the samples"},
      {"checkpoint-every", &s.checkpoint_every, 0, many, "steps from checkpoint to checkpoint; 0: at the end only"},
      {"keep", &s.keep, 0, any, "checkpoints to keep; 0: all"},
      {"keep-every", &s.keep_every, 0, many, "never delete checkpoints at multiples of this step; 0: none"},
      {"seed", &s.seed, 0, 4294967295.0, "seed of the initial weights"},
      {"data-seed", &s.data_seed, 0, 9e15, "seed of the order of the training windows"},
      {"threads", &s.threads, 0, 1024, "threads to compute with; 0: as many as there are processors"},
      {"trace", &s.trace, 0, 0, "write losses and the full state of some steps to this safetensors file"},
      {"trace-steps", &s.trace_steps, 0, 0, "the steps that --trace keeps: 0,5,10"},
      {"replay", &s.replay, 0, 0, "do the steps of this trace again, each from its recorded state"},
      {"overfit", &s.overfit, 0, 0, "train on the first batch again and again"},
      {"plan", &s.plan, 0, 0, "print the memory plan and stop"},
      {"sample", &s.sample, 0, 0, "only sample, from the model in the directory --init"},
      {"help", &s.help, 0, 0, "this text"},
  };
}

// Numbers in the shortest form that reads back to the same bits.
std::string to_text(const Flag& flag) {
  if (const auto* number = std::get_if<double*>(&flag.value)) {
    char digits[40];
    return {digits, std::to_chars(digits, digits + sizeof digits, **number).ptr};
  }
  if (const auto* integer = std::get_if<Index*>(&flag.value)) return std::to_string(**integer);
  if (const auto* on = std::get_if<bool*>(&flag.value)) return **on ? "true" : "false";
  return *std::get<std::string*>(flag.value);
}

void set_flag(const Flag& flag, const std::string& value) {
  const char *begin = value.c_str(), *end = begin + value.size();
  const auto check = [&](auto& target, const char* kind) {
    auto parsed = target;
    const auto [stop, error] = std::from_chars(begin, end, parsed);
    if (error != std::errc() || stop != end || !(double(parsed) >= flag.low && double(parsed) <= flag.high))
      fail("--", flag.name, " is '", value, "', expected ", kind, " from ", flag.low, " to ", flag.high);
    target = parsed;
  };
  if (const auto* integer = std::get_if<Index*>(&flag.value)) check(**integer, "a whole number");
  else if (const auto* number = std::get_if<double*>(&flag.value)) check(**number, "a number");
  else if (const auto* on = std::get_if<bool*>(&flag.value)) **on = value == "true";
  else *std::get<std::string*>(flag.value) = value;
}

const Flag& find_flag(const std::vector<Flag>& flags, const std::string& name) {
  for (const Flag& flag : flags)
    if (flag.name == name) return flag;
  fail("--", name, " is not a flag of this program; --help lists them");
}

// Accepts "--flag value" and "--flag=value"; switches stand alone.
void parse_arguments(Settings& settings, const std::vector<std::string>& arguments) {
  const std::vector<Flag> flags = make_flags(settings);
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (!arguments[i].starts_with("--")) fail("'", arguments[i], "' is no flag; flags start with --, see --help");
    const std::size_t equals = arguments[i].find('=');
    const Flag& flag = find_flag(flags, arguments[i].substr(2, equals == std::string::npos ? equals : equals - 2));
    if (std::holds_alternative<bool*>(flag.value)) {
      if (equals != std::string::npos) fail("--", flag.name, " is a switch and takes no value");
      set_flag(flag, "true");
    } else if (equals != std::string::npos) {
      set_flag(flag, arguments[i].substr(equals + 1));
    } else {
      if (i + 1 == arguments.size()) fail("--", flag.name, " needs a value: ", flag.help);
      set_flag(flag, arguments[++i]);
    }
  }
  for (const char* known : {"constant", "cosine", "linear", "wsd"})
    if (settings.schedule == known) return;
  fail("--schedule is '", settings.schedule, "', expected constant, cosine, linear or wsd");
}

void print_help() {
  Settings defaults;
  std::printf("strata01: trains GPT-2 on a processor. One file, fp32.\n\nusage: strata01 [flags]\n\n");
  for (const Flag& flag : make_flags(defaults)) {
    const bool on_off = std::holds_alternative<bool*>(flag.value);
    const std::string value = on_off ? "" : " [" + to_text(flag) + "]";
    std::printf("  --%-34s %s\n", (flag.name + value).c_str(), flag.help.c_str());
  }
}

// "1,2,3" as numbers; `flag` is named in messages.
std::vector<Index> number_list(const std::string& list, const char* flag, Index high) {
  std::vector<Index> numbers;
  std::istringstream parts(list);
  for (std::string part; std::getline(parts, part, ',');) {
    Index number = -1;
    const auto [stop, error] = std::from_chars(part.data(), part.data() + part.size(), number);
    if (error != std::errc() || stop != part.data() + part.size() || number < 0 || number > high)
      fail(flag, ": '", part, "' should be a number from 0 to ", high, ", in a list like 0,5,10");
    numbers.push_back(number);
  }
  return numbers;
}
// [/settings]

// [train-step]
// What a run is, beside its weights: saved in checkpoints, and enough to go on to the bit.
struct State {
  Index step = 0, updates = 0, tokens = 0, position = 0;
  OutlierWindow losses, norms;
};

struct StepResult {
  double loss = 0, norm = 0, lr = 0, loss_z = 0, norm_z = 0;
  bool skipped = false;
};

// One optimizer step on micro-batches of one shape: their mean gradient, clipped, unless loss or norm
// is an outlier. `on_logits` sees the logits of every micro-batch (traces record them).
StepResult train_step(Model& model, const std::vector<Batch>& batches, const Settings& s, State& state,
                      const std::function<void(const float*)>& on_logits = {}) {
  StepResult result;
  const Index rows = batches[0].B * batches[0].T, all_rows = rows * Index(batches.size());
  model.gradients.zero();
  for (const Batch& batch : batches) {
    model.forward(batch.inputs.data(), batch.B, batch.T);
    result.loss += model.loss(batch.targets.data(), batch.B, batch.T) / double(all_rows);
    if (on_logits) on_logits(model.act.logits);
    model.backward(batch.inputs.data(), batch.targets.data(), batch.B, batch.T, 1.0f / float(all_rows));
  }
  result.norm = global_norm(model.gradients, model.layout.size);
  result.loss_z = state.losses.z(result.loss);
  result.norm_z = state.norms.z(result.norm);
  result.lr = s.lr * schedule_share(s.schedule, state.step, s.steps, s.warmup, s.final_lr);
  result.skipped = !std::isfinite(result.loss) || !std::isfinite(result.norm) ||
                   (s.skip_loss_z > 0 && result.loss_z > s.skip_loss_z) ||
                   (s.skip_norm_z > 0 && result.norm_z > s.skip_norm_z);
  if (!result.skipped) {
    const double scale = s.clip > 0 && result.norm > s.clip ? s.clip / result.norm : 1.0;
    adamw_update(model.layout, model.parameters, model.gradients, model.m, model.v,
                 {result.lr, s.beta1, s.beta2, s.eps, s.weight_decay}, ++state.updates, scale);
    state.losses.accept(result.loss);
    state.norms.accept(result.norm);
  }
  ++state.step;
  state.tokens += all_rows;
  return result;
}
// [/train-step]

// [checkpoint]
std::string step_name(Index step) {
  char name[32];
  std::snprintf(name, sizeof name, "step_%08lld", static_cast<long long>(step));
  return name;
}

// The finished checkpoints in `out`, oldest first. One that was not finished is still called *.tmp.
std::vector<fs::path> list_checkpoints(const fs::path& out) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(out))
    if (const std::string name = entry.path().filename().string();
        name.starts_with("step_") && name.size() >= 13 && name.find_first_not_of("0123456789", 5) == name.npos)
      found.push_back(entry.path());
  std::sort(found.begin(), found.end(), [](const fs::path& a, const fs::path& b) {
    return std::stoll(a.filename().string().substr(5)) < std::stoll(b.filename().string().substr(5));
  });
  return found;
}

void sync_directory(const fs::path& path) {
  const int descriptor = open(path.c_str(), O_RDONLY);
  const bool synced = descriptor >= 0 && fsync(descriptor) == 0;
  if (descriptor >= 0) close(descriptor);
  if (!synced) fail("cannot sync '", path.string(), "' to the disk: ", std::strerror(errno));
}

Json::Object describe_settings(Settings settings) {
  Json::Object described;
  for (const Flag& flag : make_flags(settings)) described[flag.name] = to_text(flag);
  return described;
}

Json::Object describe_state(const State& state, const Settings& settings, Index train_tokens) {
  const auto list = [](const OutlierWindow& window) { return Json::Array(window.values.begin(), window.values.end()); };
  return {{"format", 1}, {"stage", "01"}, {"step", state.step}, {"updates", state.updates}, {"tokens", state.tokens},
          {"position", state.position}, {"train_tokens", train_tokens}, {"losses", list(state.losses)},
          {"norms", list(state.norms)}, {"settings", describe_settings(settings)}};
}

// Writes `out`/step_N beside its place and moves it there when it is whole and on the disk, so that a
// crash at any moment leaves the checkpoints before it as they are. Then deletes what --keep does not keep.
void save_checkpoint(const Model& model, const Settings& s, const State& state, Index train_tokens,
                     std::int32_t end_of_text) {
  const fs::path final = fs::path(s.out) / step_name(state.step), building = final.string() + ".tmp";
  try {
    fs::remove_all(building);
    fs::create_directories(building);
    std::vector<Entry> weights, moments;
    add_entries(weights, "", model, model.parameters);
    add_entries(moments, "m.", model, model.m);
    add_entries(moments, "v.", model, model.v);
    write_safetensors(building / "model.safetensors", weights, {{"format", "pt"}});
    write_safetensors(building / "optimizer-00000-of-00001.safetensors", moments, {});
    write_text(building / "config.json", JsonWriter::write(hugging_face_config(model.config, end_of_text)) + "\n");
    for (const char* name : {"tokenizer.json", "tokenizer.bin"})
      if (fs::exists(fs::path(s.data) / name)) write_text(building / name, read_text(fs::path(s.data) / name));
    write_text(building / "state.json", JsonWriter::write(describe_state(state, s, train_tokens)) + "\n");
    sync_directory(building);
    fs::remove_all(final);
    fs::rename(building, final);
    sync_directory(s.out);
  } catch (const std::exception& error) {
    std::error_code ignored;
    fs::remove_all(building, ignored);
    fail("the checkpoint of step ", state.step, " was not saved (those before it are untouched): ", error.what());
  }
  std::vector<fs::path> old = list_checkpoints(s.out);
  if (s.keep > 0)
    for (Index i = 0; i < Index(old.size()) - s.keep; ++i)
      if (s.keep_every == 0 || std::stoll(old[std::size_t(i)].filename().string().substr(5)) % s.keep_every != 0)
        fs::remove_all(old[std::size_t(i)]);
}

// Takes the settings of a checkpoint as they were; what stands on the command line is set after this.
void load_settings(const Json& described, const std::string& origin, Settings& settings) {
  const std::vector<Flag> flags = make_flags(settings);
  const Json::Object* object = described.get<Json::Object>();
  if (object == nullptr) fail(origin, " has no settings");
  for (const auto& [name, value] : *object) {
    const std::string* text = value.get<std::string>();
    if (text == nullptr) fail(origin, ": setting ", name, " is not a text");
    set_flag(find_flag(flags, name), *text);
  }
}

void load_state(const fs::path& checkpoint, const Model& model, State& state, Index train_tokens) {
  const fs::path path = checkpoint / "state.json";
  const Json json = read_json(path);
  const auto number = [&](const char* key) { return whole(json, key, path, 0, Index{1} << 53); };
  const auto window = [&](const char* key, OutlierWindow& values) {
    const Json* list = json.find(key);
    if (!list || !list->get<Json::Array>()) fail("'", path.string(), "' has no list \"", key, "\"");
    for (const Json& item : *list->get<Json::Array>())
      if (const double* value = item.get<double>()) values.accept(*value);
  };
  state.step = number("step"), state.updates = number("updates");
  state.tokens = number("tokens"), state.position = number("position");
  window("losses", state.losses);
  window("norms", state.norms);
  if (const Index before = number("train_tokens"); before != train_tokens)
    fail("'", path.string(), "' was trained on ", before, " tokens, but --data has ", train_tokens,
         ": this is another data set; start from it with --init instead of --resume");
  load_model(checkpoint, model);
  Safetensors moments(checkpoint / "optimizer-00000-of-00001.safetensors");
  load_entries(moments, "m.", model, model.m);
  load_entries(moments, "v.", model, model.v);
}
// [/checkpoint]

// [trace]
// Records steps whole, for `parity` to hold one stage against another.
struct Trace {
  std::vector<Entry> entries;
  std::vector<double> losses;
  std::string traced;  // "0,5,10"

  void add_state(const std::string& prefix, const Model& model) {
    const std::size_t first = entries.size();
    add_entries(entries, prefix + "param.", model, model.parameters);
    add_entries(entries, prefix + "m.", model, model.m);
    add_entries(entries, prefix + "v.", model, model.v);
    freeze(first);
  }
  // Does one step and keeps it.
  StepResult step(Model& model, const std::vector<Batch>& batches, const Settings& s, State& state) {
    const std::string name = text("step.", state.step, ".");
    traced += text(traced.empty() ? "" : ",", state.step);
    const Index k = Index(batches.size()), B = batches[0].B, T = batches[0].T, V = model.config.V;
    std::vector<std::int32_t> tokens;
    for (const Batch& batch : batches)
      for (Index b = 0; b < B; ++b) {
        tokens.insert(tokens.end(), batch.inputs.begin() + b * T, batch.inputs.begin() + (b + 1) * T);
        tokens.push_back(batch.targets[std::size_t((b + 1) * T - 1)]);
      }
    const double updates = double(state.updates);
    entries.push_back(make_entry<std::int32_t>(name + "tokens", {k, B, T + 1}, tokens));
    entries.push_back(make_entry<double>(name + "updates", {1}, {&updates, 1}));
    add_state(name + "before.", model);
    std::vector<float> logits;
    const StepResult result = train_step(model, batches, s, state, [&](const float* z) {
      for (Index row = 0; row < B * T; ++row)
        logits.insert(logits.end(), z + row * model.config.Vp(), z + row * model.config.Vp() + V);
    });
    entries.push_back(make_entry<float>(name + "logits", {k, B, T, V}, logits));
    entries.push_back(make_entry<double>(name + "loss", {1}, {&result.loss, 1}));
    entries.push_back(make_entry<double>(name + "norm", {1}, {&result.norm, 1}));
    const std::size_t first = entries.size();
    add_entries(entries, name + "grad.", model, model.gradients);
    freeze(first);
    add_state(name + "after.", model);
    return result;
  }
  void save(const Settings& s, const Config& config) {
    entries.push_back(make_entry<double>("losses", {Index(losses.size())}, losses));
    Json::Object metadata = {{"stage", "01"}, {"model", config.describe()}, {"traced", traced},
                             {"steps", std::to_string(losses.size())}, {"replayed", s.replay.empty() ? "no" : "yes"}};
    for (const auto& [name, value] : describe_settings(s)) metadata["setting." + name] = value;
    write_safetensors(s.trace, entries, metadata);
  }

 private:
  void freeze(std::size_t first) {  // entries read their buffer late; a trace wants it as it is now
    for (std::size_t i = first; i < entries.size(); ++i)
      entries[i].bytes = [copy = entries[i].bytes()] { return copy; };
  }
};

// Does every step of the trace --replay again, from the state that it recorded and on its tokens.
void replay(Settings settings) {
  Safetensors source(settings.replay);
  const Json* metadata = source.header().find("__metadata__");
  const auto meta = [&](const std::string& key) {
    const Json* value = metadata ? metadata->find(key) : nullptr;
    if (!value || !value->get<std::string>()) fail("'", settings.replay, "' is not a trace: it has no \"", key, "\"");
    return *value->get<std::string>();
  };
  const Settings given = settings;
  for (const Flag& flag : make_flags(settings)) set_flag(flag, meta("setting." + flag.name));
  settings.trace = given.trace, settings.replay = given.replay, settings.threads = given.threads;
  settings.skip_loss_z = settings.skip_norm_z = 0;  // the windows of the first run are not recorded
  if (settings.trace.empty()) fail("--replay needs --trace, the file to write the repeated steps to");
  const Config config = parse_descriptor(meta("model"));
  const Index B = settings.batch, T = settings.seq, k = settings.accum;
  Model model(config, B, T, true);
  Trace trace;
  for (const Index step : number_list(meta("traced"), "the trace's list of steps", Index{1} << 53)) {
    const std::string name = text("step.", step, ".");
    State state;
    state.step = step;
    state.updates = Index(source.read<double>(name + "updates", {1})[0]);
    load_entries(source, name + "before.param.", model, model.parameters);
    load_entries(source, name + "before.m.", model, model.m);
    load_entries(source, name + "before.v.", model, model.v);
    const auto tokens = source.read<std::int32_t>(name + "tokens", {k, B, T + 1});
    std::vector<Batch> batches(std::size_t(k), Batch(B, T));
    for (Index row = 0; row < k * B; ++row) {
      const auto from = tokens.begin() + row * (T + 1);
      Batch& batch = batches[std::size_t(row / B)];
      std::copy(from, from + T, batch.inputs.begin() + row % B * T);
      std::copy(from + 1, from + T + 1, batch.targets.begin() + row % B * T);
    }
    trace.losses.push_back(trace.step(model, batches, settings, state).loss);
    std::printf("step %lld replayed: loss %.6f\n", static_cast<long long>(step), trace.losses.back());
  }
  trace.save(settings, config);
}
// [/trace]

// [dataset]
// A data set directory: both splits, its tokenizer and, where the source is known, its entropy.
struct DataSet {
  std::string name;
  Index vocabulary;
  std::optional<double> train_entropy, val_entropy;  // nats per token
  Split train, val;
  Tokenizer tokenizer;

  DataSet(const fs::path& directory, Index T, Index model_vocabulary)
      : DataSet(directory, description(directory), T, model_vocabulary) {}

 private:
  static Json description(const fs::path& directory) {
    if (!fs::exists(directory / "dataset.json"))
      fail("--data: '", directory.string(), "' is not a data set directory (it has no dataset.json); `./run data` makes one");
    return read_json(directory / "dataset.json");
  }
  DataSet(const fs::path& directory, const Json& json, Index T, Index model_vocabulary)
      : vocabulary(whole(json, "vocab_size", directory / "dataset.json", 1, 65536)),
        train(directory, "train", T, model_vocabulary), val(directory, "val", T, model_vocabulary),
        tokenizer(directory / "tokenizer.bin") {
    if (vocabulary > model_vocabulary)
      fail("the data set '", directory.string(), "' has ", vocabulary, " words, but the model's vocabulary (V) is ",
           model_vocabulary, "; give --init a larger V");
    if (const Json* found = json.find("name"); found && found->get<std::string>()) name = *found->get<std::string>();
    const Json* entropy = json.find("entropy");
    const auto per_token = [&](const char* key, Index tokens) -> std::optional<double> {
      const Json* bits = entropy ? entropy->find(key) : nullptr;
      if (!bits || !bits->get<double>()) return std::nullopt;
      return *bits->get<double>() * std::numbers::ln2 / double(tokens);
    };
    train_entropy = per_token("train_bits", train.tokens());
    val_entropy = per_token("val_bits", val.tokens());
  }
};
// [/dataset]

// [memory-check]
// Prints what will be allocated, and refuses it before the first byte where the machine has not got it.
void announce_memory(const MemoryPlan& plan) {
  Index total = 0;
  for (const auto& [role, floats] : plan) {
    std::printf("  %-12s %9.1f MiB\n", role, double(floats) * 4 / (1 << 20));
    total += floats * 4;
  }
  std::printf("  %-12s %9.1f MiB\n", "together", double(total) / (1 << 20));
  std::ifstream info("/proc/meminfo");
  for (std::string key; info >> key;)
    if (Index kilobytes; key == "MemAvailable:" && info >> kilobytes && total > kilobytes * 1024)
      fail("this needs ", total >> 20, " MiB of memory, but only ", kilobytes >> 10,
           " MiB are available; lower --batch or --seq, or choose a smaller model");
}
// [/memory-check]

// [run]
bool& stop_requested() {  // set by Ctrl-C; the loop then saves a checkpoint and ends
  static bool requested = false;
  return requested;
}

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// One training run: the loop and everything it reports.
class Run {
 public:
  Run(const Settings& settings, Model& model, DataSet& data) : s_(settings), model_(model), data_(data) {
    if (s_.out.empty()) return;
    metrics_.reset(std::fopen((fs::path(s_.out) / "metrics.jsonl").c_str(), "a"));
    if (!metrics_) fail("cannot open '", s_.out, "/metrics.jsonl': ", std::strerror(errno));
  }
  State state;

  // Trains to the last step; returns false if it was interrupted before.
  bool train();
  void describe();

 private:
  void log(Json::Object line) {
    if (!metrics_) return;
    const std::string json = JsonWriter::write(line) + "\n";
    if (std::fputs(json.c_str(), metrics_.get()) < 0 || std::fflush(metrics_.get()) != 0)
      fail("cannot write '", s_.out, "/metrics.jsonl': ", std::strerror(errno));
  }
  static Json optional(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

  std::vector<Batch> next_batches() {
    std::vector<Batch> batches(std::size_t(s_.accum), Batch(s_.batch, s_.seq));
    for (Batch& batch : batches) {
      deal(data_.train, std::uint64_t(s_.data_seed), state.position, batch);
      if (!s_.overfit) state.position += s_.batch;
    }
    return batches;
  }
  double validate();
  void show_sample();
  void report_step(const StepResult& result, double seconds);
  void say(const std::string& line) {  // a line of its own, over the progress line of a terminal
    std::printf("%s%s\n", terminal_ ? "\r\033[K" : "", line.c_str());
    std::fflush(stdout);
  }

  const Settings& s_;
  Model& model_;
  DataSet& data_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> metrics_{nullptr, std::fclose};
  Trace trace_;
  bool terminal_ = isatty(fileno(stdout));
  double rate_ = 0;  // seconds a step, smoothed
  Index refused_ = 0;  // steps in a row whose loss or norm was not finite
};

void Run::describe() {
  const Config& c = model_.config;
  Json::Array memory;
  for (const auto& [role, floats] : plan_memory(c, model_.B, model_.T, true))
    memory.push_back(Json::Object{{"name", role}, {"bytes", floats * 4}});
  log({{"kind", "run"}, {"time", double(std::time(nullptr))}, {"stage", "01"}, {"step", state.step}, {"steps", s_.steps},
       {"model", Json::Object{{"L", c.L}, {"C", c.C}, {"H", c.H}, {"T", c.maxT}, {"V", c.V}, {"Vp", c.Vp()},
                              {"parameters", model_.layout.parameters}}},
       {"batch", s_.batch}, {"seq", s_.seq}, {"accum", s_.accum}, {"tokens_per_step", s_.batch * s_.seq * s_.accum},
       {"settings", describe_settings(s_)}, {"entropy_train", optional(data_.train_entropy)},
       {"entropy_val", optional(data_.val_entropy)},
       {"data", Json::Object{{"name", data_.name}, {"train_tokens", data_.train.tokens()}, {"val_tokens", data_.val.tokens()}}},
       {"memory", memory}, {"threads", omp_get_max_threads()}});
}

double Run::validate() {
  const Index all = data_.val.windows();
  const Index wanted = s_.val_batches < 0 ? all : std::min(all, s_.val_batches * s_.batch);
  double sum = 0;
  for (Index first = 0; first < wanted; first += s_.batch) {
    Batch batch(std::min(s_.batch, wanted - first), s_.seq);
    for (Index b = 0; b < batch.B; ++b)
      data_.val.read(first + b, &batch.inputs[std::size_t(b * s_.seq)], &batch.targets[std::size_t(b * s_.seq)]);
    model_.forward(batch.inputs.data(), batch.B, batch.T);
    sum += model_.loss(batch.targets.data(), batch.B, batch.T);
  }
  return sum / double(wanted * s_.seq);
}

// The tokens that samples start from: the prompt, after the end of the text before it.
std::vector<std::int32_t> prompt_tokens(const Settings& s, const Tokenizer& tokenizer, Index V) {
  std::vector<std::int32_t> tokens = {tokenizer.end_of_text()};
  for (const std::int32_t token : tokenizer.encode(s.prompt)) tokens.push_back(token);
  for (const Index token : number_list(s.prompt_tokens, "--prompt-tokens", std::min(V, tokenizer.size()) - 1))
    tokens.push_back(std::int32_t(token));
  return tokens;
}

// The prompt and what the model makes of it.
std::string sample_text(const Settings& s, Model& model, const Tokenizer& tokenizer) {
  const std::vector<std::int32_t> prompt = prompt_tokens(s, tokenizer, model.config.V);
  std::string out;
  for (std::size_t i = 1; i < prompt.size(); ++i) out += tokenizer.word(prompt[i]);
  for (const std::int32_t token : sample(model, prompt, s.sample_tokens, tokenizer.size(), tokenizer.end_of_text(),
                                         {s.temperature, s.top_p, s.top_k, s.sample_seed}))
    if (token != tokenizer.end_of_text()) out += tokenizer.word(token);
  return out;
}

void Run::show_sample() {
  const std::string sampled = sample_text(s_, model_, data_.tokenizer);
  log({{"kind", "sample"}, {"step", state.step}, {"text", sampled}, {"prompt", s_.prompt}});
  say(text("--- a sample after ", state.step, " steps ---\n", sampled, "\n---"));
}

void Run::report_step(const StepResult& r, double seconds) {
  log({{"kind", "train"}, {"step", state.step - 1}, {"loss", r.loss}, {"lr", r.lr}, {"norm", r.norm},
       {"tokens", state.tokens}, {"seconds", seconds}, {"skipped", r.skipped}, {"loss_z", r.loss_z}, {"norm_z", r.norm_z}});
  rate_ = rate_ == 0 ? seconds : 0.95 * rate_ + 0.05 * seconds;
  const Index left = Index(rate_ * double(s_.steps - state.step));
  char line[256], excess[32] = "";
  if (data_.train_entropy) std::snprintf(excess, sizeof excess, " | excess %+.4f", r.loss - *data_.train_entropy);
  std::snprintf(line, sizeof line, "step %lld/%lld | loss %.4f%s | lr %.2e | norm %.3f | %.0f tok/s | %lld:%02lld left%s",
                static_cast<long long>(state.step), static_cast<long long>(s_.steps), r.loss, excess, r.lr, r.norm,
                double(s_.batch * s_.seq * s_.accum) / rate_, static_cast<long long>(left / 60),
                static_cast<long long>(left % 60), r.skipped ? " | skipped" : "");
  const Index every = std::max<Index>(1, s_.steps / 50);
  if (r.skipped || (!terminal_ && (state.step % every == 0 || state.step == 1 || state.step == s_.steps))) say(line);
  else if (terminal_) { std::printf("\r\033[K%s", line); std::fflush(stdout); }
  refused_ = std::isfinite(r.loss) && std::isfinite(r.norm) ? 0 : refused_ + 1;
  if (refused_ == 10)
    fail("ten steps in a row had a loss or a gradient that is not finite (loss ", r.loss, ", norm ", r.norm,
         "); the run stops here, and its last checkpoint is the one to go back to");
}

bool Run::train() {
  const std::vector<Index> traced = number_list(s_.trace_steps, "--trace-steps", Index{1} << 53);
  const double start = now();
  const auto due = [&](Index every) { return every > 0 && state.step % every == 0; };
  const auto check = [&] {
    const double loss = validate();
    log({{"kind", "val"}, {"step", state.step}, {"loss", loss}});
    say(text("after ", state.step, " steps: validation loss ", loss,
             data_.val_entropy ? text(", ", loss - *data_.val_entropy, " above the entropy of its text") : ""));
  };
  if (s_.val_every > 0 && state.step == 0) check();
  Index saved = state.step;
  while (state.step < s_.steps && !stop_requested()) {
    const double begin = now();
    const std::vector<Batch> batches = next_batches();
    const bool keep = !s_.trace.empty() && std::find(traced.begin(), traced.end(), state.step) != traced.end();
    const StepResult result = keep ? trace_.step(model_, batches, s_, state) : train_step(model_, batches, s_, state);
    trace_.losses.push_back(result.loss);
    report_step(result, now() - begin);
    const bool last = state.step == s_.steps;
    if (s_.val_every > 0 && (last || due(s_.val_every))) check();
    if (s_.sample_every > 0 && (last || due(s_.sample_every))) show_sample();
    if (!s_.out.empty() && (last || due(s_.checkpoint_every))) {
      save_checkpoint(model_, s_, state, data_.train.tokens(), data_.tokenizer.end_of_text());
      saved = state.step;
    }
  }
  if (!s_.out.empty() && saved != state.step)
    save_checkpoint(model_, s_, state, data_.train.tokens(), data_.tokenizer.end_of_text());
  if (!s_.trace.empty()) trace_.save(s_, model_.config);
  log({{"kind", "end"}, {"step", state.step}, {"seconds", now() - start}});
  return state.step == s_.steps;
}
// [/run]

// [main]
// Where a run starts: a shape from a descriptor, or from the directory of a trained model.
Config starting_config(const Settings& s) {
  return fs::is_directory(s.init) ? read_config(s.init)
         : s.init.find('/') != std::string::npos || fs::exists(s.init)
             ? (fail("--init: '", s.init, "' is no directory with a model"), Config{})
             : parse_descriptor(s.init);
}

// Prepares --out: a new directory for a new run, one with a run in it for --resume. Returns the checkpoint to resume.
fs::path prepare_out(const Settings& s) {
  if (s.resume && s.out.empty()) fail("--resume needs --out, the directory of the run to go on with");
  if (s.out.empty()) return {};
  if (s.resume) {
    if (!fs::is_directory(s.out)) fail("--resume: there is no directory '", s.out, "'");
    const std::vector<fs::path> checkpoints = list_checkpoints(s.out);
    if (checkpoints.empty()) fail("--resume: there is no checkpoint in '", s.out, "'");
    return checkpoints.back();
  }
  fs::create_directories(s.out);
  if (fs::exists(fs::path(s.out) / "metrics.jsonl") || !list_checkpoints(s.out).empty())
    fail("--out: '", s.out, "' holds a run already; go on with it by --resume, or choose another directory");
  return {};
}

void only_sample(const Settings& s) {
  if (!fs::is_directory(s.init)) fail("--sample needs --init, the directory of a trained model, but that is '", s.init, "'");
  const Config config = read_config(s.init);
  const bool own = fs::exists(fs::path(s.init) / "tokenizer.bin");
  const Tokenizer tokenizer(fs::path(own ? s.init : s.data) / "tokenizer.bin");
  const Index prompt = Index(prompt_tokens(s, tokenizer, config.V).size());
  Model model(config, 1, std::min(config.maxT, prompt + s.sample_tokens), false);
  load_model(s.init, model);
  std::printf("%s\n", sample_text(s, model, tokenizer).c_str());
}

int run(const std::vector<std::string>& arguments) {
  Settings s;
  parse_arguments(s, arguments);
  if (s.help) return print_help(), 0;
  if (s.threads > 0) omp_set_num_threads(int(s.threads));
  if (s.sample) return only_sample(s), 0;
  if (!s.replay.empty()) return replay(s), 0;
  const fs::path checkpoint = prepare_out(s);
  if (s.resume) {
    s = Settings{};
    load_settings(read_json(checkpoint / "state.json").find("settings") ? *read_json(checkpoint / "state.json").find("settings")
                  : Json{}, "'" + (checkpoint / "state.json").string() + "'", s);
    parse_arguments(s, arguments);
    s.init = checkpoint.string();
  }
  const Config config = starting_config(s);
  if (s.seq == 0) s.seq = config.maxT;
  if (s.seq > config.maxT) fail("--seq is ", s.seq, ", but the model has only ", config.maxT, " positions");
  std::printf("model %s: %lld parameters, %d threads\n", config.describe().c_str(),
              static_cast<long long>(make_layout(config).parameters), omp_get_max_threads());
  announce_memory(plan_memory(config, s.batch, s.seq, true));
  if (s.plan) return 0;
  DataSet data(s.data, s.seq, config.V);
  Model model(config, s.batch, s.seq, true);
  Run training(s, model, data);
  if (s.resume) load_state(checkpoint, model, training.state, data.train.tokens());
  else if (fs::is_directory(s.init)) load_model(s.init, model);
  else initialise(config, model.layout, std::uint64_t(s.seed), model.parameters);
  training.describe();
  std::signal(SIGINT, [](int) { stop_requested() = true; });
  std::signal(SIGTERM, [](int) { stop_requested() = true; });
  if (training.train()) return 0;
  std::printf("\ninterrupted after step %lld; --resume goes on from there\n", static_cast<long long>(training.state.step));
  return 130;
}

}  // namespace stage01

int main(int count, char** arguments) {
  try {
    return stage01::run({arguments + 1, arguments + count});
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "strata01: error: not enough memory\n");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "strata01: error: %s\n", error.what());
  }
  return 1;
}
// [/main]
