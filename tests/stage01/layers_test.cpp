// Every layer of stage 01: forward against the double-precision reference, backward against finite
// differences of it, at sizes that are no multiples of anything.

#include "tests/catch.h"
#include "tests/stage01/stage01.h"

namespace {

using namespace strata::tests;
using stage01::Affine;
using stage01::Index;
using strata::reference::Numbers;
using strata::reference::Tokens;
namespace reference = strata::reference;

// Sums of up to a few hundred fp32 products: about 2^-24 times the root of their number, and a few
// times as much where terms cancel. A term left out, or one counted twice, is a thousand times more.
constexpr double fp32_rounding = 1e-5;

// What a parameter's gradient holds before the backward pass, to see that it is added to.
constexpr float earlier = 0.25F;

/// The sum of the products of two lists: a loss whose gradient with respect to y is dy.
double dot(const Numbers& dy, const Numbers& y) {
  REQUIRE(dy.size() == y.size());
  double sum = 0;
  for (std::size_t i = 0; i < y.size(); ++i) sum += dy[i] * y[i];
  return sum;
}

Index index(std::size_t n) { return static_cast<Index>(n); }

struct Size {
  std::size_t B, T, C, H;
};
const Size sizes[] = {{1, 1, 1, 1}, {2, 3, 5, 1}, {2, 9, 15, 3}, {1, 17, 33, 11}, {3, 35, 20, 2}};

TEST_CASE("the embedding adds token and position, and its gradient counts every use of a token") {
  for (const auto& [B, T, C, H] : sizes) {
    Draws draws(1);
    const int V = 7;
    const std::size_t positions = T + 2;  // more than are used
    const Tokens tokens = draws.tokens(B * T, V);
    Numbers wte = draws.numbers(7 * C), wpe = draws.numbers(positions * C);
    const Numbers dy = draws.numbers(B * T * C);
    Floats x(B * T * C), dwte(wte.size(), earlier), dwpe(wpe.size(), earlier);
    stage01::embedding_forward(x.data(), tokens.data(), floats(wte).data(), floats(wpe).data(),
                               index(B), index(T), index(C));
    stage01::embedding_backward(dwte.data(), dwpe.data(), floats(dy).data(), tokens.data(),
                                index(B), index(T), index(C));
    const auto loss = [&, t = T, c = C] {
      return dot(dy, reference::embedding(tokens, wte, wpe, t, c));
    };
    INFO("B " << B << " T " << T << " C " << C);
    CHECK(error(x, reference::embedding(tokens, wte, wpe, T, C)) <= fp32_rounding);
    CHECK(gradient_error(dwte, wte, loss, earlier) <= fp32_rounding);
    CHECK(gradient_error(dwpe, wpe, loss, earlier) <= fp32_rounding);
  }
}

TEST_CASE("LayerNorm and its gradient, which is added to that of the stream") {
  for (const auto& [B, T, C, H] : sizes) {
    Draws draws(2);
    const std::size_t rows = B * T;
    Numbers x = draws.numbers(rows * C), weight = draws.numbers(C, 2), bias = draws.numbers(C);
    const Numbers dy = draws.numbers(rows * C);
    Floats y(rows * C), mean(rows), rstd(rows);
    Floats dx(rows * C, earlier), dweight(C, earlier), dbias(C, earlier);
    Floats fx = floats(x), fweight = floats(weight), fbias = floats(bias);
    const Affine w{fweight.data(), fbias.data()};
    const stage01::Normed saved{y.data(), mean.data(), rstd.data()};
    stage01::layernorm_forward(saved, fx.data(), w, index(rows), index(C));
    stage01::layernorm_backward(dx.data(), {dweight.data(), dbias.data()}, floats(dy).data(),
                                fx.data(), w, saved, index(rows), index(C));
    const auto loss = [&] { return dot(dy, reference::layernorm(x, weight, bias)); };
    INFO("rows " << rows << " C " << C);
    CHECK(error(y, reference::layernorm(x, weight, bias)) <= fp32_rounding);
    // A single channel has no variance: rstd is 1/sqrt(1e-5), and multiplies the rounding by 316.
    CHECK(gradient_error(dx, x, loss, earlier) <= (C == 1 ? 316 : 1) * fp32_rounding);
    CHECK(gradient_error(dweight, weight, loss, earlier) <= fp32_rounding);
    CHECK(gradient_error(dbias, bias, loss, earlier) <= fp32_rounding);
  }
}

TEST_CASE("LayerNorm of a row without variance is its bias, and finite both ways") {
  Floats x(5, 3.0F), weight(5, 2.0F), bias(5, 0.5F), dy{1, -2, 3, 0, 1};
  Floats y(5), mean(1), rstd(1), dx(5), dweight(5), dbias(5);
  const Affine w{weight.data(), bias.data()};
  const stage01::Normed saved{y.data(), mean.data(), rstd.data()};
  stage01::layernorm_forward(saved, x.data(), w, 1, 5);
  stage01::layernorm_backward(dx.data(), {dweight.data(), dbias.data()}, dy.data(), x.data(), w,
                              saved, 1, 5);
  CHECK(y == bias);
  CHECK(std::all_of(dx.begin(), dx.end(), [](float v) { return std::isfinite(v); }));
}

TEST_CASE("a linear layer and its gradients, at sizes around every tile") {
  struct Shape {
    std::size_t rows, in, out;
  };
  for (const auto& [rows, in, out] : {Shape{1, 1, 1}, Shape{3, 7, 5}, Shape{2, 33, 65},
                                      Shape{65, 31, 33}, Shape{64, 8, 64}, Shape{67, 16, 129}}) {
    for (const bool with_bias : {true, false}) {
      Draws draws(3);
      Numbers x = draws.numbers(rows * in), weight = draws.numbers(out * in);
      Numbers bias = draws.numbers(with_bias ? out : 0);
      const Numbers dy = draws.numbers(rows * out);
      Floats fx = floats(x), fweight = floats(weight), fbias = floats(bias);
      Floats y(rows * out), dx(rows * in, earlier), dweight(out * in, earlier);
      Floats dbias(bias.size(), earlier);
      const Affine w{fweight.data(), with_bias ? fbias.data() : nullptr};
      const Affine d{dweight.data(), with_bias ? dbias.data() : nullptr};
      stage01::linear_forward(y.data(), fx.data(), w, index(rows), index(in), index(out));
      stage01::linear_backward(dx.data(), d, floats(dy).data(), fx.data(), w, index(rows),
                               index(in), index(out));
      const auto loss = [&, i = in] { return dot(dy, reference::linear(x, weight, bias, i)); };
      INFO("rows " << rows << " in " << in << " out " << out << " bias " << with_bias);
      CHECK(error(y, reference::linear(x, weight, bias, in)) <= fp32_rounding);
      CHECK(gradient_error(dx, x, loss) <= fp32_rounding);
      CHECK(gradient_error(dweight, weight, loss, earlier) <= fp32_rounding);
      if (with_bias) CHECK(gradient_error(dbias, bias, loss, earlier) <= fp32_rounding);
    }
  }
}

/// Attention of stage 01, forward and backward, with everything that must not be read set to NaN.
struct Attention {
  Floats y, dqkv;
  Attention(const Numbers& qkv, const Numbers& dy, const Size& size) {
    const auto& [B, T, C, H] = size;
    const float nan = std::numeric_limits<float>::quiet_NaN();
    Floats probability(B * H * T * T, nan);
    y.assign(B * T * C, nan);
    dqkv.assign(B * T * 3 * C, nan);
    const Floats fqkv = floats(qkv);
    stage01::attention_forward(y.data(), probability.data(), fqkv.data(), index(B), index(T),
                               index(C), index(H));
    stage01::attention_backward(dqkv.data(), probability.data(), floats(dy).data(), fqkv.data(),
                                index(B), index(T), index(C), index(H));
  }
};

TEST_CASE("attention and its gradient") {
  for (const Size& size : sizes) {
    const auto& [B, T, C, H] = size;
    Draws draws(4);
    Numbers qkv = draws.numbers(B * T * 3 * C, 1.5);
    const Numbers dy = draws.numbers(B * T * C);
    const Attention attention(qkv, dy, size);
    const auto loss = [&, t = T, c = C, h = H] {
      return dot(dy, reference::attention(qkv, t, c, h));
    };
    INFO("B " << B << " T " << T << " C " << C << " H " << H);
    CHECK(error(attention.y, reference::attention(qkv, T, C, H)) <= fp32_rounding);
    CHECK(gradient_error(attention.dqkv, qkv, loss) <= fp32_rounding);
  }
}

TEST_CASE("attention sees no later position, in any bit") {
  const Size size{1, 9, 6, 2};
  Draws draws(5);
  const Numbers qkv = draws.numbers(9 * 18), dy = draws.numbers(9 * 6);
  const Attention before(qkv, dy, size);
  for (std::size_t t = 1; t < 9; ++t) {
    Numbers changed = qkv;
    for (std::size_t i = t * 18; i < 9 * 18; ++i) changed[i] += 1;
    const Attention after(changed, dy, size);
    CHECK(std::equal(before.y.begin(), before.y.begin() + index(t * 6), after.y.begin()));
    CHECK_FALSE(std::equal(before.y.begin(), before.y.end(), after.y.begin()));
  }
}

TEST_CASE("attention with scores in the thousands stays finite and right") {
  const Size size{1, 7, 4, 1};
  Draws draws(6);
  const Numbers qkv = draws.numbers(7 * 12, 60), dy = draws.numbers(7 * 4);
  const Attention attention(qkv, dy, size);
  CHECK(error(attention.y, reference::attention(qkv, 7, 4, 1)) <= 1e-3);
  for (const float x : attention.dqkv) CHECK(std::isfinite(x));
}

TEST_CASE("GELU and its gradient, in place too") {
  Draws draws(7);
  Numbers x = draws.numbers(1001, 6);
  const Numbers dy = draws.numbers(1001);
  const Floats fx = floats(x);
  Floats y(1001), dx = floats(dy);
  stage01::gelu_forward(y.data(), fx.data(), 1001);
  stage01::gelu_backward(dx.data(), dx.data(), fx.data(), 1001);
  const Numbers expected = reference::gelu(x);
  CHECK(error(y, expected) <= fp32_rounding);
  for (std::size_t i = 0; i < x.size(); ++i) {
    Numbers one{x[i]};
    const double slope = reference::derivative(one[0], [&] { return reference::gelu(one)[0]; });
    // The exponential makes the rounding of its argument, up to 28 here, relative: 28 * 2^-24 and
    // some more.
    CHECK(std::abs(dx[i] - dy[i] * slope) <= 5e-6);
  }
}

TEST_CASE("GELU of any finite number is finite, and of a large one is that number or zero") {
  for (const float large : {12.5F, 1e3F, 1e10F, 1e20F, 3e38F}) {
    const Floats x{large, -large}, dy{2, 2};
    Floats y(2), dx(2);
    stage01::gelu_forward(y.data(), x.data(), 2);
    stage01::gelu_backward(dx.data(), dy.data(), x.data(), 2);
    CHECK(y == Floats{large, 0});
    CHECK(dx[0] == Approx(2));
    CHECK(dx[1] == Approx(0).margin(1e-20));
  }
}

TEST_CASE("the residual is a sum") {
  Draws draws(8);
  const Numbers a = draws.numbers(77), b = draws.numbers(77);
  Floats y(77);
  stage01::residual_forward(y.data(), floats(a).data(), floats(b).data(), 77);
  CHECK(error(y, reference::add(a, b)) <= 0x1p-24);
}

/// Losses and the gradient of their weighted sum, from logits padded with rubbish to Vp columns.
struct CrossEntropy {
  Floats losses, gradient, padding;
  CrossEntropy(const Numbers& logits, const Tokens& targets, float weight, std::size_t Vp) {
    const std::size_t rows = targets.size(), V = logits.size() / rows;
    Floats padded(rows * Vp, 1e30F), lse(rows);
    for (std::size_t i = 0; i < logits.size(); ++i)
      padded[i / V * Vp + i % V] = static_cast<float>(logits[i]);
    losses.resize(rows);
    stage01::cross_entropy_forward(losses.data(), lse.data(), padded.data(), targets.data(),
                                   index(rows), index(V), index(Vp));
    stage01::cross_entropy_backward(padded.data(), lse.data(), targets.data(), weight, index(rows),
                                    index(V), index(Vp));
    for (std::size_t i = 0; i < padded.size(); ++i)
      (i % Vp < V ? gradient : padding).push_back(padded[i]);
  }
};

TEST_CASE("cross-entropy and its gradient, whatever the padding holds") {
  for (const auto& [rows, V, Vp] :
       {std::array<std::size_t, 3>{1, 1, 128}, {3, 5, 128}, {9, 129, 256}}) {
    Draws draws(9);
    Numbers logits = draws.numbers(rows * V, 5);
    const Tokens targets = draws.tokens(rows, static_cast<int>(V));
    const CrossEntropy result(logits, targets, 1.0F / static_cast<float>(rows), Vp);
    INFO("rows " << rows << " V " << V);
    CHECK(error(result.losses, reference::cross_entropies(logits, targets)) <= fp32_rounding);
    CHECK(gradient_error(result.gradient, logits, [&] {
            return reference::cross_entropy(logits, targets);
          }) <= fp32_rounding);
    CHECK(
        std::all_of(result.padding.begin(), result.padding.end(), [](float x) { return x == 0; }));
  }
}

TEST_CASE("cross-entropy is finite for any finite logits") {
  const Numbers logits{1e4, -1e4, 0, -3e38, 3e38, 0};
  const CrossEntropy result(logits, {1, 0}, 0.5F, 3);
  CHECK(result.losses[0] == Approx(2e4));
  // The largest loss there can be is the span of fp32 twice over, which fp32 does not hold.
  CHECK(std::isfinite(CrossEntropy({1e38, -1e38}, {1}, 1, 2).losses[0]));
  for (const float x : result.gradient) CHECK(std::isfinite(x));
}

TEST_CASE("cross-entropy over GPT-2's vocabulary keeps its precision") {
  Draws draws(10);
  const Numbers logits = draws.numbers(4 * 50257, 0.5);
  const Tokens targets{0, 50256, 12345, 7};
  const CrossEntropy result(logits, targets, 0.25F, 50304);
  CHECK(error(result.losses, reference::cross_entropies(logits, targets)) <= 2e-6);
}

TEST_CASE("a layer with a fault fails these comparisons") {
  Draws draws(11);
  Numbers x = draws.numbers(30), weight = draws.numbers(30), bias = draws.numbers(6);
  const Numbers dy = draws.numbers(36);
  Floats fx = floats(x), fweight = floats(weight), fbias = floats(bias), y(36);
  stage01::linear_forward(y.data(), fx.data(), {fweight.data(), fbias.data()}, 6, 5, 6);
  const Numbers expected = reference::linear(x, weight, bias, 5);
  CHECK(error(y, expected) <= fp32_rounding);
  y[17] += 1e-3F;
  CHECK_FALSE(error(y, expected) <= fp32_rounding);
  y[17] = std::numeric_limits<float>::quiet_NaN();
  CHECK_FALSE(error(y, expected) <= fp32_rounding);
  Floats zero(30);
  const auto loss = [&] { return dot(dy, reference::linear(x, weight, bias, 5)); };
  CHECK_FALSE(gradient_error(zero, weight, loss) <= fp32_rounding);
}

}  // namespace
