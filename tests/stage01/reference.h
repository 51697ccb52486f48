// GPT-2's forward pass in double precision, as plainly as it can be written: the oracle for the
// layers of stage 01, itself held against PyTorch's float64 in reference_test.cpp.
//
// Everything is row-major. Matrices of linear layers are (out, in), as stage 01 keeps them inside:
// row o holds the weights of output o. (Hugging Face's files hold them the other way round.)
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <numbers>
#include <string>
#include <vector>

namespace strata::reference {

using Numbers = std::vector<double>;
using Tokens = std::vector<int>;

/// x (B*T, C) = wte[token] + wpe[t].
inline Numbers embedding(const Tokens& tokens, const Numbers& wte, const Numbers& wpe,
                         std::size_t T, std::size_t C) {
  Numbers x;
  for (std::size_t row = 0; row < tokens.size(); ++row)
    for (std::size_t c = 0; c < C; ++c)
      x.push_back(wte.at(static_cast<std::size_t>(tokens[row]) * C + c) + wpe.at(row % T * C + c));
  return x;
}

/// y = (x - mean) / sqrt(variance + 1e-5) * weight + bias for each row of x (rows, C).
inline Numbers layernorm(const Numbers& x, const Numbers& weight, const Numbers& bias) {
  const std::size_t C = weight.size();
  Numbers y(x.size());
  for (std::size_t start = 0; start < x.size(); start += C) {
    double mean = 0;
    for (std::size_t c = 0; c < C; ++c) mean += x[start + c] / static_cast<double>(C);
    double variance = 0;
    for (std::size_t c = 0; c < C; ++c)
      variance += (x[start + c] - mean) * (x[start + c] - mean) / static_cast<double>(C);
    for (std::size_t c = 0; c < C; ++c)
      y[start + c] = (x[start + c] - mean) / std::sqrt(variance + 1e-5) * weight[c] + bias[c];
  }
  return y;
}

/// y (rows, out) = x (rows, in) weight^T + bias, with weight (out, in); an empty bias is none.
inline Numbers linear(const Numbers& x, const Numbers& weight, const Numbers& bias,
                      std::size_t in) {
  const std::size_t out = weight.size() / in;
  Numbers y;
  for (std::size_t row = 0; row < x.size() / in; ++row)
    for (std::size_t o = 0; o < out; ++o) {
      double sum = bias.empty() ? 0 : bias[o];
      for (std::size_t i = 0; i < in; ++i) sum += x[row * in + i] * weight[o * in + i];
      y.push_back(sum);
    }
  return y;
}

/// Causal attention. qkv (B, T, 3C): the queries of all heads, then the keys, then the values, each
/// (H, C/H). Returns (B, T, C).
inline Numbers attention(const Numbers& qkv, std::size_t T, std::size_t C, std::size_t H) {
  const std::size_t D = C / H;
  const std::size_t B = qkv.size() / (T * 3 * C);
  Numbers y(B * T * C, 0.0);
  // Channel d of head h at position t; part 0 is the query, 1 the key, 2 the value.
  const auto at = [&](std::size_t part, std::size_t b, std::size_t t, std::size_t h,
                      std::size_t d) { return qkv[(b * T + t) * 3 * C + part * C + h * D + d]; };
  for (std::size_t b = 0; b < B; ++b)
    for (std::size_t h = 0; h < H; ++h)
      for (std::size_t t = 0; t < T; ++t) {
        Numbers score(t + 1, 0.0);
        for (std::size_t s = 0; s <= t; ++s)
          for (std::size_t d = 0; d < D; ++d)
            score[s] += at(0, b, t, h, d) * at(1, b, s, h, d) / std::sqrt(static_cast<double>(D));
        const double largest = *std::max_element(score.begin(), score.end());
        double sum = 0;
        for (const double x : score) sum += std::exp(x - largest);
        for (std::size_t s = 0; s <= t; ++s)
          for (std::size_t d = 0; d < D; ++d)
            y[(b * T + t) * C + h * D + d] +=
                std::exp(score[s] - largest) / sum * at(2, b, s, h, d);
      }
  return y;
}

/// GELU in its tanh form: 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))).
inline Numbers gelu(const Numbers& x) {
  Numbers y;
  for (const double v : x)
    y.push_back(0.5 * v *
                (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (v + 0.044715 * v * v * v))));
  return y;
}

