// The fixtures of tests/fixtures/gpt2 as the tests of stage 01 use them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "common/io/safetensors.h"
#include "tests/stage01/reference.h"

namespace strata::tests {

inline std::filesystem::path gpt2_fixtures() {
  return std::filesystem::path(STRATA_SOURCE_DIR) / "tests/fixtures/gpt2";
}

/// True for the matrices that Hugging Face stores as (in, out).
inline bool is_conv1d(const std::string& name) {
  return name.ends_with(".weight") &&
         (name.find("c_attn") != name.npos || name.find("c_proj") != name.npos ||
          name.find("c_fc") != name.npos);
}

/// Rows become columns: x (rows, columns) to (columns, rows).
template <typename T>
std::vector<T> transposed(const std::vector<T>& x, std::size_t rows, std::size_t columns) {
  std::vector<T> y(x.size());
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < columns; ++c) y[c * rows + r] = x[r * columns + c];
  return y;
}

/// The tensor `prefix` + `name` of a file in Hugging Face's layout, turned to (out, in).
inline reference::Numbers read_weight(const io::Safetensors& file, const std::string& prefix,
                                      const std::string& name) {
  const io::Tensor& tensor = file.at(prefix + name);
  reference::Numbers values = file.read_doubles(prefix + name);
  return is_conv1d(name) ? transposed(values, tensor.shape[0], tensor.shape[1]) : values;
}

/// A model of make_fixtures.py: a.safetensors or b.safetensors.
struct Fixture {
  io::Safetensors file;
  reference::Model model;
  std::size_t B = 0, T = 0;
  reference::Tokens inputs, targets;  ///< (B, T)

  explicit Fixture(const std::string& name) : file(gpt2_fixtures() / name) {
    const auto number = [&](const char* key) {
      return static_cast<std::size_t>(std::stoul(file.metadata().at(key)));
    };
    model.L = number("L"), model.C = number("C"), model.H = number("H");
    model.maxT = number("T"), model.V = number("V");
    for (const io::Tensor& tensor : file.tensors())
      if (tensor.name.starts_with("param."))
        model.weights[tensor.name.substr(6)] = read_weight(file, "param.", tensor.name.substr(6));
    B = file.at("tokens").shape[0];
    T = file.at("tokens").shape[1] - 1;
    const auto tokens = file.read<std::int32_t>("tokens");
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (i % (T + 1) < T) inputs.push_back(tokens[i]);
      if (i % (T + 1) > 0) targets.push_back(tokens[i]);
    }
  }
};

}  // namespace strata::tests
