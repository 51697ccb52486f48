// Stage 01: the whole of GPT-2 training in one file.
//
//   g++ -std=c++20 -O3 -march=native -fno-math-errno -fopenmp train.cpp -o strata01
//
// (-fno-math-errno lets the compiler vectorise square roots; leave it out and AdamW is slower.)
// It needs nothing but a C++20 compiler with OpenMP, and it is the reference of truth for every
// later stage: where clear and clever differ, it is clear. Read it from top to bottom:
//
//   1. small tools         errors, JSON                       6. AdamW, schedules, outliers
//   2. the model's shape   descriptors, the layout            7. data and tokens
//   3. random numbers      PyTorch's normal draws             8. safetensors, Hugging Face's format
//   4. the layers          forward with its backward beside   9. settings and sampling
//   5. the model           one forward, one backward         10. the run, from steps to traces
//
// Shapes in comments: B sequences, T positions, C channels, H heads, V words of the vocabulary,
// Vp the vocabulary padded to a multiple of 128, L blocks. Everything is row-major fp32.
//
// The lines are set by hand, as pages of a book.
// clang-format off
// [includes]
#include <fcntl.h>
#include <omp.h>
#include <unistd.h>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <numbers>
#include <numeric>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace stage01 {

namespace fs = std::filesystem;
using Index = std::int64_t;  // sizes, offsets and token counts: never 32 bits
using Token = std::int32_t;
// [/includes]

// ==== 1. Small tools =============================================================================

// [errors]
// A text made of its arguments, and the same as what went wrong: one sentence for the person at the
// keyboard, which main prints before it returns 1.
template <class... Parts> std::string text(const Parts&... parts) {
  std::ostringstream out;
  out.precision(9);
  (out << ... << parts);
  return out.str();
}

template <class... Parts> [[noreturn]] void fail(const Parts&... parts) {
  throw std::runtime_error(text(parts...));
}

std::string quoted(const fs::path& path) { return text("'", path.string(), "'"); }

std::ifstream open_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file || !fs::is_regular_file(path))
    fail("cannot open ", quoted(path), ": ", file ? "it is no file" : std::strerror(errno));
  return file;
}

std::string read_text(const fs::path& path) {
  return {std::istreambuf_iterator<char>(open_file(path).rdbuf()), {}};
}

// Reads all of `s` as one number, or returns false.
template <class T> bool parse_number(const std::string& s, T& number) {
  const auto [stop, error] = std::from_chars(s.data(), s.data() + s.size(), number);
  return error == std::errc() && stop == s.data() + s.size();
}
// [/errors]
// [json]
// Just enough JSON for configurations, states and the headers of safetensors files.
struct Json {
  using Array = std::vector<Json>;
  using Object = std::map<std::string, Json>;
  std::variant<std::nullptr_t, bool, double, std::string, Array, Object> value = nullptr;

  Json() = default;
  template <class T> Json(const std::vector<T>& list) : value(Array(list.begin(), list.end())) {}
  template <class T> Json(const T& v) {  // implicit, so that objects can be written as they read
    if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) value = double(v);
    else value = v;
  }
  bool operator==(const Json&) const = default;
  explicit operator bool() const { return *this != Json(); }
  template <class T> const T* get() const { return std::get_if<T>(&value); }
  // The member `key`; null where there is none, or no object.
  const Json& operator[](const std::string& key) const {
    static const Json null;
    const Object* object = get<Object>();
    return object && object->contains(key) ? object->at(key) : null;
  }
};

// Reads one JSON value out of `source`; `name` is what messages call it.
struct JsonParser {
  const std::string& source;
  std::string name;
  std::size_t at = 0;

  Json parse() {
    Json json = value(0);
    skip_space();
    return at == source.size() ? json : (bad("the end"), json);
  }
  [[noreturn]] void bad(const char* expected) {
    fail(name, " is not valid JSON: at byte ", at, " there should be ", expected);
  }
  void skip_space() { at = std::min(source.find_first_not_of(" \t\r\n", at), source.size()); }
  bool accept(const std::string& word) {
    skip_space();
    return source.compare(at, word.size(), word) == 0 && (at += word.size());
  }
  Json value(int depth) {
    if (depth > 64) bad("less nesting");
    if (accept("\"")) return string();
    if (accept("{")) {
      Json::Object object;
      list("}", "a comma or a closing brace", [&] {
        if (!accept("\"")) bad("a name in quotes");
        const std::string key = string();
        if (!accept(":")) bad("a colon");
        object[key] = value(depth + 1);
      });
      return object;
    }
    if (accept("[")) {
      Json::Array array;
      list("]", "a comma or a closing bracket", [&] { array.push_back(value(depth + 1)); });
      return array;
    }
    if (accept("true")) return true;
    if (accept("false")) return false;
    if (accept("null")) return {};
    double number = 0;
    const char* begin = source.data() + at;
    const auto [stop, error] = std::from_chars(begin, source.data() + source.size(), number);
    if (error != std::errc() || !std::isfinite(number)) bad("a value");
    at += stop - begin;
    return number;
  }
  template <class Item> void list(const char* close, const char* expected, const Item& item) {
    if (accept(close)) return;
    do item(); while (accept(","));
    if (!accept(close)) bad(expected);
  }
  std::string string() {  // what follows an opening quote
    std::string out;
    for (; at < source.size() && source[at] != '"'; ++at) {
      if (source[at] != '\\') { out += source[at]; continue; }
      const std::string known = "\"\\/bfnrt", meaning = "\"\\/\b\f\n\r\t";
      const std::string escape = source.substr(++at, 5);
      unsigned code = 0;  // of \u and four digits; all names that we look for are ASCII
      if (const std::size_t i = known.find(escape[0]); i != known.npos) out += meaning[i];
      else if (escape[0] != 'u' || escape.size() < 5 ||
               std::from_chars(&escape[1], &escape[5], code, 16).ptr != &escape[5])
        bad("an escape that JSON knows");
      else at += 4, out += code < 128 ? char(code) : '?';
    }
    return accept("\"") ? out : (bad("a closing quote"), out);
  }
};

// Writes JSON on one line. What is not UTF-8 (a model may say anything) and what is not a finite
// number cannot stand in JSON: stray bytes become U+FFFD, such numbers null.
std::string to_json(const std::string& s) {
  std::string out = "\"";
  for (std::size_t i = 0, size; i < s.size(); i += size) {
    const auto byte = [&](std::size_t k) { return i + k < s.size() ? s[i + k] & 0xFFu : 0u; };
    size = byte(0) < 0x80 ? 1 : byte(0) < 0xE0 ? 2 : byte(0) < 0xF0 ? 3 : 4;
    constexpr unsigned mark[] = {0, 0, 0xC0, 0xE0, 0xF0}, smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned code = byte(0) - mark[size];
    bool valid = true;
    for (std::size_t k = 1; k < size; ++k)
      valid = valid && byte(k) >> 6 == 2, code = code << 6 | (byte(k) & 0x3F);
    valid = valid && code >= smallest[size] && code < 0x110000 && code >> 11 != 0xD800 >> 11;
    char escape[8];
    std::snprintf(escape, sizeof escape, "\\u%04x", valid ? code & 0xFF : 0xFFFD);
    if (!valid) size = 1;
    if (!valid || code < 0x20) out += escape;
    else out.append(code == '"' || code == '\\' ? "\\" : "").append(s, i, size);
  }
  return out + "\"";
}

std::string to_json(const Json& json) {
  if (const bool* b = json.get<bool>()) return *b ? "true" : "false";
  if (const std::string* s = json.get<std::string>()) return to_json(*s);
  if (const double* x = json.get<double>(); x && std::isfinite(*x)) {
    char digits[40];  // the fewest that read back to the same bits
    const bool whole = *x == std::floor(*x) && std::abs(*x) < 9e15;
    return {digits, whole ? std::to_chars(digits, digits + 40, Index(*x)).ptr
                          : std::to_chars(digits, digits + 40, *x).ptr};
  }
  std::string out;
  if (const auto* array = json.get<Json::Array>()) {
    for (const Json& item : *array) out += text(out.empty() ? "" : ",", to_json(item));
    return text("[", out, "]");
  }
  const auto* object = json.get<Json::Object>();
  if (!object) return "null";
  for (const auto& [key, item] : *object)
    out += text(out.empty() ? "" : ",", to_json(key), ":", to_json(item));
  return text("{", out, "}");
}

Json read_json(const fs::path& path) {
  const std::string source = read_text(path);
  return JsonParser{source, quoted(path)}.parse();
}

// The member `key` of the object in `path`: a whole number from `low` to `high`.
Index whole(const Json& json, const std::string& key, const fs::path& path, Index low, Index high) {
  const double* x = json[key].get<double>();
  if (!x) fail(quoted(path), " has no number \"", key, "\"");
  if (!(*x >= double(low) && *x <= double(high)) || *x != std::floor(*x))
    fail("\"", key, "\" in ", quoted(path), " is ", *x, ", expected ", low, " to ", high);
  return Index(*x);
}
// [/json]

// ==== 2. The model's shape =======================================================================

// [config]
struct Config {
  Index L = 12, C = 768, H = 12, maxT = 1024, V = 50257;
  Index Vp() const { return (V + 127) / 128 * 128; }  // rows of wte; those beyond V stay zero
  std::string describe() const { return text("L", L, ",C", C, ",H", H, ",T", maxT, ",V", V); }
};

// Refuses a shape that the layers could not compute; `origin` is where it came from.
void validate(const Config& config, const std::string& origin) {
  const auto check = [&](const char* what, Index value, Index high) {
    if (value < 1 || value > high)
      fail(origin, ": the ", what, " is ", value, ", expected 1 to ", high);
  };
  check("number of blocks (L)", config.L, 1000);
  check("number of channels (C)", config.C, 1 << 17);
  check("number of heads (H)", config.H, config.C);
  check("number of positions (T)", config.maxT, 1 << 20);
  check("vocabulary (V)", config.V, 1 << 24);
  if (config.C % config.H != 0)
    fail(origin, ": ", config.H, " heads do not divide ", config.C, " channels evenly");
}

