#include "common/data/loader.h"

#include <algorithm>
#include <numeric>
#include <random>

#include "tests/catch.h"
#include "tests/data/shard_files.h"
#include "tests/temporary_directory.h"

namespace {

using strata::data::Loader;
using strata::data::LoaderOptions;
using strata::data::LoaderState;
using strata::data::mix;
using strata::data::Order;
using strata::data::permute;
using strata::data::ShardReader;
using strata::io::write_file;
using strata::tests::contains;
using strata::tests::counting;
using strata::tests::shard_bytes;
using strata::tests::TemporaryDirectory;

constexpr std::uint64_t length = 4;  // T in these tests

/// Shards of the given numbers of tokens; every token of the split is another number.
class Shards {
 public:
  explicit Shards(const std::vector<std::size_t>& sizes) {
    std::size_t first = 0;
    for (const std::size_t size : sizes) {
      paths_.push_back(directory_ / strata::data::shard_name("train", paths_.size()));
      write_file(paths_.back(), shard_bytes(counting(size, first)));
      first += size;
    }
  }
  [[nodiscard]] std::vector<ShardReader> open() const { return {paths_.begin(), paths_.end()}; }

 private:
  TemporaryDirectory directory_;
  std::vector<std::filesystem::path> paths_;
};

/// A rank's next micro-batch as B rows of T+1 tokens; checks that targets are inputs, one on.
std::vector<std::vector<int>> next_rows(Loader& loader, std::uint64_t rows) {
  std::vector<std::int32_t> inputs(rows * length), targets(rows * length);
  loader.next(inputs, targets);
  std::vector<std::vector<int>> result;
  for (std::uint64_t b = 0; b < rows; ++b) {
    std::vector<int> row(inputs.begin() + b * length, inputs.begin() + (b + 1) * length);
    row.push_back(targets[(b + 1) * length - 1]);
    CHECK(std::equal(row.begin() + 1, row.end(), targets.begin() + b * length));
    result.push_back(row);
  }
  return result;
}

std::vector<int> row_from(int first) {
  std::vector<int> row(length + 1);
  std::iota(row.begin(), row.end(), first);
  return row;
}

// The golden values below were computed by an independent program (Python's unbounded integers).
// Stage 01 has its own copy of this rule and has to give the same.
TEST_CASE("mix and permute give the committed values") {
  CHECK(mix(0) == 0xe220a8397b1dcdafu);
  CHECK(mix(1) == 0x910a2dec89025cc1u);
  CHECK(mix(42) == 0xbdd732262feb6e95u);
  CHECK(mix(~std::uint64_t{0}) == 0xe4d971771b652c20u);
  const auto order = [](std::uint64_t windows, std::uint64_t seed, std::uint64_t epoch) {
    std::vector<std::uint64_t> result(windows);
    for (std::uint64_t q = 0; q < windows; ++q) result[q] = permute(q, windows, seed, epoch);
    return result;
  };
  CHECK(order(10, 42, 0) == std::vector<std::uint64_t>{1, 3, 0, 8, 9, 5, 4, 7, 2, 6});
  CHECK(order(10, 42, 1) == std::vector<std::uint64_t>{5, 4, 1, 8, 3, 2, 0, 9, 6, 7});
  CHECK(order(5, 1, 0) == std::vector<std::uint64_t>{3, 0, 4, 1, 2});
  CHECK(order(1, 9, 9) == std::vector<std::uint64_t>{0});
  CHECK(permute(0, 1'000'003, 7, 3) == 231'989);
  CHECK(permute(1'000'002, 1'000'003, 7, 3) == 121'390);
  CHECK(permute(123'456'789, 1'000'000'000'000, std::uint64_t{1} << 63, 5) == 6'173'836'510);
  CHECK(permute((std::uint64_t{1} << 40) + 5, (std::uint64_t{1} << 63) + 9, 0, ~std::uint64_t{0}) ==
        5'263'370'024'453'468'717u);
}

/// Does `rule` map 0 .. windows - 1 onto itself, each number once?
template <typename Rule>
bool is_bijection(std::uint64_t windows, const Rule& rule) {
  std::vector<char> seen(windows, 0);
  for (std::uint64_t q = 0; q < windows; ++q) {
    const std::uint64_t window = rule(q);
    if (window >= windows || seen[window] != 0) return false;
    seen[window] = 1;
  }
  return true;
}

TEST_CASE("permute is a bijection for every number of windows up to 2000 and some large ones") {
  for (std::uint64_t windows = 1; windows <= 2000; ++windows)
    if (!is_bijection(windows,
                      [&](std::uint64_t q) { return permute(q, windows, 5, windows % 7); }))
      FAIL("not a bijection for W = " << windows);
  std::mt19937_64 random(11);
  for (int round = 0; round < 5; ++round) {
    const std::uint64_t windows = 100'000 + random() % 900'000;
    const std::uint64_t seed = random();
    const std::uint64_t epoch = random();
    INFO("W = " << windows << ", seed = " << seed << ", epoch = " << epoch);
    CHECK(is_bijection(windows, [&](std::uint64_t q) { return permute(q, windows, seed, epoch); }));
  }
}

TEST_CASE("the bijection test fails for a rule that is none") {
  CHECK_FALSE(is_bijection(9, [](std::uint64_t q) { return q * q % 9; }));
  CHECK_FALSE(is_bijection(9, [](std::uint64_t q) { return q + 1; }));
}

TEST_CASE("permute separates slots, seeds and epochs where every slot cannot be tried") {
  const std::uint64_t windows = (std::uint64_t{1} << 61) + 12345;
  std::vector<std::uint64_t> seen;
  for (std::uint64_t q = 0; q < 20'000; ++q) {
    seen.push_back(permute(q, windows, 1, 0));
    if (seen.back() >= windows) FAIL("out of range at slot " << q);
  }
  std::sort(seen.begin(), seen.end());
  CHECK(std::adjacent_find(seen.begin(), seen.end()) == seen.end());
  CHECK(permute(3, windows, 1, 0) != permute(3, windows, 2, 0));
  CHECK(permute(3, windows, 1, 0) != permute(3, windows, 1, 1));
}

TEST_CASE("shuffled neighbours lie apart as random ones do") {
  // For a random permutation of W windows |window(q+1) - window(q)| is W/3 on average, with a
  // standard deviation of the mean of about W / sqrt(18 W) = 0.0024 W for W = 10,000; the band is
  // four of them wide.
  constexpr std::uint64_t windows = 10'000;
  double sum = 0;
  for (std::uint64_t q = 0; q + 1 < windows; ++q) {
    const auto a = static_cast<double>(permute(q, windows, 42, 0));
    const auto b = static_cast<double>(permute(q + 1, windows, 42, 0));
    sum += std::abs(a - b) / static_cast<double>(windows);
  }
  const double mean = sum / static_cast<double>(windows - 1);
  CHECK(!(std::abs(mean - 1.0 / 3) > 0.01));
}

TEST_CASE("validation deals the windows in order, through the shards in order") {
  // 11 tokens: windows at 0, 4 (9 and 10 are left over); 5 tokens: one window; 4: none; 9: two.
  const Shards shards({11, 5, 4, 9});
  Loader loader(shards.open(),
                {.rows = 1, .seq_len = length, .vocab_size = 100, .order = Order::sequential});
  CHECK(loader.windows() == 5);
  for (const int first : {0, 4, 11, 20, 24, 0, 4})
    CHECK(next_rows(loader, 1)[0] == row_from(first));
}

TEST_CASE("a shard of T+1 tokens gives one window, one of T tokens is refused") {
  const Shards enough({length + 1});
  Loader loader(enough.open(), {.rows = 2, .seq_len = length, .vocab_size = 100});
  CHECK(loader.windows() == 1);
  CHECK(next_rows(loader, 2) == std::vector<std::vector<int>>{row_from(0), row_from(0)});
  const Shards too_few({length});
  CHECK_THROWS_WITH(Loader(too_few.open(), {.rows = 1, .seq_len = length, .vocab_size = 100}),
                    contains("train_000000.bin' has 4 tokens, too few for a window of 4 + 1"));
  const Shards both_too_few({2, length});
  CHECK_THROWS_WITH(Loader(both_too_few.open(), {.rows = 1, .seq_len = length, .vocab_size = 100}),
                    contains("2 shards of which the longest has 4 tokens"));
}

/// Sorted first tokens of the windows of `epochs` epochs.
std::vector<int> each_window_times(Loader& loader, std::uint64_t epochs) {
  std::vector<int> expected;
  std::vector<std::int32_t> inputs(length), targets(length);
  for (std::uint64_t window = 0; window < loader.windows(); ++window) {
    loader.read_window(window, inputs, targets);
    expected.insert(expected.end(), epochs, inputs[0]);
  }
  return expected;
}

TEST_CASE("every window is seen exactly once an epoch for any ranks and batch") {
  const Shards shards({49, 3, 30, 21});  // 12 + 0 + 7 + 5 = 24 windows
  for (const std::uint64_t ranks : {1, 2, 3, 5, 8})
    for (const std::uint64_t rows : {1, 2, 3, 4, 7, 24, 50}) {
      const LoaderOptions options{.rows = rows, .seq_len = length, .vocab_size = 103, .seed = 3};
      std::vector<Loader> loaders;
      for (std::uint64_t rank = 0; rank < ranks; ++rank) {
        LoaderOptions mine = options;
        mine.rank = rank;
        mine.ranks = ranks;
        loaders.emplace_back(shards.open(), mine);
      }
      // As many steps as it takes to end together with an epoch.
      const std::uint64_t windows = loaders[0].windows();
      const std::uint64_t steps = windows / std::gcd(windows, ranks * rows);
      std::vector<std::vector<int>> by_epoch(steps * ranks * rows / windows);
      std::uint64_t position = 0;
      for (std::uint64_t step = 0; step < steps; ++step)
        for (Loader& loader : loaders)
          for (const auto& row : next_rows(loader, rows))
            by_epoch[position++ / windows].push_back(row[0]);
      const std::vector<int> expected = each_window_times(loaders[0], 1);
      INFO(ranks << " ranks, batches of " << rows);
      REQUIRE(expected.size() == windows);
      for (auto& epoch : by_epoch) {
        std::sort(epoch.begin(), epoch.end());
        CHECK(epoch == expected);
      }
    }
}

TEST_CASE("epochs and seeds have different orders") {
  const Shards shards({401});
  const LoaderOptions options{.rows = 100, .seq_len = length, .vocab_size = 401, .seed = 1};
  Loader loader(shards.open(), options);
  const auto first = next_rows(loader, 100);
  const auto second = next_rows(loader, 100);
  CHECK(first != second);
  LoaderOptions other = options;
  other.seed = 2;
  Loader reseeded(shards.open(), other);
  CHECK(next_rows(reseeded, 100) != first);
}

TEST_CASE("k micro-batches of B/k rows are one batch of B, on every rank") {
  const Shards shards({49, 30});
  for (const std::uint64_t parts : {2, 3, 6}) {
    Loader whole(shards.open(), {.rows = 6, .seq_len = length, .vocab_size = 100});
    Loader small(shards.open(), {.rows = 6 / parts, .seq_len = length, .vocab_size = 100});
    for (int step = 0; step < 9; ++step) {
      std::vector<std::vector<int>> together;
      for (std::uint64_t part = 0; part < parts; ++part)
        for (auto& row : next_rows(small, 6 / parts)) together.push_back(row);
      CHECK(together == next_rows(whole, 6));
    }
    CHECK(small.state() == whole.state());
  }
  // Two ranks with three rows each see what one rank with six sees.
  Loader one(shards.open(), {.rows = 6, .seq_len = length, .vocab_size = 100});
  Loader rank0(shards.open(),
               {.rows = 3, .seq_len = length, .vocab_size = 100, .rank = 0, .ranks = 2});
  Loader rank1(shards.open(),
               {.rows = 3, .seq_len = length, .vocab_size = 100, .rank = 1, .ranks = 2});
  for (int step = 0; step < 9; ++step) {
    auto together = next_rows(rank0, 3);
    for (auto& row : next_rows(rank1, 3)) together.push_back(row);
    CHECK(together == next_rows(one, 6));
  }
}

TEST_CASE("a run that goes on from its state sees what an uninterrupted one sees") {
  const Shards shards({49, 30});
  const LoaderOptions options{.rows = 5, .seq_len = length, .vocab_size = 100, .seed = 77};
  for (int stop = 0; stop < 12; ++stop) {
    Loader straight(shards.open(), options);
    for (int step = 0; step < stop; ++step) next_rows(straight, 5);
    const LoaderState saved = straight.state();
    CHECK(saved == LoaderState{77, static_cast<std::uint64_t>(5 * stop)});
    Loader resumed(shards.open(), {.rows = 5, .seq_len = length, .vocab_size = 100});
    resumed.restore(saved);
    for (int step = 0; step < 8; ++step) CHECK(next_rows(resumed, 5) == next_rows(straight, 5));
  }
}

TEST_CASE("a window with a token beyond the vocabulary is refused when it is dealt, not before") {
  const Shards shards({9});
  Loader loader(shards.open(),
                {.rows = 1, .seq_len = length, .vocab_size = 6, .order = Order::sequential});
  CHECK(next_rows(loader, 1)[0] == row_from(0));
  std::vector<std::int32_t> inputs(length), targets(length);
  CHECK_THROWS_WITH(loader.next(inputs, targets),
                    contains("has token 6 at position 6") && contains("6 tokens (0 to 5)"));
  CHECK(loader.state().position == 1);
}

TEST_CASE("options out of range are refused in words") {
  const Shards shards({9});
  const auto with = [&](auto change) {
    LoaderOptions options{.rows = 1, .seq_len = length, .vocab_size = 100};
    change(options);
    return Loader(shards.open(), options);
  };
  CHECK_THROWS_WITH(with([](LoaderOptions& o) { o.rows = 0; }), contains("at least 1 row"));
  CHECK_THROWS_WITH(with([](LoaderOptions& o) { o.seq_len = 0; }), contains("sequence length"));
  CHECK_THROWS_WITH(with([](LoaderOptions& o) { o.vocab_size = 0; }), contains("vocabulary"));
  CHECK_THROWS_WITH(with([](LoaderOptions& o) { o.rank = 1; }), contains("rank 1 is not one"));
  CHECK_THROWS_WITH(Loader({}, {.vocab_size = 1}), contains("at least one shard"));
}

}  // namespace
