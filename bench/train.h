// The bench of a trainer: one step at two lengths of context, against another program's.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/steps.h"

namespace strata::bench {

struct TrainOptions {
  std::string stage = "01";
  std::filesystem::path trainer;  ///< the stage's binary
  std::filesystem::path peer;     ///< directory of another program; empty for none
  std::filesystem::path work;     ///< where inputs and runs go
  std::string init = "d12";
  int vocab = 50257;
  int batch = 4, seq = 64, long_seq = 1024;  ///< long_seq 0: leave that out
  int threads = 2;
  int steps = 4;   ///< timed in each process
  int rounds = 4;  ///< processes of each kind, in alternation
  double patience = 600;
  std::string commit = "unknown";
  Gate gate;
};

/// One kind of step: what runs, and the times of it by round.
struct Series {
  std::string name;
  Trainer trainer;
  int batch = 0, seq = 0;
  int steps = 0;  ///< timed in each process
  std::vector<std::vector<Step>> rounds;

  [[nodiscard]] double tokens() const { return static_cast<double>(batch) * seq; }
  [[nodiscard]] Statistics all(double foreign_limit) const;
};

/// How many times as long a token takes in `slow` as in `fast`: of the medians, and the extremes of
/// the rounds in which both have a step free of other load (all rounds where none is).
struct Ratio {
  std::string name;
  double value = 0, low = 0, high = 0;
};
[[nodiscard]] Ratio ratio(const std::string& name, const Series& slow, const Series& fast,
                          double foreign_limit);

/// What will run: the stage at --seq, at --long-seq, and the peer. Writes the inputs.
/// Throws std::runtime_error with a sentence if the trainer or the peer is not there.
[[nodiscard]] std::vector<Series> plan_series(const TrainOptions& options);

/// Runs all series in alternation and returns what was measured, as in bench/README.md. Prints a
/// line of progress for each process.
[[nodiscard]] nlohmann::ordered_json bench_train(const TrainOptions& options);

/// The results as a table for people.
[[nodiscard]] std::string table(const nlohmann::ordered_json& results);

}  // namespace strata::bench