// "d12", "gpt3:c768", "L4,C128,H4,T128,V1024", or a named one changed: "d12,V1024,T256".
Config parse_descriptor(const std::string& descriptor) {
  static const std::map<std::string, Config> named = {
      {"d6", {6, 384, 6}},    {"d12", {12, 768, 12}},   {"d24", {24, 1024, 16}},
      {"d36", {36, 1280, 20}}, {"d48", {48, 1600, 25}}, {"d60", {60, 1920, 30}},
      {"d72", {72, 2880, 30}}, {"d84", {84, 3456, 36}},
      {"gpt3:c384", {6, 384, 6, 2048}},     {"gpt3:c768", {12, 768, 12, 2048}},
      {"gpt3:c1024", {24, 1024, 16, 2048}}, {"gpt3:c1536", {24, 1536, 16, 2048}},
      {"gpt3:c2048", {24, 2048, 16, 2048}}, {"gpt3:c2560", {32, 2560, 32, 2048}},
      {"gpt3:c4096", {32, 4096, 32, 2048}}, {"gpt3:c5140", {40, 5140, 20, 2048}},
      {"gpt3:c12288", {96, 12288, 96, 2048}}};
  const std::string origin = "--init " + descriptor, keys = "LCHTV";
  const char* example = "L4,C128,H4,T128,V1024";
  Config config;
  Index* const fields[] = {&config.L, &config.C, &config.H, &config.maxT, &config.V};
  std::istringstream parts(descriptor);
  std::string seen;
  for (std::string part; std::getline(parts, part, ',');) {
    const auto known = named.find(part.starts_with("gpt2:") ? part.substr(5) : part);
    const std::size_t key = part.empty() ? keys.npos : keys.find(part[0]);
    if (known != named.end() && seen.empty()) config = known->second, seen = keys;
    else if (key != keys.npos && parse_number(part.substr(1), *fields[key])) seen += part[0];
    else
      fail(origin, ": '", part, "' is neither a known model (d6 to d84, gpt3:c384 to gpt3:c12288) "
           "nor one of L, C, H, T, V with a number, as in ", example);
  }
  for (const char key : keys)
    if (seen.find(key) == seen.npos) fail(origin, ": ", key, " is missing, as in ", example);
  validate(config, origin);
  return config;
}
// [/config]
// [layout]
// One parameter tensor. Its identity is its place in the list; its elements are counted row-major
// from `offset` in a buffer that holds all tensors of one role: parameters, gradients, m, v.
struct Tensor {
  std::string name;          // as Hugging Face calls it
  std::vector<Index> shape;  // matrices are (out, in): row o holds the weights of output o
  bool conv1d;               // Hugging Face stores this matrix as (in, out)
  bool decay;                // AdamW decays matrices; biases and LayerNorms stay free
  Index offset, size;
};

struct Layout {
  std::vector<Tensor> tensors;  // block-major: wte, wpe, all of block 0, of block 1, ..., ln_f
  Index size = 0;               // floats in a buffer, the gaps of the alignment included
  Index parameters = 0;         // without the gaps
};

Index product(const std::vector<Index>& shape) {
  return std::accumulate(shape.begin(), shape.end(), Index{1}, std::multiplies<>());
}

Layout make_layout(const Config& config) {
  Layout layout;
  const auto add = [&](const std::string& name, std::vector<Index> shape, bool conv1d = false) {
    const Index size = product(shape);
    layout.tensors.push_back({name, shape, conv1d, shape.size() == 2, layout.size, size});
    layout.size += (size + 63) / 64 * 64;  // every tensor starts at a multiple of 256 bytes
    layout.parameters += size;
  };
  const auto norm = [&](const std::string& name) {
    add(name + ".weight", {config.C}), add(name + ".bias", {config.C});
  };
  const auto linear = [&](const std::string& name, Index out, Index in) {
    add(name + ".weight", {out, in}, true), add(name + ".bias", {out});
  };
  const Index C = config.C;
  add("wte.weight", {config.Vp(), C}), add("wpe.weight", {config.maxT, C});
  for (Index l = 0; l < config.L; ++l) {
    const std::string block = text("h.", l, ".");
    norm(block + "ln_1");
    linear(block + "attn.c_attn", 3 * C, C), linear(block + "attn.c_proj", C, C);
    norm(block + "ln_2");
    linear(block + "mlp.c_fc", 4 * C, C), linear(block + "mlp.c_proj", C, 4 * C);
  }
  norm("ln_f");
  return layout;
}

// Where the tensors of one buffer lie, by name instead of by number.
struct Affine {
  float *weight, *bias;  // of a linear layer or a LayerNorm; the classifier has no bias
};

struct Block {
  Affine ln1, qkv, attn_proj, ln2, fc, fc_proj;
};

struct View {
  float *wte, *wpe;
  std::vector<Block> blocks;
  Affine lnf;

  View(const Layout& layout, float* buffer) {
    auto tensor = layout.tensors.begin();
    const auto next = [&] { return buffer + (tensor++)->offset; };
    const auto pair = [&] { return Affine{next(), next()}; };  // within braces, from left to right
    wte = next(), wpe = next();
    while (layout.tensors.end() - tensor > 2)
      blocks.push_back({pair(), pair(), pair(), pair(), pair(), pair()});
    lnf = pair();
  }
};

// A zeroed allocation for one role.
struct Buffer {
  std::unique_ptr<float[], void (*)(void*)> data{nullptr, std::free};
  Index size;

  Buffer(Index count, const char* role) : size(count) {
    const std::size_t bytes = (std::size_t(count) * sizeof(float) + 255) / 256 * 256;
    data.reset(static_cast<float*>(std::aligned_alloc(256, bytes)));
    if (!data && bytes > 0) fail("not enough memory for ", bytes >> 20, " MiB of ", role);
    zero();
  }
  void zero() { std::fill_n(data.get(), size, 0.0f); }
  operator float*() const { return data.get(); }
};
// [/layout]

// ==== 3. Random numbers ==========================================================================

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
struct TorchNormal {
  std::mt19937 engine;
  std::optional<double> spare;

  void fill(float* data, Index n, float std) {
    if (n < 16) {
      for (Index i = 0; i < n; ++i) data[i] = float(one() * double(std));
      return;
    }
    const auto uniform = [&] { return float(engine() & 0xFFFFFF) * 0x1p-24f; };
    std::generate_n(data, n, uniform);
    for (Index i = 0; i + 16 <= n; i += 16) transform(data + i, std);
    if (n % 16 == 0) return;
    std::generate_n(data + n - 16, 16, uniform);  // the last sixteen are drawn again, as a whole
    transform(data + n - 16, std);
  }
  static void transform(float* data, float std) {  // eight pairs of uniforms to sixteen normals
    for (int i = 0; i < 8; ++i) {
      const float radius = std::sqrt(-2.0f * std::log(1.0f - data[i]));
      const float angle = 2.0f * std::numbers::pi_v<float> * data[i + 8];
      data[i] = radius * std::cos(angle) * std;
      data[i + 8] = radius * std::sin(angle) * std;
    }
  }
  double one() {  // in double precision, keeping the second of a pair for the next call
    if (spare) return *std::exchange(spare, std::nullopt);
    const auto uniform = [&] {
      const std::uint64_t high = engine(), low = engine();
      return double((high << 32 | low) & ((std::uint64_t{1} << 53) - 1)) * 0x1p-53;
    };
    const double angle = 2.0 * std::numbers::pi * uniform();
    const double radius = std::sqrt(-2.0 * std::log1p(-uniform()));
    spare = radius * std::sin(angle);
    return radius * std::cos(angle);
  }
};

// GPT-2's beginning: matrices are drawn with deviation 0.02, those whose output joins the residual
// stream with less, so that the sum of 2L of them does not grow; LayerNorms start as the identity.
void initialise(const Config& config, const Layout& layout, Index seed, float* parameters) {
  TorchNormal normal{std::mt19937(std::uint32_t(seed)), {}};
  for (const Tensor& tensor : layout.tensors) {
    const Index drawn = tensor.name == "wte.weight" ? config.V * config.C : tensor.size;
    const bool joins = tensor.name.ends_with("c_proj.weight");
    const double deviation = joins ? 0.02 / std::sqrt(2.0 * double(config.L)) : 0.02;
    float* data = parameters + tensor.offset;
    if (tensor.shape.size() == 2) normal.fill(data, drawn, float(deviation));
    else std::fill_n(data, tensor.size, tensor.name.ends_with("weight") ? 1.0f : 0.0f);
  }
}
// [/random]

// ==== 4. The layers: forward, with its backward beside it ========================================
// A backward function gets the gradient of the loss with respect to the layer's output and adds to
// the gradients of its parameters (they accumulate over micro-batches); what it does with the
// gradient of its input stands in its comment. Every element of every result is computed by one
// thread in one order, so the bits do not depend on the number of threads.

// [product]
// y[j] += sum over k < depth of a[k * a_stride] * b[k * b_stride + j], for j < n.
template <int depth>
inline void add_rows(float* y, const float* a, Index a_stride, const float* b, Index b_stride,
                     Index n) {
  float scale[depth];
  for (int k = 0; k < depth; ++k) scale[k] = a[k * a_stride];
#pragma omp simd
  for (Index j = 0; j < n; ++j) {
    float sum = y[j];
    for (int k = 0; k < depth; ++k) sum += scale[k] * b[k * b_stride + j];
    y[j] = sum;
  }
}

// Y (rows, n) += A (rows, depth) B (depth, n), where A may be read with any strides.
//
// The outer-product order: eight rows of B, scaled by eight numbers of A, are added to a row of Y.
// The compiler vectorises along j, and each load of Y pays for eight multiply-adds.
void add_product(float* y, Index y_stride, const float* a, Index a_row, Index a_column,
                 const float* b, Index b_stride, Index rows, Index depth, Index n) {
  Index k = 0;
  for (; k + 8 <= depth; k += 8)
    for (Index r = 0; r < rows; ++r)
      add_rows<8>(y + r * y_stride, a + r * a_row + k * a_column, a_column, b + k * b_stride,
                  b_stride, n);
  for (; k < depth; ++k)
    for (Index r = 0; r < rows; ++r)
      add_rows<1>(y + r * y_stride, a + r * a_row + k * a_column, a_column, b + k * b_stride,
                  b_stride, n);
}
// [/product]
// [embedding]
// x (B, T, C) = wte[token] + wpe[t].
void embedding_forward(float* x, const Token* tokens, const float* wte, const float* wpe, Index B,
                       Index T, Index C) {
#pragma omp parallel for
  for (Index row = 0; row < B * T; ++row)
    for (Index c = 0; c < C; ++c) x[row * C + c] = wte[tokens[row] * C + c] + wpe[row % T * C + c];
}

// dwte[token] += dx, dwpe[t] += dx. One token may stand in many rows: a thread takes all rows of
// its channels, so that no two threads ever add to the same number.
void embedding_backward(float* dwte, float* dwpe, const float* dx, const Token* tokens, Index B,
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
// What LayerNorm gives: y (rows, C), and mean and rstd (rows) for its backward pass.
struct Normed {
  float *y, *mean, *rstd;
};

// y = (x - mean) * rstd * weight + bias for each row of x (rows, C), rstd = 1 / sqrt(var + eps).
void layernorm_forward(const Normed& out, const float* x, const Affine& w, Index rows, Index C) {
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
    for (Index c = 0; c < C; ++c) out.y[row * C + c] = (in[c] - m) * r * w.weight[c] + w.bias[c];
    out.mean[row] = m, out.rstd[row] = r;
  }
}

