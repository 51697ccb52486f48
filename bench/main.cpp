// strata-bench: times what Strata builds, with a gate against other load on the machine.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>

#include "bench/inputs.h"
#include "bench/train.h"
#include "common/io/files.h"

namespace {

using strata::bench::TrainOptions;

void add_train(CLI::App& app, TrainOptions& options, std::string& out) {
  CLI::App* train = app.add_subcommand("train", "times a step of a stage's trainer");
  train->add_option("STAGE", options.stage, "01, 02, ...")->required();
  train->add_option("--trainer", options.trainer, "the stage's program")->required();
  train->add_option("--work", options.work, "directory for inputs and runs")->required();
  train->add_option("--out", out, "the JSON file for the results")->required();
  train->add_option("--peer", options.peer,
                    "directory of another trainer to time in alternation: llm.c with train_gpt2 "
                    "built, or anything with an executable bench.sh (bench/README.md)");
  train->add_option("--steps", options.steps, "steps timed in each process (default 4)")
      ->check(CLI::Range(1, 1000));
  train->add_option("--rounds", options.rounds, "processes of each kind (default 4)")
      ->check(CLI::Range(1, 1000));
  train->add_option("--threads", options.threads, "threads (default 2)")
      ->check(CLI::Range(1, 4096));
  train->add_option("--init", options.init, "the model (default d12)");
  train->add_option("--vocab", options.vocab, "its vocabulary (default 50257)")
      ->check(CLI::Range(257, 65536));
  train->add_option("--batch", options.batch, "rows of a batch (default 4)")
      ->check(CLI::Range(1, 4096));
  train->add_option("--seq", options.seq, "tokens of a row (default 64)")
      ->check(CLI::Range(1, 32767));
  train
      ->add_option("--long-seq", options.long_seq,
                   "tokens of the row in the second series, B=1 (default 1024; 0: none)")
      ->check(CLI::Range(0, 32767));
  train
      ->add_option("--max-wait", options.gate.longest_wait,
                   "seconds to wait for a quiet machine before each process (default 20)")
      ->check(CLI::Range(0.0, 86400.0));
  train
      ->add_option("--patience", options.patience,
                   "seconds without a step after which a program is given up (default 600)")
      ->check(CLI::Range(0.1, 86400.0));
  train->add_option("--commit", options.commit, "what to record as the commit");
}

int bench_train(TrainOptions& options, const std::string& out) {
  // The programs run in directories of their own.
  for (std::filesystem::path* path : {&options.trainer, &options.peer, &options.work})
    if (!path->empty()) *path = std::filesystem::absolute(*path);
  const nlohmann::ordered_json results = strata::bench::bench_train(options);
  std::fputs(strata::bench::table(results).c_str(), stdout);
  const std::filesystem::path directory = std::filesystem::absolute(out).parent_path();
  std::filesystem::create_directories(directory);
  strata::io::write_file(out, results.dump(2) + "\n");
  std::printf("\nresults  %s\n", out.c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Times what Strata builds. A figure never decides whether something passes.",
               "strata-bench");
  app.require_subcommand(1);
  TrainOptions options;
  std::string out, inputs;
  add_train(app, options, out);
  CLI::App* llmc = app.add_subcommand(
      "llmc-inputs", "writes what llm.c's train_gpt2 reads, a model of random weights included");
  llmc->add_option("DIRECTORY", inputs, "where to")->required();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  try {
    if (*llmc) {
      strata::bench::write_llmc_inputs(inputs);
      return 0;
    }
    return bench_train(options, out);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "strata-bench: error: %s\n", error.what());
    return 1;
  }
}
