// Traces made up for tests: two steps of a model of one block whose numbers come from a formula, with
// an AdamW in fp32 as a stage would write it, and with the faults that a stage might have.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "common/io/safetensors.h"

namespace strata::tests {

/// What a synthetic stage does, rightly by default.
struct Behaviour {
  double noise = 0;               ///< relative rounding noise in logits, losses and gradients
  double gradient_factor = 1;     ///< 2: the mean over micro-batches forgotten
  bool clip = true;               ///< false: clipping left out
  bool decay_biases = false;      ///< true: weight decay on vectors too
  bool decay_matrices = true;     ///< false: no weight decay at all
  std::uint64_t stale_steps = 0;  ///< 1: bias correction with the number of the update before
};

/// A trace in memory; tests edit its tensors before they write it.
class SyntheticTrace {
 public:
  struct Values {
    io::Shape shape;
    std::vector<double> values;
  };
  std::map<std::string, Values> tensors;
  std::map<std::string, std::string> metadata{{"stage", "00"},
                                              {"steps", "6"},
                                              {"traced", "0,3"},
                                              {"setting.lr", "0.01"},
                                              {"setting.schedule", "cosine"},
                                              {"setting.steps", "6"},
                                              {"setting.warmup", "2"},
                                              {"setting.final-lr", "0.1"},
                                              {"setting.weight-decay", "0.1"},
                                              {"setting.beta1", "0.9"},
                                              {"setting.beta2", "0.95"},
                                              {"setting.eps", "1e-8"},
                                              {"setting.clip", "1"},
                                              {"setting.batch", "2"},
                                              {"setting.seq", "3"},
                                              {"setting.accum", "2"}};

  explicit SyntheticTrace(const Behaviour& behaviour = {}) : behaviour_(behaviour) {
    Values losses{{6}, {}};
    for (std::uint64_t i = 0; i < 6; ++i) losses.values.push_back(noisy(3 - 0.1 * double(i)));
    tensors["losses"] = losses;
    // The learning rates of steps 0 and 3 by hand: half the peak in the warm-up, then a third of the
    // way down the cosine from 1 to 0.1.
    add_step(0, 0.5 * 0.01);
    add_step(3, (0.1 + 0.9 * 0.75) * 0.01);
  }

  Values& operator[](const std::string& name) { return tensors.at(name); }

  /// Writes the file plainly: hundreds of them need not be synced to the disk one by one.
  void write(const std::filesystem::path& path) const {
    nlohmann::json header{{"__metadata__", metadata}};
    std::string data;
    for (const auto& [name, tensor] : tensors) {
      const std::size_t begin = data.size();
      for (const double value : tensor.values) append(data, dtype(name), value);
      header[name] = {{"dtype", io::dtype_name(dtype(name))},
                      {"shape", tensor.shape},
                      {"data_offsets", {begin, data.size()}}};
    }
    const std::string text = header.dump();
    const std::uint64_t length = text.size();
    std::ofstream file(path, std::ios::binary);
    file.write(reinterpret_cast<const char*>(&length), 8) << text << data;
  }

 private:
  static io::Dtype dtype(const std::string& name) {
    if (name.ends_with(".tokens")) return io::Dtype::i32;
    const bool number = name == "losses" || name.ends_with(".loss") || name.ends_with(".norm");
    return number ? io::Dtype::f64 : io::Dtype::f32;
  }

  static void append(std::string& data, io::Dtype dtype, double value) {
    const auto bytes = [&](auto x) { data.append(reinterpret_cast<const char*>(&x), sizeof x); };
    if (dtype == io::Dtype::f64) bytes(value);
    if (dtype == io::Dtype::f32) bytes(static_cast<float>(value));
    if (dtype == io::Dtype::i32) bytes(static_cast<std::int32_t>(value));
  }

  /// Numbers from -1 to 1 without a pattern (SplitMix64).
  double draw() {
    std::uint64_t x = (state_ += 0x9e3779b97f4a7c15U);
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return static_cast<double>((x ^ (x >> 31)) >> 11) * 0x1p-52 - 1;
  }
  double noisy(double value) { return value * (1 + behaviour_.noise * draw()); }

  template <typename Make>
  Values make(const io::Shape& shape, Make value) {
    std::uint64_t elements = 1;
    for (const std::uint64_t extent : shape) elements *= extent;
    Values made{shape, {}};
    for (std::uint64_t i = 0; i < elements; ++i) made.values.push_back(value());
    return made;
  }