// With the normalised input h = (x - mean) * rstd and g = dy * weight:
//   dx += rstd * (g - mean_c(g) - h * mean_c(g * h)),
//   d.weight += sum over the rows of dy * h,  d.bias += sum over the rows of dy.
// The two means are what is left of the derivatives of the mean and of rstd. dx is added to,
// because x also runs past this layer along the residual stream.
void layernorm_backward(float* dx, const Affine& d, const float* dy, const float* x,
                        const Affine& w, const Normed& saved, Index rows, Index C) {
#pragma omp parallel for
  for (Index row = 0; row < rows; ++row) {
    const float *in = x + row * C, *dout = dy + row * C;
    const float m = saved.mean[row], r = saved.rstd[row];
    float sum_g = 0, sum_gh = 0;
#pragma omp simd reduction(+ : sum_g, sum_gh)
    for (Index c = 0; c < C; ++c) {
      const float g = dout[c] * w.weight[c];
      sum_g += g;
      sum_gh += g * (in[c] - m) * r;
    }
    for (Index c = 0; c < C; ++c) {
      const float h = (in[c] - m) * r;
      dx[row * C + c] += r * (dout[c] * w.weight[c] - sum_g / float(C) - h * sum_gh / float(C));
    }
  }
#pragma omp parallel for
  for (Index begin = 0; begin < C; begin += 16)
    for (Index row = 0; row < rows; ++row)
      for (Index c = begin; c < std::min(begin + 16, C); ++c) {
        d.weight[c] += dy[row * C + c] * (x[row * C + c] - saved.mean[row]) * saved.rstd[row];
        d.bias[c] += dy[row * C + c];
      }
}
// [/layernorm]
// [linear]
constexpr Index strip = 32;  // the outputs that a thread computes at a time, in vector registers

// y (rows, n) = x (rows, in) W^T + bias for n <= strip outputs, where `turned` is W as (in, strip).
template <int rows> void forward_strip(float* y, Index out, const float* x, const float* turned,
                                       const float* bias, Index in, Index n) {
  float sum[rows][strip] = {};
  for (Index i = 0; i < in; ++i)
    for (int r = 0; r < rows; ++r) {
      const float value = x[r * in + i];
#pragma omp simd
      for (Index o = 0; o < strip; ++o) sum[r][o] += value * turned[i * strip + o];
    }
  for (int r = 0; r < rows; ++r)
    for (Index o = 0; o < n; ++o) y[r * out + o] = (bias ? bias[o] : 0.0f) + sum[r][o];
}

// y (rows, out) = x (rows, in) W^T + bias, with W (out, in); no bias where it is null.
//
// A thread takes a strip of outputs and turns their weights round, to (in, strip), so that the
// products run along memory. What a strip has beyond the last output is computed and not kept.
void linear_forward(float* y, const float* x, const Affine& w, Index rows, Index in, Index out) {
#pragma omp parallel
  {
    std::vector<float> turned(in * strip);
#pragma omp for
    for (Index begin = 0; begin < out; begin += strip) {
      const Index n = std::min(strip, out - begin);
      for (Index o = 0; o < n; ++o)
        for (Index i = 0; i < in; ++i) turned[i * strip + o] = w.weight[(begin + o) * in + i];
      const float* bias = w.bias ? w.bias + begin : nullptr;
      float* to = y + begin;
      Index row = 0;
      for (; row + 2 <= rows; row += 2)
        forward_strip<2>(to + row * out, out, x + row * in, turned.data(), bias, in, n);
      if (row < rows)
        forward_strip<1>(to + row * out, out, x + row * in, turned.data(), bias, in, n);
    }
  }
}