inline Numbers add(const Numbers& a, const Numbers& b) {
  Numbers y(a);
  for (std::size_t i = 0; i < y.size(); ++i) y[i] += b.at(i);
  return y;
}

/// log(sum of exp) of each row of logits (rows, V), less the logit of its target.
inline Numbers cross_entropies(const Numbers& logits, const Tokens& targets) {
  const std::size_t V = logits.size() / targets.size();
  Numbers losses;
  for (std::size_t row = 0; row < targets.size(); ++row) {
    const double* z = &logits[row * V];
    const double largest = *std::max_element(z, z + V);
    double sum = 0;
    for (std::size_t v = 0; v < V; ++v) sum += std::exp(z[v] - largest);
    losses.push_back(largest + std::log(sum) - z[targets[row]]);
  }
  return losses;
}

/// Their mean over all rows.
inline double cross_entropy(const Numbers& logits, const Tokens& targets) {
  double sum = 0;
  for (const double loss : cross_entropies(logits, targets)) sum += loss;
  return sum / static_cast<double>(targets.size());
}

/// A whole model: its shape, and its weights by Hugging Face's names ("h.0.ln_1.weight").
struct Model {
  std::size_t L = 0, C = 0, H = 0, maxT = 0, V = 0;
  std::map<std::string, Numbers> weights;

  /// Logits (B*T, V) of tokens (B, T).
  [[nodiscard]] Numbers logits(const Tokens& tokens, std::size_t T) const {
    const auto w = [&](const std::string& name) -> const Numbers& { return weights.at(name); };
    Numbers x = embedding(tokens, w("wte.weight"), w("wpe.weight"), T, C);
    for (std::size_t l = 0; l < L; ++l) {
      const std::string h = "h." + std::to_string(l) + ".";
      const auto norm = [&](const std::string& name) {
        return layernorm(x, w(h + name + ".weight"), w(h + name + ".bias"));
      };
      const auto dense = [&](const std::string& name, const Numbers& input, std::size_t in) {
        return linear(input, w(h + name + ".weight"), w(h + name + ".bias"), in);
      };
      const Numbers attended = attention(dense("attn.c_attn", norm("ln_1"), C), T, C, H);
      x = add(x, dense("attn.c_proj", attended, C));
      const Numbers hidden = gelu(dense("mlp.c_fc", norm("ln_2"), C));
      x = add(x, dense("mlp.c_proj", hidden, 4 * C));
    }
    x = layernorm(x, w("ln_f.weight"), w("ln_f.bias"));
    return linear(x, w("wte.weight"), {}, C);
  }

  [[nodiscard]] double loss(const Tokens& inputs, const Tokens& targets, std::size_t T) const {
    return cross_entropy(logits(inputs, T), targets);
  }
};

/// The derivative of `f()` with respect to the number `x`, which `f` reads: five-point differences.
/// With step h their error is about h^4 f'''''/30 beside a rounding error of about 1e-16 |f| / h.
template <typename Function>
double derivative(double& x, Function f, double h = 1e-3) {
  const double kept = x;
  const auto at = [&](double offset) {
    x = kept + offset;
    return f();
  };
  const double slope = (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h);
  x = kept;
  return slope;
}

/// The gradient of `f()` with respect to every element of `x`, which `f` reads.
template <typename Function>
Numbers gradient(Numbers& x, Function f, double h = 1e-3) {
  Numbers slopes;
  for (double& element : x) slopes.push_back(derivative(element, f, h));
  return slopes;
}

}  // namespace strata::reference