  void add_step(std::uint64_t step, double lr) {
    const std::string prefix = "step." + std::to_string(step) + ".";
    static const std::vector<std::pair<std::string, io::Shape>> parameters{
        {"wte.weight", {7, 4}},
        {"wpe.weight", {5, 4}},
        {"h.0.ln_1.weight", {4}},
        {"h.0.ln_1.bias", {4}},
        {"h.0.attn.c_attn.weight", {4, 12}},
        {"h.0.attn.c_attn.bias", {12}},
        {"h.0.attn.c_proj.weight", {4, 4}},
        {"h.0.attn.c_proj.bias", {4}},
        {"h.0.ln_2.weight", {4}},
        {"h.0.ln_2.bias", {4}},
        {"h.0.mlp.c_fc.weight", {4, 16}},
        {"h.0.mlp.c_fc.bias", {16}},
        {"h.0.mlp.c_proj.weight", {16, 4}},
        {"h.0.mlp.c_proj.bias", {4}},
        {"ln_f.weight", {4}},
        {"ln_f.bias", {4}}};
    state_ = 1000 * (step + 1);  // the same in every trace, whatever the noise before
    tensors[prefix + "tokens"] = make({2, 2, 4}, [&] { return std::floor(3.5 + 3.5 * draw()); });
    for (const auto& [name, shape] : parameters) {
      const auto fp32 = [&](double x) { return static_cast<double>(static_cast<float>(x)); };
      tensors[prefix + "before.param." + name] = make(shape, [&] { return fp32(0.5 * draw()); });
      tensors[prefix + "before.m." + name] = make(shape, [&] { return fp32(0.1 * draw()); });
      tensors[prefix + "before.v." + name] =
          make(shape, [&] { return fp32(0.01 + 0.01 * std::abs(draw())); });
      // Step 3's gradients are small, so that it is not clipped.
      const double size = (step == 0 ? 0.5 : 0.03) * behaviour_.gradient_factor;
      tensors[prefix + "grad." + name] = make(shape, [&] { return size * draw(); });
    }
    Values& qkv = tensors[prefix + "grad.h.0.attn.c_attn.bias"];
    for (std::size_t i = 4; i < 8; ++i) qkv.values[i] = 0;
    tensors[prefix + "logits"] = make({2, 2, 3, 7}, [&] { return 4 * draw(); });
    add_noise(prefix);
    double squares = 0;
    for (auto& [name, tensor] : tensors)
      if (name.starts_with(prefix + "grad."))
        for (double& x : tensor.values) {
          x = static_cast<float>(x);
          squares += x * x;
        }
    tensors[prefix + "norm"] = {{1}, {std::sqrt(squares)}};
    tensors[prefix + "loss"] = {{1}, {noisy(3 - 0.1 * double(step))}};
    for (const auto& [name, shape] : parameters)
      update(prefix, name, step + 1 - behaviour_.stale_steps, lr, std::sqrt(squares));
  }

  void add_noise(const std::string& prefix) {
    if (behaviour_.noise == 0) return;
    for (auto& [name, tensor] : tensors)
      if (name.starts_with(prefix + "grad.") || name == prefix + "logits")
        for (double& x : tensor.values) x = noisy(x);
    for (std::size_t i = 4; i < 8; ++i)  // what should be zero is noise altogether
      tensors[prefix + "grad.h.0.attn.c_attn.bias"].values[i] = 0.1 * behaviour_.noise * draw();
  }

  void update(const std::string& prefix, const std::string& name, std::uint64_t count, double lr,
              double norm) {
    const bool matrix = tensors[prefix + "grad." + name].shape.size() == 2;
    const bool decays = matrix ? behaviour_.decay_matrices : behaviour_.decay_biases;
    const auto scale = static_cast<float>(behaviour_.clip && norm > 1 ? 1 / norm : 1);
    const auto n = static_cast<float>(count);
    Values param = tensors[prefix + "before.param." + name];
    Values m = tensors[prefix + "before.m." + name];
    Values v = tensors[prefix + "before.v." + name];
    for (std::size_t i = 0; i < param.values.size(); ++i) {
      const float g = scale * static_cast<float>(tensors[prefix + "grad." + name].values[i]);
      const float m1 = 0.9F * static_cast<float>(m.values[i]) + 0.1F * g;
      const float v1 = 0.95F * static_cast<float>(v.values[i]) + 0.05F * g * g;
      const float direction =
          m1 / (1 - std::pow(0.9F, n)) / (std::sqrt(v1 / (1 - std::pow(0.95F, n))) + 1e-8F);
      const auto p = static_cast<float>(param.values[i]);
      m.values[i] = m1;
      v.values[i] = v1;
      param.values[i] = p - static_cast<float>(lr) * (direction + (decays ? 0.1F * p : 0.0F));
    }
    tensors[prefix + "after.param." + name] = param;
    tensors[prefix + "after.m." + name] = m;
    tensors[prefix + "after.v." + name] = v;
  }

  Behaviour behaviour_;
  std::uint64_t state_ = 1;
};

}  // namespace strata::tests