// dx (rows, in) = dy W;  d.weight (out, in) += dy^T x;  d.bias (out) += sum of dy over the rows.
void linear_backward(float* dx, const Affine& d, const float* dy, const float* x, const Affine& w,
                     Index rows, Index in, Index out) {
  constexpr Index chunk = 64;  // rows of a result that a thread takes: they stay in its cache
#pragma omp parallel for
  for (Index begin = 0; begin < rows; begin += chunk) {  // a chunk of rows of dx
    const Index n = std::min(chunk, rows - begin);
    std::fill_n(dx + begin * in, n * in, 0.0f);
    add_product(dx + begin * in, in, dy + begin * out, out, 1, w.weight, in, n, out, in);
  }
#pragma omp parallel for
  for (Index begin = 0; begin < out; begin += chunk) {  // a chunk of rows of d.weight
    const Index n = std::min(chunk, out - begin);
    add_product(d.weight + begin * in, in, dy + begin, 1, out, x, in, n, rows, in);
    for (Index row = 0; d.bias && row < rows; ++row)
      for (Index o = begin; o < begin + n; ++o) d.bias[o] += dy[row * out + o];
  }
}
// [/linear]
// [attention]
// Causal self-attention. qkv (B, T, 3C) holds queries, keys and values, each (H, head size) a row;
//   score[t][s] = q_t . k_s / sqrt(head size) for s <= t,  probability = softmax(score[t]),
//   y_t = sum over s of probability[t][s] v_s.
// The probabilities (B, H, T, T) are kept for the backward pass; nothing above the diagonal is
// read or written. A thread takes a sequence and a head.
void attention_forward(float* y, float* probability, const float* qkv, Index B, Index T, Index C,
                       Index H) {
  const Index D = C / H;  // the head size
  const float scale = 1.0f / std::sqrt(float(D));
#pragma omp parallel for collapse(2)
  for (Index b = 0; b < B; ++b)
    for (Index h = 0; h < H; ++h) {
      const float* q = qkv + b * T * 3 * C + h * D;
      const float *k = q + C, *v = q + 2 * C;
      std::vector<float> keys(D * T);  // k turned round to (D, T)
      for (Index t = 0; t < T; ++t)
        for (Index d = 0; d < D; ++d) keys[d * T + t] = k[t * 3 * C + d];
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

// With dp[t][s] = dy_t . v_s, softmax gives dscore = p * (dp - sum over s of p * dp), and then
//   dq_t = scale * sum over s of dscore[t][s] k_s,   dk_s = scale * sum over t of dscore[t][s] q_t,
//   dv_s = sum over t of p[t][s] dy_t.
// dqkv is written. The probabilities are overwritten by scale * dscore, row by row, once dv has
// used them. The sum over s is taken once a row, so all of it is O(T^2).
void attention_backward(float* dqkv, float* probability, const float* dy, const float* qkv, Index B,
                        Index T, Index C, Index H) {
  const Index D = C / H;
  const float scale = 1.0f / std::sqrt(float(D));
  std::fill_n(dqkv, B * T * 3 * C, 0.0f);
#pragma omp parallel for collapse(2)
  for (Index b = 0; b < B; ++b)
    for (Index h = 0; h < H; ++h) {
      const Index start = b * T * 3 * C + h * D;
      const float *q = qkv + start, *k = q + C, *v = q + 2 * C;
      float *dq = dqkv + start, *dk = dq + C, *dv = dq + 2 * C;
      float* p = probability + (b * H + h) * T * T;
      const float* dout = dy + b * T * C + h * D;
      std::vector<float> values(D * T), dp(T);  // v turned round to (D, T); a row of dp
      for (Index t = 0; t < T; ++t)
        for (Index d = 0; d < D; ++d) values[d * T + t] = v[t * 3 * C + d];
      for (Index s = 0; s < T; ++s)  // column s of p, from the diagonal down
        add_product(dv + s * 3 * C, 0, p + s * T + s, 0, T, dout + s * C, C, 1, T - s, D);
      for (Index t = 0; t < T; ++t) {
        float* row = p + t * T;
        std::fill_n(dp.data(), t + 1, 0.0f);
        add_product(dp.data(), 0, dout + t * C, 0, 1, values.data(), T, 1, D, t + 1);
        float sum = 0;
        for (Index s = 0; s <= t; ++s) sum += row[s] * dp[s];
        for (Index s = 0; s <= t; ++s) row[s] *= scale * (dp[s] - sum);
        add_product(dq + t * 3 * C, 0, row, 0, 1, k, 3 * C, 1, t + 1, D);
      }
      for (Index s = 0; s < T; ++s)
        add_product(dk + s * 3 * C, 0, p + s * T + s, 0, T, q + s * 3 * C, 3 * C, 1, T - s, D);
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
void cross_entropy_forward(float* loss, float* lse, const float* logits, const Token* targets,
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

// dlogits[v] = (softmax(logits)[v] - [v is the target]) * weight, in place of the logits; `weight`
// is what one row counts in the mean. The padded words have no part in the loss: their gradient
// is zero.
void cross_entropy_backward(float* logits, const float* lse, const Token* targets, float weight,
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

// ==== 5. The model ===============================================================================

// [activations]
// What the forward pass keeps of one block for the backward pass, with rows = B T.
struct BlockActivations {
  Normed ln1;
  float *qkv, *probability;    // (rows, 3C), (B, H, T, T)
  float *attended, *middle;    // (rows, C): attention's output; the stream after attention
  Normed ln2;
  float *fc, *gelu, *stream;   // (rows, 4C) twice; (rows, C): the stream after the block
};

struct Activations {
  float* embedded;             // (rows, C): the stream before the first block
  std::vector<BlockActivations> blocks;
  Normed lnf;
  float *logits, *loss, *lse;  // (rows, Vp), (rows), (rows)
  float* branch;               // (rows, C): what is about to join the stream
  float *d_stream, *d_branch;  // (rows, C): gradients, only when training
  float* d_wide;               // (rows, 4C): of fc and gelu, then of qkv

  // Carves everything out of one buffer and returns how many floats that takes; with a null buffer
  // it only counts, which is how the memory plan is made.
  Index carve(float* buffer, const Config& config, Index B, Index T, bool training) {
    const Index rows = B * T, C = config.C;
    Index used = 0;
    const auto take = [&](Index size) {
      const Index start = used;
      used += (size + 63) / 64 * 64;
      return buffer ? buffer + start : nullptr;
    };
    const auto normed = [&] { return Normed{take(rows * C), take(rows), take(rows)}; };
    embedded = take(rows * C);
    blocks.resize(config.L);
    for (BlockActivations& block : blocks)
      block = {normed(), take(rows * 3 * C), take(B * config.H * T * T), take(rows * C),
               take(rows * C), normed(), take(rows * 4 * C), take(rows * 4 * C), take(rows * C)};
    lnf = normed();
    logits = take(rows * config.Vp()), loss = take(rows), lse = take(rows);
    branch = take(rows * C);
    if (training) d_stream = take(rows * C), d_branch = take(rows * C), d_wide = take(rows * 4 * C);
    return used;
  }
};

// Every allocation of a model in floats, known before the first of them is made.
using MemoryPlan = std::vector<std::pair<std::string, Index>>;

MemoryPlan plan_memory(const Config& config, Index B, Index T, bool training) {
  const double block = 16.0 * double(config.C) + double(config.H) * double(T);  // a row's floats
  if (double(B) * double(T) * (double(config.L) * block + double(config.Vp())) > 1e17)
    fail("a batch of ", B, " x ", T, " tokens needs more memory than any machine has");
  const Index size = make_layout(config).size;
  const Index activations = Activations().carve(nullptr, config, B, T, training);
  if (!training) return {{"parameters", size}, {"activations", activations}};
  return {{"parameters", size}, {"gradients", size}, {"AdamW m", size}, {"AdamW v", size},
          {"activations", activations}};
}

// Prints what will be allocated, and refuses it beforehand where the machine has not got it.
void announce_memory(const MemoryPlan& plan) {
  Index total = 0;
  const auto print = [](const std::string& role, Index floats) {
    std::printf("  %-12s %9.1f MiB\n", role.c_str(), double(floats) / (1 << 18));
  };
  for (const auto& [role, floats] : plan) print(role, floats), total += floats;
  print("together", total);
  std::ifstream info("/proc/meminfo");
  Index kilobytes = 0;
  for (std::string word; info >> word;)
    if (word == "MemAvailable:" && info >> kilobytes && total / 256 > kilobytes)
      fail("this needs ", total >> 18, " MiB of memory, but only ", kilobytes >> 10,
           " MiB are available; lower --batch or --seq, or choose a smaller model");
}
// [/activations]
// [model]
struct Model {
  Config config;
  Index B, T;  // the largest batch that the activations have room for
  Layout layout;
  Activations act;
  Buffer parameters, gradients, m, v, workspace;
  View weight, gradient;

  // All parameters are zero until `initialise` or `load_model` fills them.
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

  // What AdamW changes, by the names that files give it.
  std::vector<std::pair<std::string, float*>> state() const {
    return {{"param.", parameters}, {"m.", m}, {"v.", v}};
  }

  // Runs `batch` sequences of `length` tokens through all blocks, to act.lnf.y (rows, C).
  void forward(const Token* tokens, Index batch, Index length) {
    const Index C = config.C, rows = batch * length;
    for (Index i = 0; i < rows; ++i)
      if (tokens[i] < 0 || tokens[i] >= config.V)
        fail("token ", tokens[i], " at position ", i, " is outside the vocabulary of ", config.V);
    if (length > config.maxT || batch * length > B * T)
      fail("a batch of ", batch, " x ", length, " tokens does not fit the model's ", config.maxT,
           " positions and the ", B, " x ", T, " that it has memory for");
    embedding_forward(act.embedded, tokens, weight.wte, weight.wpe, batch, length, C);
    const float* stream = act.embedded;
    for (std::size_t l = 0; l < act.blocks.size(); ++l) {
      const Block& w = weight.blocks[l];
      const BlockActivations& a = act.blocks[l];
      layernorm_forward(a.ln1, stream, w.ln1, rows, C);
      linear_forward(a.qkv, a.ln1.y, w.qkv, rows, C, 3 * C);
      attention_forward(a.attended, a.probability, a.qkv, batch, length, C, config.H);
      linear_forward(act.branch, a.attended, w.attn_proj, rows, C, C);
      residual_forward(a.middle, stream, act.branch, rows * C);
      layernorm_forward(a.ln2, a.middle, w.ln2, rows, C);
      linear_forward(a.fc, a.ln2.y, w.fc, rows, C, 4 * C);
      gelu_forward(a.gelu, a.fc, rows * 4 * C);
      linear_forward(act.branch, a.gelu, w.fc_proj, rows, 4 * C, C);
      residual_forward(a.stream, a.middle, act.branch, rows * C);
      stream = a.stream;
    }
    layernorm_forward(act.lnf, stream, weight.lnf, rows, C);
  }

  // act.logits (count, Vp) of the rows from `first` on of the last forward pass.
  void classify(Index first, Index count) {
    linear_forward(act.logits, act.lnf.y + first * config.C, {weight.wte, nullptr}, count, config.C,
                   config.Vp());
  }

  // The sum of the losses (nats) over the rows of the last forward pass, given the token that
  // follows in each of them.
  double loss(const Token* targets, Index batch, Index length) {
    const Index rows = batch * length;
    classify(0, rows);
    cross_entropy_forward(act.loss, act.lse, act.logits, targets, rows, config.V, config.Vp());
    return std::accumulate(act.loss, act.loss + rows, 0.0);
  }

  // Adds the gradient of loss_weight * loss() to `gradients`. Overwrites logits and probabilities.
  //
  // It is the forward pass read from its end. d_stream is the gradient with respect to the residual
  // stream: each branch takes it as the gradient of its output and adds to it that of its input.
  void backward(const Token* tokens, const Token* targets, Index batch, Index length,
                float loss_weight) {
    const Index C = config.C, rows = batch * length;
    const auto stream = [&](std::size_t l) { return l ? act.blocks[l - 1].stream : act.embedded; };
    float *d_stream = act.d_stream, *d_branch = act.d_branch, *d_wide = act.d_wide;
    cross_entropy_backward(act.logits, act.lse, targets, loss_weight, rows, config.V, config.Vp());
    linear_backward(d_branch, {gradient.wte, nullptr}, act.logits, act.lnf.y,
                    {weight.wte, nullptr}, rows, C, config.Vp());
    std::fill_n(d_stream, rows * C, 0.0f);
    layernorm_backward(d_stream, gradient.lnf, d_branch, stream(act.blocks.size()), weight.lnf,
                       act.lnf, rows, C);
    for (std::size_t l = act.blocks.size(); l-- > 0;) {
      const Block &w = weight.blocks[l], &g = gradient.blocks[l];
      const BlockActivations& a = act.blocks[l];
      linear_backward(d_wide, g.fc_proj, d_stream, a.gelu, w.fc_proj, rows, 4 * C, C);
      gelu_backward(d_wide, d_wide, a.fc, rows * 4 * C);
      linear_backward(d_branch, g.fc, d_wide, a.ln2.y, w.fc, rows, C, 4 * C);
      layernorm_backward(d_stream, g.ln2, d_branch, a.middle, w.ln2, a.ln2, rows, C);
      linear_backward(d_branch, g.attn_proj, d_stream, a.attended, w.attn_proj, rows, C, C);
      attention_backward(d_wide, a.probability, d_branch, a.qkv, batch, length, C, config.H);
      linear_backward(d_branch, g.qkv, d_wide, a.ln1.y, w.qkv, rows, C, 3 * C);
      layernorm_backward(d_stream, g.ln1, d_branch, stream(l), w.ln1, a.ln1, rows, C);
    }
    embedding_backward(gradient.wte, gradient.wpe, d_stream, tokens, batch, length, C);
  }
};
// [/model]

// ==== 6. AdamW, schedules, outliers ==============================================================

// [norm]
// The L2 norm of a whole gradient. Chunks are summed in double precision and then one after the
// other, so that the number of threads changes nothing.
double global_norm(const float* gradient, Index size) {
  constexpr Index chunk = 1 << 14;
  std::vector<double> sums((size + chunk - 1) / chunk);
#pragma omp parallel for
  for (Index i = 0; i < Index(sums.size()); ++i) {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (Index j = i * chunk; j < std::min((i + 1) * chunk, size); ++j)
      sum += double(gradient[j]) * gradient[j];
    sums[i] = sum;
  }
  return std::sqrt(std::accumulate(sums.begin(), sums.end(), 0.0));
}
// [/norm]
// [adamw]
// AdamW (Loshchilov and Hutter 2019): Adam's step, with the decay taken from the weights directly
// instead of added to the gradient.
struct AdamW {
  double lr, beta1, beta2, eps, weight_decay;
};

// `update` counts from 1; `scale` is what clipping leaves of the gradients.
void adamw_update(const Layout& layout, float* parameters, const float* gradients, float* m,
                  float* v, const AdamW& o, Index update, double scale) {
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
// The learning rate of step s = 0 ... steps - 1 as a share of its peak: a linear warm-up, then a
// descent to `final_share`, which the last step reaches. "wsd" (warm-up, stable, decay) holds the
// peak for four fifths of the run, then falls as 1 - sqrt (Hagele et al. 2024).
double schedule_share(const std::string& name, Index s, Index steps, Index warmup,
                      double final_share) {
  if (s < warmup) return double(s + 1) / double(warmup);
  const Index descent = std::min(steps * 4 / 5, steps - 2);  // where wsd falls: one step at least
  const Index from = name == "wsd" ? std::max(warmup, descent) : warmup;
  const Index length = std::max<Index>(1, steps - 1 - from);
  const double way = std::clamp(double(s - from) / double(length), 0.0, 1.0);
  const double left = name == "cosine"   ? 0.5 * (1.0 + std::cos(std::numbers::pi * way))
                      : name == "linear" ? 1.0 - way
                      : name == "wsd"    ? 1.0 - std::sqrt(way) : 1.0;
  return final_share + left * (1.0 - final_share);
}
// [/schedule]
// [outliers]
// Tells values that lie far above the last 128 accepted ones. A value is held against the window
// before it enters it, and one that is refused never enters.
struct OutlierWindow {
  static constexpr std::size_t capacity = 128;
  std::vector<double> values;

  // Standard deviations above the mean; 0 until the window is full. NaN and infinity are infinitely
  // far out, at any time.
  double z(double value) const {
    if (!std::isfinite(value)) return HUGE_VAL;
    if (values.size() < capacity) return 0;
    const double mean = std::accumulate(values.begin(), values.end(), 0.0) / double(capacity);
    double squares = 0;
    for (const double x : values) squares += (x - mean) * (x - mean);
    return (value - mean) / std::max(std::sqrt(squares / double(capacity)), 1e-12);
  }
  void accept(double value) {
    if (values.size() == capacity) values.erase(values.begin());
    values.push_back(value);
  }
};
// [/outliers]

// ==== 7. Data and tokens =========================================================================

// [split]
// The shards of one split ("train" or "val") of a data set, cut into windows of T + 1 tokens that
// start at multiples of T: the last token of one is the first of the next. Windows do not cross
// shards, and what is left at a shard's end, fewer than T tokens, is not used.
struct Split {
  Index T, vocabulary, windows = 0, tokens = 0;
  std::map<Index, fs::path> shards;  // by their first window

  Split(const fs::path& directory, const std::string& name, Index length, Index V)
      : T(length), vocabulary(V) {
    std::vector<fs::path> paths;
    for (const fs::path& path : fs::directory_iterator(directory))
      if (path.filename().string().starts_with(name + "_") && path.extension() == ".bin")
        paths.push_back(path);
    std::sort(paths.begin(), paths.end());
    for (const fs::path& path : paths) add(path);
    if (windows == 0)
      fail(quoted(directory), " has no ", name, " window of ", T, " + 1 tokens (", paths.size(),
           " shards, ", tokens, " tokens); give it more text or lower --seq");
  }

  void add(const fs::path& path) {  // llm.c's format: a header of 256 int32, then uint16 tokens
    std::vector<std::uint32_t> header(256);
    std::ifstream file(path, std::ios::binary);
    if (!file.read(reinterpret_cast<char*>(header.data()), 1024))
      fail(quoted(path), " is too short for the 1024 bytes of a shard's header");
    if (header[0] != 20240520 || header[1] != 1)
      fail(quoted(path), " is not a shard: it starts with ", header[0], " version ", header[1],
           ", expected 20240520 version 1");
    const Index count = header[2], bytes = Index(fs::file_size(path)), expected = 1024 + 2 * count;
    if (bytes != expected)
      fail(quoted(path), " should have ", expected, " bytes for its ", count, " tokens, but has ",
           bytes);
    if (count > T) shards[windows] = path, windows += (count - 1) / T;
    tokens += count;
  }

  // Writes window number `window` as T inputs and the T targets that follow them.
  void read(Index window, Token* inputs, Token* targets) const {
    const auto& [first_window, path] = *std::prev(shards.upper_bound(window));
    const Index start = (window - first_window) * T;
    std::vector<std::uint16_t> raw(T + 1);
    std::ifstream file = open_file(path);
    file.seekg(1024 + start * 2);
    if (!file.read(reinterpret_cast<char*>(raw.data()), (T + 1) * 2))
      fail("cannot read tokens ", start, " to ", start + T, " of ", quoted(path));
    for (Index t = 0; t <= T; ++t)
      if (raw[t] >= vocabulary)
        fail(quoted(path), " has token ", raw[t], " at position ", start + t,
             ", but the model's vocabulary ends at ", vocabulary - 1);
    std::copy_n(raw.begin(), T, inputs);
    std::copy_n(raw.begin() + 1, T, targets);
  }
};
// [/split]
// [shuffle]
// Where number q of 0 ... n - 1 goes in the shuffle of an epoch: a Feistel network on the next
// power of four, walked until it lands below n. A bijection by construction, so every window comes
// up exactly once an epoch, and there is no list to store: position and seed say everything.
Index permute(Index q, Index n, std::uint64_t seed, Index epoch) {
  int half = 1;
  while (Index{1} << (2 * half) < n) ++half;
  const std::uint64_t mask = (std::uint64_t{1} << half) - 1;
  auto x = std::uint64_t(q);
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
  std::vector<Token> inputs, targets;
  Batch(Index b, Index t) : B(b), T(t), inputs(b * t), targets(b * t) {}
  Token* input(Index b) { return inputs.data() + b * T; }
  Token* target(Index b) { return targets.data() + b * T; }
};

// Fills `batch` with the windows at stream positions `position` on. An endless stream: epoch after
// epoch, each in its own order.
void deal(const Split& split, Index seed, Index position, Batch& batch) {
  for (Index b = 0; b < batch.B; ++b) {
    const Index epoch = (position + b) / split.windows, slot = (position + b) % split.windows;
    split.read(permute(slot, split.windows, std::uint64_t(seed), epoch), batch.input(b),
               batch.target(b));
  }
}
// [/shuffle]
// [tokenizer]
// The words of the vocabulary, from llm.c's tokenizer.bin: enough to print what a model says.
struct Tokenizer {
  std::vector<std::string> words;
  Token end_of_text = 0;

  explicit Tokenizer(const fs::path& path) {
    const std::string file = read_text(path);
    std::vector<std::uint32_t> header(256);
    std::memcpy(header.data(), file.data(), std::min<std::size_t>(file.size(), 1024));
    if (file.size() < 1024 || header[0] != 20240328 || header[1] < 1 || header[1] > 2)
      fail(quoted(path), " is not a tokenizer: it has ", file.size(), " bytes and starts with ",
           header[0], " version ", header[1], ", expected 20240328 version 1 or 2");
    std::size_t at = 1024;
    for (std::uint32_t id = 0; id < header[2]; ++id) {
      const std::size_t size = at < file.size() ? static_cast<unsigned char>(file[at]) : 0;
      if (size == 0 || at + 1 + size > file.size())
        fail(quoted(path), " ends in token ", id, " of ", header[2], ", or that token is empty");
      words.push_back(file.substr(at + 1, size));
      at += 1 + size;
    }
    const std::uint32_t end = header[1] == 1 ? 50256 : header[3];
    if (at != file.size() || end >= words.size())
      fail(quoted(path), " has ", file.size() - at, " bytes behind its last token and names token ",
           end, " of ", words.size(), " as the end of the text");
    end_of_text = Token(end);
  }
};

// A data set directory: both splits, the tokenizer and, where the source is known, its entropy.
struct DataSet {
  std::string name;
  double train_entropy, val_entropy;  // nats per token; NaN where the source is not known
  Split train, val;
  Tokenizer tokenizer;

  DataSet(const fs::path& directory, Index T, Index V)
      : train(directory, "train", T, V), val(directory, "val", T, V),
        tokenizer(directory / "tokenizer.bin") {
    const Json json = read_json(directory / "dataset.json");
    const Index words = whole(json, "vocab_size", directory / "dataset.json", 1, 65536);
    if (words > V)
      fail(quoted(directory), " has ", words, " words, but the model's vocabulary (V) is ", V,
           "; give --init a larger V");
    if (const std::string* given = json["name"].get<std::string>()) name = *given;
    const auto per_token = [&](const char* key, Index tokens) {
      const double* bits = json["entropy"][key].get<double>();
      return bits ? *bits * std::numbers::ln2 / double(tokens) : std::nan("");
    };
    train_entropy = per_token("train_bits", train.tokens);
    val_entropy = per_token("val_bits", val.tokens);
  }
};
// [/tokenizer]

// ==== 8. Safetensors, Hugging Face's format ======================================================

// [safetensors-write]
// Has the system put a file or a directory's list of files onto the disk.
void sync_to_disk(const fs::path& path) {
  const int descriptor = open(path.c_str(), O_RDONLY);
  const bool synced = descriptor >= 0 && fsync(descriptor) == 0;
  if (!synced) fail("cannot sync ", quoted(path), " to the disk: ", std::strerror(errno));
  close(descriptor);
}

// Writes a file to its end and onto the disk, or says why not.
void write_file(const fs::path& path, const std::function<void(std::ostream&)>& write) {
  std::ofstream file(path, std::ios::binary);
  if (!file) fail("cannot create ", quoted(path), ": ", std::strerror(errno));
  write(file), file.close();
  if (!file) fail("cannot write ", quoted(path), ": ", std::strerror(errno));
  sync_to_disk(path);
}

void write_text(const fs::path& path, const std::string& s) {
  write_file(path, [&](std::ostream& file) { file << s; });
}

template <class T> const char* type_name() {
  return std::is_same_v<T, double> ? "F64" : std::is_same_v<T, float> ? "F32" : "I32";
}

// One tensor of a safetensors file; `bytes` is asked for its contents when it is written.
struct Entry {
  std::string name, dtype;
  std::vector<Index> shape;
  std::function<std::string()> bytes;
  Index size() const { return product(shape) * (dtype == "F64" ? 8 : 4); }
};

// The format: eight bytes with the header's size, the header in JSON, then the tensors end to end.
void write_safetensors(const fs::path& path, const std::vector<Entry>& entries,
                       const Json::Object& metadata) {
  Json::Object header = {{"__metadata__", metadata}};
  Index offset = 0;
  for (const Entry& entry : entries) {
    const Index begin = std::exchange(offset, offset + entry.size());
    header[entry.name] = Json::Object{{"dtype", entry.dtype}, {"shape", entry.shape},
                                      {"data_offsets", Json::Array{begin, offset}}};
  }
  std::string json = to_json(header);
  json.resize((json.size() + 7) / 8 * 8, ' ');
  const std::uint64_t size = json.size();
  write_file(path, [&](std::ostream& file) {
    file.write(reinterpret_cast<const char*>(&size), 8) << json;
    for (const Entry& entry : entries) file << entry.bytes();
  });
}
// [/safetensors-write]
// [safetensors-read]
struct Safetensors {
  fs::path path;
  std::ifstream file;
  Json header;
  Index data = 0, data_bytes = 0;  // where the tensors start, and how much of the file is theirs

  explicit Safetensors(const fs::path& from) : path(from), file(open_file(from)) {
    const Index bytes = Index(fs::file_size(path));
    std::uint64_t size = 0;
    file.read(reinterpret_cast<char*>(&size), 8);
    if (!file || size > std::uint64_t(bytes - 8) || size >> 27)
      fail(quoted(path), " is not a safetensors file: ", bytes, " bytes cannot hold a header of ",
           size);
    std::string json(size, '\0');
    file.read(json.data(), std::streamsize(size));
    header = JsonParser{json, "the header of " + quoted(path)}.parse();
    data = 8 + Index(size), data_bytes = bytes - data;
  }

  // The elements of tensor `name`, which must have this type and shape.
  template <class T> std::vector<T> read(const std::string& name, const std::vector<Index>& shape) {
    const std::string tensor = text("tensor ", name, " of ", quoted(path));
    const Json& entry = header[name];
    if (!entry) fail(quoted(path), " has no tensor ", name);
    const Json::Object wanted = {{"dtype", type_name<T>()}, {"shape", shape}};
    for (const auto& [key, value] : wanted)
      if (entry[key] != value)
        fail(tensor, " has ", key, " ", entry[key] ? to_json(entry[key]) : "missing", ", expected ",
             to_json(value));
    std::vector<T> values(product(shape));
    const Index size = Index(values.size() * sizeof(T));
    const auto* offsets = entry["data_offsets"].get<Json::Array>();
    const double* begin = offsets && !offsets->empty() ? offsets->front().get<double>() : nullptr;
    if (!begin || *begin < 0 || *begin != std::floor(*begin) || *begin + size > data_bytes ||
        *offsets != Json::Array{*begin, *begin + size})
      fail(tensor, " should take ", size, " of the file's ", data_bytes, " bytes, but lies at ",
           to_json(entry));
    file.seekg(data + Index(*begin));
    if (!file.read(reinterpret_cast<char*>(values.data()), size)) fail(tensor, " cannot be read");
    return values;
  }
};
// [/safetensors-read]
// [hugging-face]
// A tensor as Hugging Face stores it: Conv1D matrices turned to (in, out), wte without padding.
std::vector<Index> stored_shape(const Config& config, const Tensor& tensor) {
  if (tensor.name == "wte.weight") return {config.V, config.C};
  if (tensor.conv1d) return {tensor.shape[1], tensor.shape[0]};
  return tensor.shape;
}

// Calls visit(ours, stored) with the place of every element of a tensor in our buffer and in its
// stored form.
template <class Visit> void match(const Config& config, const Tensor& tensor, const Visit& visit) {
  const Index rows = tensor.conv1d ? tensor.shape[0] : 1;
  const Index columns = product(stored_shape(config, tensor)) / rows;
  for (Index r = 0; r < rows; ++r)
    for (Index c = 0; c < columns; ++c) visit(tensor.offset + r * columns + c, c * rows + r);
}

// All tensors of one buffer as entries of a file, under `prefix` + their names. The entries read
// the buffer when they are written.
void add_entries(std::vector<Entry>& entries, const std::string& prefix, const Model& model,
                 const float* buffer) {
  for (const Tensor& tensor : model.layout.tensors) {
    Entry entry = {prefix + tensor.name, "F32", stored_shape(model.config, tensor), {}};
    entry.bytes = [&model, &tensor, buffer, size = entry.size()] {
      std::string bytes(size, '\0');
      float* stored = reinterpret_cast<float*>(bytes.data());
      match(model.config, tensor, [&](Index ours, Index theirs) { stored[theirs] = buffer[ours]; });
      return bytes;
    };
    entries.push_back(entry);
  }
}

void load_entries(Safetensors& file, const std::string& prefix, const Model& model, float* buffer) {
  for (const Tensor& tensor : model.layout.tensors) {
    const auto stored = file.read<float>(prefix + tensor.name, stored_shape(model.config, tensor));
    match(model.config, tensor, [&](Index ours, Index theirs) { buffer[ours] = stored[theirs]; });
  }
}

// The model in a Hugging Face directory, with or without "transformer." before the names.
void load_model(const fs::path& directory, const Model& model) {
  Safetensors file(directory / "model.safetensors");
  const bool prefixed = bool(file.header["transformer.wte.weight"]);
  load_entries(file, prefixed ? "transformer." : "", model, model.parameters);
}

// The shape of that model; refuses what this trainer does not compute.
Config read_config(const fs::path& directory) {
  const fs::path path = directory / "config.json";
  const Json json = read_json(path);
  const auto number = [&](const char* key) { return whole(json, key, path, 1, 1 << 24); };
  if (!json["model_type"]) fail(quoted(path), " has no \"model_type\": it describes no model");
  const Config config = {number("n_layer"), number("n_embd"), number("n_head"),
                         number("n_positions"), number("vocab_size")};
  const std::vector<std::pair<const char*, Json>> computed = {
      {"model_type", "gpt2"}, {"activation_function", "gelu_new"}, {"layer_norm_epsilon", 1e-5},
      {"scale_attn_weights", true}, {"scale_attn_by_inverse_layer_idx", false},
      {"tie_word_embeddings", true}, {"n_inner", 4 * config.C}};
  for (const auto& [key, value] : computed)
    if (json[key] && json[key] != value)
      fail("\"", key, "\" in ", quoted(path), " is ", to_json(json[key]),
           ", but this trainer computes only ", to_json(value));
  validate(config, quoted(path));
  return config;
}

Json::Object hugging_face_config(const Config& config, Token end_of_text) {
  return {{"model_type", "gpt2"}, {"architectures", Json::Array{"GPT2LMHeadModel"}},
          {"n_layer", config.L}, {"n_embd", config.C}, {"n_head", config.H},
          {"n_positions", config.maxT}, {"vocab_size", config.V},
          {"activation_function", "gelu_new"}, {"layer_norm_epsilon", 1e-5},
          {"tie_word_embeddings", true}, {"bos_token_id", end_of_text},
          {"eos_token_id", end_of_text}, {"torch_dtype", "float32"}};
}
// [/hugging-face]

// ==== 9. Settings and sampling ===================================================================

// [settings]
struct Settings {
  std::string data = "datasets/tales", out, init = "L4,C128,H4,T256,V1024", schedule = "cosine";
  Index batch = 4, seq = 0, accum = 1, steps = 1000, warmup = 50;
  double lr = 2.5e-3, final_lr = 0.02, weight_decay = 0.1, beta1 = 0.9, beta2 = 0.95, eps = 1e-8;
  double clip = 1, skip_loss_z = 0, skip_norm_z = 0, temperature = 1, top_p = 1;
  Index val_every = 200, val_batches = 20, sample_every = 400, sample_tokens = 250, top_k = 0;
  Index sample_seed = 1, checkpoint_every = 400, keep = 2, keep_every = 0, seed = 42, data_seed = 1;
  Index threads = 0;
  std::string prompt_tokens, trace, trace_steps = "0", replay;
  bool resume = false, overfit = false, plan = false, sample = false, help = false;
};

// One flag: its name, the sentence of --help, where its value goes, and the range of a number.
struct Flag {
  const char *name, *help;
  std::variant<Index*, double*, std::string*, bool*> value;
  double low = 0, high = 0;
};

std::vector<Flag> make_flags(Settings& s) {
  constexpr double many = 1e12, some = 1e6;
  return {
      {"data", "directory of a data set (dataset.json, shards, tokenizer)", &s.data},
      {"out", "directory for metrics and checkpoints; without it nothing is saved", &s.out},
      {"init", "d12, gpt3:c768, L4,C128,H4,T128,V1024, or a directory to start from", &s.init},
      {"resume", "go on from the newest checkpoint in --out, with its settings", &s.resume},
      {"batch", "sequences in a micro-batch (B)", &s.batch, 1, some},
      {"seq", "tokens in a sequence (T); 0: the model's positions", &s.seq, 0, some},
      {"accum", "micro-batches whose gradients make one step", &s.accum, 1, some},
      {"steps", "steps of the whole run", &s.steps, 1, many},
      {"lr", "peak learning rate", &s.lr, 0, 10},
      {"schedule", "constant, cosine, linear or wsd", &s.schedule},
      {"warmup", "steps over which the learning rate rises from zero", &s.warmup, 0, many},
      {"final-lr", "share of the peak left at the last step (not for constant)", &s.final_lr, 0, 1},
      {"weight-decay", "AdamW's decay of matrices", &s.weight_decay, 0, 10},
      {"beta1", "AdamW's decay of the first moment", &s.beta1, 0, 0.999999},
      {"beta2", "AdamW's decay of the second moment", &s.beta2, 0, 0.999999},
      {"eps", "AdamW's guard of the division", &s.eps, 1e-15, 1},
      {"clip", "largest norm of the gradient; 0: no clipping", &s.clip, 0, some},
      {"skip-loss-z", "skip losses so many deviations above; 0: off", &s.skip_loss_z, 0, some},
      {"skip-norm-z", "the same for the gradient's norm", &s.skip_norm_z, 0, some},
      {"val-every", "steps from validation to validation; 0: never", &s.val_every, 0, many},
      {"val-batches", "batches of a validation; -1 or 0: the split", &s.val_batches, -1, some},
      {"sample-every", "steps from sample to sample; 0: never", &s.sample_every, 0, many},
      {"sample-tokens", "length of a sample, at most", &s.sample_tokens, 1, some},
      {"temperature", "of the samples; 0: always the likeliest token", &s.temperature, 0, 100},
      {"top-k", "sample from the k likeliest tokens; 0: from all", &s.top_k, 0, some},
      {"top-p", "sample from the likeliest tokens with this share together", &s.top_p, 1e-6, 1},
      {"prompt-tokens", "tokens that samples go on from: 464,3290", &s.prompt_tokens},
      {"sample-seed", "seed of the samples", &s.sample_seed, 0, 9e15},
      {"checkpoint-every", "steps between checkpoints; 0: the end", &s.checkpoint_every, 0, many},
      {"keep", "checkpoints to keep; 0: all", &s.keep, 0, some},
      {"keep-every", "never delete those of multiples of this; 0: none", &s.keep_every, 0, many},
      {"seed", "seed of the initial weights", &s.seed, 0, 4294967295.0},
      {"data-seed", "seed of the order of the training windows", &s.data_seed, 0, 9e15},
      {"threads", "threads to compute with; 0: one a processor", &s.threads, 0, 1024},
      {"trace", "write losses and some steps' full state to this safetensors file", &s.trace},
      {"trace-steps", "the steps that --trace keeps: 0,5,10", &s.trace_steps},
      {"replay", "do the steps of this trace again, each from its recorded state", &s.replay},
      {"overfit", "train on the first batch again and again", &s.overfit},
      {"plan", "print the memory plan and stop", &s.plan},
      {"sample", "only sample, from the model in the directory --init", &s.sample},
      {"help", "this text", &s.help},
  };
}

bool is_switch(const Flag& flag) { return std::holds_alternative<bool*>(flag.value); }

std::string to_text(const Flag& flag) {
  if (const auto* text = std::get_if<std::string*>(&flag.value)) return **text;
  return std::visit([](const auto* value) { return to_json(Json(*value)); }, flag.value);
}

void set_flag(const Flag& flag, const std::string& value) {
  const auto set = [&](auto& target, const char* kind) {
    auto number = target;
    if (!parse_number(value, number) || !(number >= flag.low && number <= flag.high))
      fail("--", flag.name, " is '", value, "', expected ", kind, " from ", flag.low, " to ",
           flag.high);
    target = number;
  };
  if (const auto* integer = std::get_if<Index*>(&flag.value)) set(**integer, "a whole number");
  else if (const auto* number = std::get_if<double*>(&flag.value)) set(**number, "a number");
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
    const std::string& argument = arguments[i];
    if (!argument.starts_with("--"))
      fail("'", argument, "' is no flag; flags start with --, see --help");
    const std::size_t equals = std::min(argument.find('='), argument.size());
    const Flag& flag = find_flag(flags, argument.substr(2, equals - 2));
    const bool attached = equals < argument.size();
    if (is_switch(flag)) {
      if (attached) fail("--", flag.name, " is a switch and takes no value");
      set_flag(flag, "true");
      continue;
    }
    if (!attached && i + 1 == arguments.size())
      fail("--", flag.name, " needs a value: ", flag.help);
    set_flag(flag, attached ? argument.substr(equals + 1) : arguments[++i]);
  }
  for (const char* known : {"constant", "cosine", "linear", "wsd"})
    if (settings.schedule == known) return;
  fail("--schedule is '", settings.schedule, "', expected constant, cosine, linear or wsd");
}

void print_help() {
  Settings defaults;
  std::printf("strata01: trains GPT-2 on a processor, in fp32.\nusage: strata01 [flags]\n");
  for (const Flag& flag : make_flags(defaults)) {
    const std::string value = is_switch(flag) ? "" : text(" [", to_text(flag), "]");
    std::printf("  --%-32s %s\n", (flag.name + value).c_str(), flag.help);
  }
}

Json::Object describe_settings(Settings settings) {
  Json::Object described;
  for (const Flag& flag : make_flags(settings)) described[flag.name] = to_text(flag);
  return described;
}

// "1,2,3" as numbers up to `high`; `flag` is named in messages.
std::vector<Index> number_list(const std::string& list, const char* flag, Index high) {
  std::vector<Index> numbers;
  std::istringstream parts(list);
  for (std::string part; std::getline(parts, part, ',');)
    if (Index& n = numbers.emplace_back(); !parse_number(part, n) || n < 0 || n > high)
      fail(flag, ": '", part, "' should be a number from 0 to ", high, ", in a list like 0,5,10");
  return numbers;
}
// [/settings]
// [sampling]
// Picks a token from logits[0 .. V) with a draw `u` from [0, 1): of the `top_k` likeliest (0: of
// all), and of those the fewest that together reach `top_p`. Temperature 0 takes the likeliest.
Token pick_token(const float* logits, Index V, const Settings& s, double u) {
  std::vector<Token> order(V, 0);
  std::iota(order.begin(), order.end(), 0);
  const auto likelier = [&](Token a, Token b) { return logits[a] > logits[b]; };
  std::stable_sort(order.begin(), order.end(), likelier);
  if (s.temperature == 0) return order[0];
  if (s.top_k > 0) order.resize(std::min(s.top_k, V));
  std::vector<double> mass;
  for (const Token id : order)
    mass.push_back(std::exp((double(logits[id]) - logits[order[0]]) / s.temperature));
  const double total = std::accumulate(mass.begin(), mass.end(), 0.0);
  double kept = 0;
  std::size_t count = 0;
  while (count < mass.size() && (count == 0 || kept < s.top_p * total)) kept += mass[count++];
  double left = u * kept;
  for (std::size_t i = 0; i + 1 < count; ++i)
    if ((left -= mass[i]) < 0) return order[i];
  return order[count - 1];
}

std::vector<Token> prompt_tokens(const Settings& s, const Tokenizer& tokenizer, Index V) {
  std::vector<Token> tokens = {tokenizer.end_of_text};  // a text starts where another has ended
  const Index last = std::min(V, Index(tokenizer.words.size())) - 1;
  const std::vector<Index> given = number_list(s.prompt_tokens, "--prompt-tokens", last);
  tokens.insert(tokens.end(), given.begin(), given.end());
  return tokens;
}

// The prompt and how the model goes on, until it ends the text. The whole context, at most the T
// tokens that the model has memory for, is run through it again for every new token.
std::string sample(Model& model, const Tokenizer& tokenizer, const Settings& s) {
  const Index V = std::min(model.config.V, Index(tokenizer.words.size()));
  std::vector<Token> tokens = prompt_tokens(s, tokenizer, model.config.V);
  std::string out;
  for (std::size_t i = 1; i < tokens.size(); ++i) out += tokenizer.words[tokens[i]];
  for (Index i = 0; i < s.sample_tokens; ++i) {
    const Index length = std::min(Index(tokens.size()), model.T);
    model.forward(tokens.data() + (tokens.size() - length), 1, length);
    model.classify(length - 1, 1);
    const double u = double(mix(mix(s.sample_seed) + i) >> 11) * 0x1p-53;
    tokens.push_back(pick_token(model.act.logits, V, s, u));
    if (tokens.back() == tokenizer.end_of_text) break;
    out += tokenizer.words[tokens.back()];
  }
  return out;
}
// [/sampling]

// ==== 10. The run: steps, checkpoints, traces ====================================================

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

// One optimizer step on micro-batches of one shape: their mean gradient, clipped, unless loss or
// norm is an outlier. `on_logits` sees the logits of every micro-batch (traces record them).
StepResult train_step(Model& model, const std::vector<Batch>& batches, const Settings& s,
                      State& state, const std::function<void(const float*)>& on_logits = {}) {
  StepResult r;
  const Index rows = batches[0].B * batches[0].T * Index(batches.size());
  model.gradients.zero();
  for (const Batch& batch : batches) {
    model.forward(batch.inputs.data(), batch.B, batch.T);
    r.loss += model.loss(batch.targets.data(), batch.B, batch.T) / double(rows);
    if (on_logits) on_logits(model.act.logits);
    model.backward(batch.inputs.data(), batch.targets.data(), batch.B, batch.T, 1.0f / float(rows));
  }
  r.norm = global_norm(model.gradients, model.layout.size);
  r.loss_z = state.losses.z(r.loss), r.norm_z = state.norms.z(r.norm);
  r.lr = s.lr * schedule_share(s.schedule, state.step, s.steps, s.warmup, s.final_lr);
  r.skipped = !std::isfinite(r.loss) || !std::isfinite(r.norm) ||
              (s.skip_loss_z > 0 && r.loss_z > s.skip_loss_z) ||
              (s.skip_norm_z > 0 && r.norm_z > s.skip_norm_z);
  if (!r.skipped) {
    const double scale = s.clip > 0 && r.norm > s.clip ? s.clip / r.norm : 1.0;
    adamw_update(model.layout, model.parameters, model.gradients, model.m, model.v,
                 {r.lr, s.beta1, s.beta2, s.eps, s.weight_decay}, ++state.updates, scale);
    state.losses.accept(r.loss), state.norms.accept(r.norm);
  }
  ++state.step, state.tokens += rows;
  return r;
}
// [/train-step]
// [checkpoint]
// The finished checkpoints in `out` by step. One that was not finished is still called *.tmp.
std::map<Index, fs::path> list_checkpoints(const fs::path& out) {
  std::map<Index, fs::path> found;
  for (const fs::path& path : fs::directory_iterator(out)) {
    const std::string name = path.filename().string();
    Index step = 0;
    if (name.starts_with("step_") && parse_number(name.substr(5), step)) found[step] = path;
  }
  return found;
}

// Writes `out`/step_N beside its place and moves it there when it is whole and on the disk, so that
// a crash at any moment leaves the checkpoints before it. Then deletes what --keep does not keep.
void save_checkpoint(const Model& model, const Settings& s, const State& state,
                     const DataSet& data) {
  char name[32];
  std::snprintf(name, sizeof name, "step_%08lld", static_cast<long long>(state.step));
  const fs::path final = fs::path(s.out) / name, building = final.string() + ".tmp";
  const Json::Object description = {
      {"format", 1}, {"stage", "01"}, {"step", state.step}, {"updates", state.updates},
      {"tokens", state.tokens}, {"position", state.position}, {"train_tokens", data.train.tokens},
      {"losses", state.losses.values}, {"norms", state.norms.values},
      {"settings", describe_settings(s)}};
  const Json config = hugging_face_config(model.config, data.tokenizer.end_of_text);
  try {
    fs::remove_all(building);
    fs::create_directories(building);
    std::vector<Entry> weights, moments;
    add_entries(weights, "", model, model.parameters);
    add_entries(moments, "m.", model, model.m);
    add_entries(moments, "v.", model, model.v);
    write_safetensors(building / "model.safetensors", weights, {{"format", "pt"}});
    write_safetensors(building / "optimizer-00000-of-00001.safetensors", moments, {});
    write_text(building / "config.json", to_json(config) + "\n");
    for (const char* file : {"tokenizer.json", "tokenizer.bin"})
      if (const fs::path from = fs::path(s.data) / file; fs::exists(from))
        write_text(building / file, read_text(from));
    write_text(building / "state.json", to_json(description) + "\n");
    sync_to_disk(building);
    fs::rename(building, final);
    sync_to_disk(s.out);
  } catch (const std::exception& error) {
    std::error_code ignored;
    fs::remove_all(building, ignored);
    fail("the checkpoint of step ", state.step, " was not saved, those before it are untouched: ",
         error.what());
  }
  const std::map<Index, fs::path> all = list_checkpoints(s.out);
  Index surplus = s.keep > 0 ? Index(all.size()) - s.keep : 0;
  for (const auto& [step, path] : all)
    if (surplus-- > 0 && (s.keep_every == 0 || step % s.keep_every != 0)) {
      fs::rename(path, building);  // so that a crash leaves no half of it under its name
      fs::remove_all(building);
    }
}

// The settings of a checkpoint; what stands on the command line is set after this.
void load_settings(const fs::path& path, Settings& settings) {
  const Json json = read_json(path);
  const auto* described = json["settings"].get<Json::Object>();
  if (!described) fail(quoted(path), " has no settings: it is no state of a run");
  const std::vector<Flag> flags = make_flags(settings);
  for (const auto& [name, value] : *described)
    if (const auto* s = value.get<std::string>()) set_flag(find_flag(flags, name), *s);
}

void load_state(const fs::path& checkpoint, const Model& model, State& state, Index train_tokens) {
  const fs::path path = checkpoint / "state.json";
  const Json json = read_json(path);
  const auto number = [&](const char* key) { return whole(json, key, path, 0, Index{1} << 53); };
  const auto window = [&](const char* key, OutlierWindow& values) {
    const auto* list = json[key].get<Json::Array>();
    if (!list) fail(quoted(path), " has no list \"", key, "\"");
    for (const Json& item : *list)
      if (const double* value = item.get<double>()) values.accept(*value);
  };
  state.step = number("step"), state.updates = number("updates");
  state.tokens = number("tokens"), state.position = number("position");
  window("losses", state.losses), window("norms", state.norms);
  if (const Index before = number("train_tokens"); before != train_tokens)
    fail(quoted(path), " was trained on ", before, " tokens, but --data has ", train_tokens,
         ": it is another data set; start from this model with --init instead of --resume");
  load_model(checkpoint, model);
  Safetensors moments(checkpoint / "optimizer-00000-of-00001.safetensors");
  load_entries(moments, "m.", model, model.m);
  load_entries(moments, "v.", model, model.v);
}
// [/checkpoint]
// [trace]
// Records steps whole, so that one stage can be held against another.
struct Trace {
  std::vector<Entry> entries;
  std::vector<double> losses;
  std::string traced;  // "0,5,10"

  template <class T> void add(const std::string& name, std::vector<Index> shape, const T* values) {
    const std::string copy(reinterpret_cast<const char*>(values), product(shape) * sizeof(T));
    entries.push_back({name, type_name<T>(), shape, [copy] { return copy; }});
  }
  void add(const std::string& prefix, const Model& model, const float* buffer) {
    const std::size_t first = entries.size();
    add_entries(entries, prefix, model, buffer);
    for (std::size_t i = first; i < entries.size(); ++i)  // as the buffer is now, not at the end
      entries[i].bytes = [copy = entries[i].bytes()] { return copy; };
  }
  // Does one step and keeps it.
  StepResult step(Model& model, const std::vector<Batch>& batches, const Settings& s,
                  State& state) {
    const std::string name = text("step.", state.step, ".");
    traced += text(traced.empty() ? "" : ",", state.step);
    const Index k = Index(batches.size()), B = batches[0].B, T = batches[0].T, V = model.config.V;
    std::vector<Token> tokens;
    for (Batch batch : batches)
      for (Index b = 0; b < B; ++b) {
        tokens.insert(tokens.end(), batch.input(b), batch.input(b) + T);
        tokens.push_back(batch.target(b)[T - 1]);
      }
    const double updates = double(state.updates);
    add(name + "tokens", {k, B, T + 1}, tokens.data());
    add(name + "updates", {1}, &updates);
    for (const auto& [role, buffer] : model.state()) add(name + "before." + role, model, buffer);
    std::vector<float> logits;
    const StepResult result = train_step(model, batches, s, state, [&](const float* z) {
      for (Index row = 0; row < B * T; ++row, z += model.config.Vp())
        logits.insert(logits.end(), z, z + V);
    });
    add(name + "logits", {k, B, T, V}, logits.data());
    add(name + "loss", {1}, &result.loss);
    add(name + "norm", {1}, &result.norm);
    add(name + "grad.", model, model.gradients);
    for (const auto& [role, buffer] : model.state()) add(name + "after." + role, model, buffer);
    losses.push_back(result.loss);
    return result;
  }
  void save(const Settings& s, const Config& config) {
    add("losses", {Index(losses.size())}, losses.data());
    Json::Object metadata = {{"stage", "01"}, {"model", config.describe()}, {"traced", traced},
                             {"steps", text(losses.size())},
                             {"replayed", s.replay.empty() ? "no" : "yes"}};
    for (const auto& [name, value] : describe_settings(s)) metadata["setting." + name] = value;
    write_safetensors(s.trace, entries, metadata);
  }
};

// Does every step of the trace `given.replay` again, from its recorded state and on its tokens.
void replay(const Settings& given) {
  if (given.trace.empty()) fail("--replay needs --trace, the file to write the repeated steps to");
  Safetensors source(given.replay);
  const auto meta = [&](const std::string& key) {
    const auto* value = source.header["__metadata__"][key].get<std::string>();
    if (!value) fail(quoted(given.replay), " is not a trace: it has no \"", key, "\"");
    return *value;
  };
  Settings s;
  for (const Flag& flag : make_flags(s)) set_flag(flag, meta(text("setting.", flag.name)));
  s.trace = given.trace, s.replay = given.replay, s.threads = given.threads;
  s.skip_loss_z = s.skip_norm_z = 0;  // the first run's windows are not recorded
  const Index B = s.batch, T = s.seq, k = s.accum;
  const Config config = parse_descriptor(meta("model"));
  announce_memory(plan_memory(config, B, T, true));
  Model model(config, B, T, true);
  Trace trace;
  for (const Index step : number_list(meta("traced"), "the trace's steps", Index{1} << 53)) {
    const std::string name = text("step.", step, ".");
    State state;
    state.step = step, state.updates = Index(source.read<double>(name + "updates", {1})[0]);
    for (const auto& [role, buffer] : model.state())
      load_entries(source, name + "before." + role, model, buffer);
    const std::vector<Token> tokens = source.read<Token>(name + "tokens", {k, B, T + 1});
    std::vector<Batch> batches(k, Batch(B, T));
    for (Index row = 0; row < k * B; ++row) {
      const Token* from = tokens.data() + row * (T + 1);
      std::copy_n(from, T, batches[row / B].input(row % B));
      std::copy_n(from + 1, T, batches[row / B].target(row % B));
    }
    const StepResult result = trace.step(model, batches, s, state);
    std::printf("step %s loss %.6f\n", text(step).c_str(), result.loss);
  }
  trace.save(s, config);
}
// [/trace]
// [run]
volatile std::sig_atomic_t stop_requested = 0;  // set by Ctrl-C: save a checkpoint and end

// One training run: the loop, and everything that it reports.
struct Run {
  Settings s;
  Model& model;
  DataSet& data;
  State state{};
  Trace trace{};
  std::ofstream metrics{};
  bool terminal = isatty(fileno(stdout));
  double rate = 0;    // seconds a step, smoothed over the last twenty
  Index timed = 0;    // steps that this process has timed
  Index refused = 0;  // steps in a row whose loss or norm was not finite

  // Adds a line to --out's metrics.jsonl; each is whole on its way before the next step begins.
  void log(const Json::Object& line) {
    if (!s.out.empty() && !(metrics << to_json(line) << std::endl))
      fail("cannot write '", s.out, "/metrics.jsonl': ", std::strerror(errno));
  }
  void say(const std::string& line) {  // a line of its own, over the progress line of a terminal
    std::printf("%s%s\n", terminal ? "\r\033[K" : "", line.c_str());
    std::fflush(stdout);
  }

  void describe() {
    if (s.out.empty()) return;
    metrics.open(s.out + "/metrics.jsonl", std::ios::app);
    if (!metrics) fail("cannot open '", s.out, "/metrics.jsonl': ", std::strerror(errno));
    if (s.resume) metrics << "\n";  // a killed run may have left half a line
    const Config& c = model.config;
    Json::Array memory;
    for (const auto& [role, floats] : plan_memory(c, model.B, model.T, true))
      memory.push_back(Json::Object{{"name", role}, {"bytes", floats * 4}});
    log({{"kind", "run"}, {"time", std::time(nullptr)}, {"stage", "01"}, {"step", state.step},
         {"steps", s.steps}, {"batch", s.batch}, {"seq", s.seq}, {"accum", s.accum},
         {"tokens_per_step", s.batch * s.seq * s.accum}, {"settings", describe_settings(s)},
         {"model", Json::Object{{"L", c.L}, {"C", c.C}, {"H", c.H}, {"T", c.maxT}, {"V", c.V},
                                {"Vp", c.Vp()}, {"parameters", model.layout.parameters}}},
         {"entropy_train", data.train_entropy}, {"entropy_val", data.val_entropy},
         {"data", Json::Object{{"name", data.name}, {"train_tokens", data.train.tokens},
                               {"val_tokens", data.val.tokens}}},
         {"memory", memory}, {"threads", omp_get_max_threads()}});
  }

  void validate() {
    const Index all = data.val.windows;
    const Index count = s.val_batches < 1 ? all : std::min(all, s.val_batches * s.batch);
    double sum = 0;
    for (Index first = 0; first < count; first += s.batch) {
      Batch batch(std::min(s.batch, count - first), s.seq);
      for (Index b = 0; b < batch.B; ++b)
        data.val.read(first + b, batch.input(b), batch.target(b));
      model.forward(batch.inputs.data(), batch.B, batch.T);
      sum += model.loss(batch.targets.data(), batch.B, batch.T);
    }
    const double loss = sum / double(count * s.seq);
    log({{"kind", "val"}, {"step", state.step}, {"loss", loss}});
    std::string line = text("after ", state.step, " steps: validation loss ", loss);
    if (std::isfinite(data.val_entropy))
      line += text(", ", loss - data.val_entropy, " above the entropy of its text");
    say(line);
  }

  void show_sample() {
    const std::string sampled = sample(model, data.tokenizer, s);
    log({{"kind", "sample"}, {"step", state.step}, {"text", sampled}, {"prompt", s.prompt_tokens}});
    say(text("--- a sample after ", state.step, " steps ---\n", sampled, "\n---"));
  }

  // The metrics of a step and its progress line: over the one before it on a terminal, elsewhere
  // fifty of them a run.
  void report(const StepResult& r, double seconds) {
    log({{"kind", "train"}, {"step", state.step - 1}, {"loss", r.loss}, {"lr", r.lr},
         {"norm", r.norm}, {"tokens", state.tokens}, {"seconds", seconds}, {"skipped", r.skipped},
         {"loss_z", r.loss_z}, {"norm_z", r.norm_z}});
    rate += (seconds - rate) * std::max(0.05, 1.0 / double(++timed));
    const int left = int(std::min(1e9, rate * double(s.steps - state.step)));
    char excess[40] = "", line[256];
    if (std::isfinite(data.train_entropy))
      std::snprintf(excess, sizeof excess, " | excess %+.4f", r.loss - data.train_entropy);
    std::snprintf(line, sizeof line,
                  " | loss %.4f%s | lr %.2e | norm %.3f | %.0f tok/s | %d:%02d left%s", r.loss,
                  excess, r.lr, r.norm, double(s.batch * s.seq * s.accum) / rate, left / 60,
                  left % 60, r.skipped ? " | skipped" : "");
    const std::string progress = text("step ", state.step, "/", s.steps, line);
    const bool last = state.step == s.steps;
    const bool fiftieth = state.step == 1 || state.step % std::max<Index>(1, s.steps / 50) == 0;
    if (r.skipped || last || (fiftieth && !terminal)) say(progress);
    else if (terminal) std::printf("\r\033[K%s", progress.c_str()), std::fflush(stdout);
    refused = std::isfinite(r.loss) && std::isfinite(r.norm) ? 0 : refused + 1;
    if (refused == 10)
      fail("ten steps in a row had a loss or a gradient that is not finite (loss ", r.loss,
           ", norm ", r.norm, "); the run stops here, go back to its last checkpoint");
  }

  // Trains to the last step; returns false if it was interrupted before.
  bool train() {
    const auto traced = number_list(s.trace_steps, "--trace-steps", Index{1} << 53);
    const double start = omp_get_wtime();
    const auto due = [&](Index every) {
      return every > 0 && (state.step % every == 0 || state.step == s.steps);
    };
    Index saved = state.step;
    const auto save = [&] {
      if (!s.out.empty() && saved != state.step) save_checkpoint(model, s, state, data);
      saved = state.step;
    };
    if (s.val_every > 0 && state.step == 0) validate();
    while (state.step < s.steps && !stop_requested) {
      const double begin = omp_get_wtime();
      std::vector<Batch> batches(s.accum, Batch(s.batch, s.seq));
      for (Batch& batch : batches) {
        deal(data.train, s.data_seed, s.overfit ? 0 : state.position, batch);
        state.position += s.batch;
      }
      StepResult result;
      if (!s.trace.empty() && std::count(traced.begin(), traced.end(), state.step)) {
        result = trace.step(model, batches, s, state);
      } else {
        result = train_step(model, batches, s, state);
        trace.losses.push_back(result.loss);
      }
      report(result, omp_get_wtime() - begin);
      if (due(s.val_every)) validate();
      if (due(s.sample_every)) show_sample();
      if (due(s.checkpoint_every)) save();
    }
    save();
    if (!s.trace.empty()) trace.save(s, model.config);
    log({{"kind", "end"}, {"step", state.step}, {"seconds", omp_get_wtime() - start}});
    return state.step == s.steps;
  }
};
// [/run]
// [main]
// The newest checkpoint in --out of a run that goes on; none for a new run, which must not mix its
// files with those of another.
fs::path find_checkpoint(const Settings& s) {
  if (s.resume && !fs::is_directory(s.out))
    fail("--resume needs --out, the directory of a run, not '", s.out, "'");
  if (!fs::is_directory(s.out)) return {};
  const std::map<Index, fs::path> checkpoints = list_checkpoints(s.out);
  if (s.resume && checkpoints.empty()) fail("--resume: there is no checkpoint in '", s.out, "'");
  if (s.resume) return checkpoints.rbegin()->second;
  if (fs::exists(s.out + "/metrics.jsonl") || !checkpoints.empty())
    fail("--out: '", s.out, "' holds a run already; go on with it by --resume, or choose another");
  return {};
}

void only_sample(const Settings& s) {
  const Config config = read_config(s.init);
  const fs::path own = fs::path(s.init) / "tokenizer.bin";
  const Tokenizer tokenizer(fs::exists(own) ? own : fs::path(s.data) / "tokenizer.bin");
  const Index length = Index(prompt_tokens(s, tokenizer, config.V).size()) + s.sample_tokens;
  Model model(config, 1, std::min(config.maxT, length), false);
  load_model(s.init, model);
  std::printf("%s\n", sample(model, tokenizer, s).c_str());
}

int run(const std::vector<std::string>& arguments) {
  Settings s;
  parse_arguments(s, arguments);
  if (s.threads > 0) omp_set_num_threads(int(s.threads));
  if (s.help) return print_help(), 0;
  if (s.sample) return only_sample(s), 0;
  if (!s.replay.empty()) return replay(s), 0;
  const fs::path checkpoint = find_checkpoint(s);
  if (s.resume) {
    s = Settings{};
    load_settings(checkpoint / "state.json", s);
    parse_arguments(s, arguments);
    s.init = checkpoint.string();
  }
  if (!s.plan && !fs::exists(s.data + "/dataset.json"))
    fail("--data: '", s.data, "' is no data set (it has no dataset.json); `./run data` makes one");
  const bool trained = fs::is_directory(s.init);
  const Config config = trained ? read_config(s.init) : parse_descriptor(s.init);
  if (s.seq == 0) s.seq = config.maxT;
  if (s.seq > config.maxT)
    fail("--seq is ", s.seq, ", but the model has only ", config.maxT, " positions");
  std::printf("model %s: %s parameters, %d threads\n", config.describe().c_str(),
              text(make_layout(config).parameters).c_str(), omp_get_max_threads());
  announce_memory(plan_memory(config, s.batch, s.seq, true));
  if (s.plan) return 0;
  DataSet data(s.data, s.seq, config.V);
  prompt_tokens(s, data.tokenizer, config.V);  // a bad prompt is told now, not at the first sample
  Model model(config, s.batch, s.seq, true);
  Run training{s, model, data};
  if (s.resume) load_state(checkpoint, model, training.state, data.train.tokens);
  else if (trained) load_model(s.init, model);
  else initialise(config, model.layout, s.seed, model.parameters);
  if (training.state.step > s.steps)
    fail("--steps is ", s.steps, ", but the run has done ", training.state.step, " steps already");
  if (!s.out.empty()) fs::create_directories(s.out);
  training.describe();
  std::signal(SIGINT, [](int) { stop_requested = 1; });
  std::signal(SIGTERM, [](int) { stop_requested = 1; });
  if (training.train()) return 0;
  std::printf("\ninterrupted after step %s; --resume goes on from there\n",
              text(training.state.step).c_str());
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
