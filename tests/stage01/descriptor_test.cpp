// The small rules of stage 01: descriptors, schedules, the outlier window, how a token is picked.

#include "common/parity/trace.h"
#include "tests/catch.h"
#include "tests/stage01/stage01.h"

namespace {

using stage01::Config;
using stage01::Index;
using stage01::OutlierWindow;
using stage01::parse_descriptor;
using strata::tests::contains;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

// ---------------------------------------------------------------------------------------------------
// Descriptors

struct Named {
  const char* descriptor;
  Index L, C, H, T, parameters;
};

// What llm.c's own functions say for its descriptors. (gpt3:c5140 is not among them: there llm.c
// stops, because its kernels want C to be a multiple of 128.)
const Named models[] = {
    {"d6", 6, 384, 6, 1024, 30'357'504},
    {"d12", 12, 768, 12, 1024, 124'475'904},
    {"d24", 24, 1024, 16, 1024, 354'871'296},
    {"d36", 36, 1280, 20, 1024, 774'090'240},
    {"d48", 48, 1600, 25, 1024, 1'557'686'400},
    {"d60", 60, 1920, 30, 1024, 2'754'259'200},
    {"d72", 72, 2880, 30, 1024, 7'316'887'680},
    {"d84", 84, 3456, 36, 1024, 12'220'657'920},
    {"gpt3:c384", 6, 384, 6, 2048, 30'750'720},
    {"gpt3:c768", 12, 768, 12, 2048, 125'262'336},
    {"gpt3:c1024", 24, 1024, 16, 2048, 355'919'872},
    {"gpt3:c1536", 24, 1536, 16, 2048, 760'372'224},
    {"gpt3:c2048", 24, 2048, 16, 2048, 1'315'819'520},
    {"gpt3:c2560", 32, 2560, 32, 2048, 2'651'673'600},
    {"gpt3:c4096", 32, 4096, 32, 2048, 6'658'596'864},
    {"gpt3:c12288", 96, 12288, 96, 2048, 174'604'836'864},
};

Index parameters(const std::string& descriptor) {
  return stage01::make_layout(parse_descriptor(descriptor)).parameters;
}

TEST_CASE("named models have llm.c's shapes and numbers of parameters") {
  for (const Named& model : models) {
    INFO(model.descriptor);
    const Config config = parse_descriptor(model.descriptor);
    CHECK(std::array{config.L, config.C, config.H, config.maxT, config.V} ==
          std::array<Index, 5>{model.L, model.C, model.H, model.T, 50257});
    CHECK(parameters(model.descriptor) == model.parameters);
  }
  CHECK(parameters("gpt2:d12") == parameters("d12"));
}

TEST_CASE("custom and changed descriptors say the shape, and describe() reads back") {
  const auto text = [](const std::string& descriptor) {
    return parse_descriptor(descriptor).describe();
  };
  CHECK(text("L4,C128,H4,T128,V1024") == "L4,C128,H4,T128,V1024");
  CHECK(text("V7,T3,H1,C1,L1") == "L1,C1,H1,T3,V7");
  CHECK(text("d12,V1024,T256") == "L12,C768,H12,T256,V1024");
  CHECK(text("gpt3:c768,L2") == "L2,C768,H12,T2048,V50257");
  for (const Named& model : models) CHECK(text(text(model.descriptor)) == text(model.descriptor));
  // By hand: 1024*8 + 4*8, the block's 12*8*8 + 13*8, the last LayerNorm's 2*8.
  CHECK(parameters("L1,C8,H2,T4,V1000") == 1024 * 8 + 4 * 8 + 12 * 64 + 13 * 8 + 16);
}

TEST_CASE("the vocabulary is padded to a multiple of 128") {
  for (const auto& [V, padded] :
       {std::pair<Index, Index>{1, 128}, {127, 128}, {128, 128}, {129, 256}, {50257, 50304}})
    CHECK(Config{1, 8, 1, 4, V}.Vp() == padded);
}

TEST_CASE("a descriptor that is none is refused with its reason") {
  const std::pair<const char*, const char*> cases[] = {
      {"", "L is missing"},
      {"L4,C128,H4,T128", "V is missing"},
      {"L4,H4,T128,V10", "C is missing"},
      {"d13", "'d13' is neither a known model"},
      {"gpt3:c5", "'gpt3:c5' is neither a known model"},
      {"gpt3:", "neither a known model"},
      {"V1024,d12", "'d12' is neither"},
      {"L4,C128,H4,T128,V1024,X3", "'X3' is neither"},
      {"l4,C128,H4,T128,V1024", "'l4' is neither"},
      {"L,C128,H4,T128,V1024", "'L' is neither"},
      {"L4.5,C128,H4,T128,V1024", "'L4.5' is neither"},
      {"L4 ,C128,H4,T128,V1024", "'L4 ' is neither"},
      {"L+4,C128,H4,T128,V1024", "'L+4' is neither"},
      {"L0x4,C128,H4,T128,V1024", "'L0x4' is neither"},
      {"L99999999999999999999,C128,H4,T128,V1024", "'L99999999999999999999' is neither"},
      {"L4,,C128,H4,T128,V1024", "'' is neither"},
      {"L0,C128,H4,T128,V1024", "the number of blocks (L) is 0, expected 1 to 1000"},
      {"L-1,C128,H4,T128,V1024", "the number of blocks (L) is -1"},
      {"L4,C0,H4,T128,V1024", "the number of channels (C) is 0"},
      {"L4,C9223372036854775807,H1,T128,V1024", "channels (C) is 9223372036854775807"},
      {"L4,C128,H0,T128,V1024", "the number of heads (H) is 0"},
      {"L4,C128,H129,T128,V1024", "the number of heads (H) is 129, expected 1 to 128"},
      {"L4,C128,H4,T0,V1024", "the number of positions (T) is 0"},
      {"L4,C128,H4,T128,V0", "the vocabulary (V) is 0"},
      {"L4,C128,H3,T128,V1024", "3 heads do not divide 128 channels evenly"},
      {"d12,H7", "7 heads do not divide 768 channels evenly"},
  };
  for (const auto& [descriptor, sentence] : cases) {
    INFO(descriptor);
    CHECK_THROWS_WITH(parse_descriptor(descriptor),
                      contains(sentence) && contains(std::string("--init ") + descriptor + ":"));
  }
}

TEST_CASE("a batch that needs more memory than can be counted is refused in words") {
  const Config config = parse_descriptor("L1000,C131072,H131072,T1048576,V16777216");
  CHECK_THROWS_WITH(stage01::plan_memory(config, 1'000'000, config.maxT, true),
                    contains("more memory than any machine has"));
  for (const auto& [role, floats] : stage01::plan_memory(config, 1, 1, true)) {
    INFO(role);
    CHECK(floats > 0);
  }
}

// ---------------------------------------------------------------------------------------------------
// Schedules

using stage01::schedule_share;
const char* const falling[] = {"cosine", "linear", "wsd"};

TEST_CASE("every schedule warms up in equal steps and then stands at its peak") {
  for (const char* name : {"constant", "cosine", "linear", "wsd"})
    for (const Index warmup : {1, 2, 7, 10}) {
      INFO(name << " " << warmup);
      for (Index s = 0; s < warmup; ++s)
        CHECK(schedule_share(name, s, 100, warmup, 0.1) ==
              Approx(static_cast<double>(s + 1) / static_cast<double>(warmup)));
      CHECK(schedule_share(name, warmup, 100, warmup, 0.1) == 1);
    }
}

// From two steps on: a run of one step has no way down.
TEST_CASE("every falling schedule reaches its final share at the last step, and never rises") {
  for (const char* name : falling)
    for (const Index steps : {2, 3, 4, 5, 6, 7, 10, 1000})
      for (const Index warmup : {0, 1})
        for (const double final_share : {0.0, 0.1, 0.5, 1.0}) {
          INFO(name << " steps " << steps << " warm-up " << warmup << " final " << final_share);
          if (warmup < steps - 1)
            CHECK(std::abs(schedule_share(name, steps - 1, steps, warmup, final_share) -
                           final_share) <= 1e-15);
          for (Index s = warmup + 1; s < steps; ++s)
            CHECK(schedule_share(name, s, steps, warmup, final_share) <=
                  schedule_share(name, s - 1, steps, warmup, final_share));
        }
}

TEST_CASE("schedules have their shapes at points known by hand") {
  for (Index s = 0; s < 50; ++s) CHECK(schedule_share("constant", s, 50, 0, 0.1) == 1);
  CHECK(schedule_share("cosine", 50, 101, 0, 0.2) == Approx(0.6));          // half way
  CHECK(schedule_share("cosine", 35, 111, 10, 0) == Approx(0.8535533906));  // cos(pi / 4)
  CHECK(schedule_share("linear", 25, 101, 0, 0) == Approx(0.75));
  CHECK(schedule_share("linear", 60, 111, 10, 0.1) == Approx(0.55));
  for (Index s = 0; s <= 80; ++s) CHECK(schedule_share("wsd", s, 100, 0, 0.1) == 1);
  CHECK(schedule_share("wsd", 85, 101, 0, 0) == Approx(1 - std::sqrt(0.25)));
}

TEST_CASE("the schedules are those that strata-parity computes by itself") {
  for (const char* name : {"constant", "cosine", "linear", "wsd"})
    for (const Index steps : {1, 2, 5, 11, 400})
      for (const Index warmup : {0, 1, 3, 10, 500})
        for (Index s = 0; s < steps; ++s) {
          const auto same = [&](Index step) {
            const double other = strata::parity::schedule_share(
                name, static_cast<std::uint64_t>(step), static_cast<std::uint64_t>(steps),
                static_cast<std::uint64_t>(warmup), 0.1);
            return std::abs(schedule_share(name, s, steps, warmup, 0.1) - other) <= 1e-14;
          };
          CHECK(same(s));
          if (s + 1 < warmup && s + 1 < steps) CHECK_FALSE(same(s + 1));
        }
}

TEST_CASE("a schedule is defined where the run is all warm-up, one step, or over") {
  for (const char* name : {"constant", "cosine", "linear", "wsd"})
    for (const Index steps : {1, 2, 5})
      for (const Index warmup : {0, 1, 5, 9})
        for (const Index s : {0, 1, 4, 8, 100}) {
          const double share = schedule_share(name, s, steps, warmup, 0.1);
          CHECK((share > 0 && share <= 1));
        }
}

// ---------------------------------------------------------------------------------------------------
// Outliers

/// A window of 128 values between 3 and 4: mean 3.5, deviation about 0.29.
OutlierWindow full_window() {
  OutlierWindow window;
  for (int i = 0; i < 128; ++i) window.accept(3 + i / 127.0);
  return window;
}

TEST_CASE("NaN and infinity are outliers at any time") {
  for (const OutlierWindow& window : {OutlierWindow(), full_window()})
    for (const double value : {nan, infinity, -infinity}) CHECK(window.z(value) == infinity);
}

TEST_CASE("nothing finite is an outlier until the window is full") {
  OutlierWindow window;
  for (int i = 0; i < 128; ++i) {
    CHECK(window.z(1e300) == 0);
    window.accept(i % 2);
  }
  CHECK(window.z(1e3) > 1000);
}

TEST_CASE("z counts standard deviations above the mean of the window") {
  OutlierWindow window;
  for (int i = 0; i < 128; ++i) window.accept(i % 2 == 0 ? 2 : 6);  // mean 4, deviation 2
  CHECK(window.z(4) == 0);
  CHECK(window.z(10) == Approx(3));
  CHECK(window.z(0) == Approx(-2));
}

TEST_CASE("a series that does not move has z 0, and any rise of it stands out") {
  OutlierWindow window;
  for (int i = 0; i < 200; ++i) {
    CHECK(window.z(0.25) == 0);
    window.accept(0.25);
  }
  CHECK(window.z(0.2501) > 1000);
}

TEST_CASE("a refused spike leaves no mark, an accepted one leaves after 128 values") {
  const OutlierWindow before = full_window();
  OutlierWindow window = before;
  CHECK(window.z(1000) > 100);  // asking does not let it in
  CHECK(window.z(nan) == infinity);
  CHECK(window.values == before.values);
  window.accept(1000);
  CHECK(window.z(5) < 1);  // this is what the spike would do
  for (int i = 0; i < 128; ++i) window.accept(3 + i / 127.0);
  CHECK(window.values == before.values);
}

// ---------------------------------------------------------------------------------------------------
// Picking a token

/// How often each token is picked over a fine grid of draws.
std::vector<double> shares(const std::vector<float>& logits, const stage01::Settings& s) {
  constexpr int draws = 4000;
  std::vector<double> counts(logits.size());
  for (int i = 0; i < draws; ++i) {
    const stage01::Token token =
        pick_token(logits.data(), static_cast<Index>(logits.size()), s, (i + 0.5) / draws);
    REQUIRE((token >= 0 && token < static_cast<stage01::Token>(logits.size())));
    counts[static_cast<std::size_t>(token)] += 1.0 / draws;
  }
  return counts;
}

/// Softmax in double precision.
std::vector<double> softmax(const std::vector<float>& logits, double temperature) {
  std::vector<double> p;
  const double largest = *std::max_element(logits.begin(), logits.end());
  for (const float z : logits) p.push_back(std::exp((z - largest) / temperature));
  const double sum = std::accumulate(p.begin(), p.end(), 0.0);
  for (double& x : p) x /= sum;
  return p;
}

bool close(const std::vector<double>& a, const std::vector<double>& b) {
  for (std::size_t i = 0; i < b.size(); ++i)
    if (!(std::abs(a[i] - b[i]) <= 5e-4)) return false;  // the grid counts to within 2 of 4000
  return a.size() == b.size();
}

const std::vector<float> logits = {0.5F, 2, -1, 1, 1.5F};

TEST_CASE("tokens come as often as softmax says, at any temperature") {
  for (const double temperature : {0.3, 1.0, 2.5}) {
    stage01::Settings s;
    s.temperature = temperature;
    CHECK(close(shares(logits, s), softmax(logits, temperature)));
    CHECK_FALSE(close(shares(logits, s), softmax(logits, temperature * 1.02)));
  }
}

TEST_CASE("temperature 0 takes the likeliest token, the first of equals") {
  stage01::Settings s;
  s.temperature = 0;
  CHECK(shares(logits, s)[1] == Approx(1));
  CHECK(shares({1, 3, 3, 2}, s)[1] == Approx(1));
}

TEST_CASE("top-k keeps the k likeliest, in their proportions") {
  stage01::Settings s;
  s.top_k = 1;
  CHECK(shares(logits, s)[1] == Approx(1));
  s.top_k = 2;
  const double first = 1 / (1 + std::exp(-0.5));
  CHECK(close(shares(logits, s), {0, first, 0, 0, 1 - first}));
  s.top_k = 99;
  CHECK(close(shares(logits, s), softmax(logits, 1)));
}

TEST_CASE("top-p keeps the fewest tokens that reach the share, in their proportions") {
  stage01::Settings s;  // softmax: 0.11, 0.48, 0.02, 0.18, 0.29 in the order of the tokens
  s.top_p = 0.4;
  CHECK(shares(logits, s)[1] == Approx(1));
  s.top_p = 0.5;
  const double first = 1 / (1 + std::exp(-0.5));
  CHECK(close(shares(logits, s), {0, first, 0, 0, 1 - first}));
  s.top_p = 0.9;
  CHECK(shares(logits, s)[0] > 0.1);
  CHECK(shares(logits, s)[2] == 0);
  s.top_k = 3, s.top_p = 0.5;  // of the three likeliest the share of the first is 0.51
  CHECK(shares(logits, s)[1] == Approx(1));
}

TEST_CASE("extreme logits give the token that they mean") {
  stage01::Settings s;
  CHECK(shares({100, 90, 0, 1}, s)[0] > 0.999);
  CHECK(shares({-200, -300, -250, -1000}, s)[0] == Approx(1));
  CHECK(shares({1e38F, -1e38F, 3e38F}, s)[2] == Approx(1));
  CHECK(close(shares({-200, -200}, s), {0.5, 0.5}));
  s.temperature = 1e-300;
  CHECK(shares(logits, s)[1] == Approx(1));
  const std::vector<float> none(5, std::numeric_limits<float>::quiet_NaN());
  CHECK_NOTHROW(shares(none, s));  // some token, but one of the vocabulary
}

TEST_CASE("the first and the last draw give tokens that have a share") {
  stage01::Settings s;
  const std::vector<float> sure = {-1e30F, 0, -1e30F};
  for (const double u : {0.0, 0.5, 1 - 0x1p-53}) CHECK(pick_token(sure.data(), 3, s, u) == 1);
}

}  // namespace
