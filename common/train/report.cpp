// strata-report: the page that a run ends with.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>

#include "common/io/files.h"
#include "common/train/metrics.h"
#include "common/train/page.h"

namespace {

/// What to call the run: the last part of its path that is a name.
std::string name_of(const std::filesystem::path& run_directory) {
  std::error_code error;
  std::filesystem::path whole = std::filesystem::canonical(run_directory, error);
  return error ? run_directory.string() : whole.filename().string();
}

void write_report(const std::filesystem::path& run_directory, std::filesystem::path out) {
  const strata::train::Metrics metrics = strata::train::read_metrics(run_directory);
  if (out.empty()) out = run_directory / "report.html";
  strata::io::write_file(out, strata::train::make_page(metrics, name_of(run_directory)));
  if (metrics.truncated)
    std::fprintf(stderr,
                 "strata-report: note: the last line of metrics.jsonl is cut off (a killed "
                 "run leaves it so); it was left out\n");
  if (metrics.damaged_lines > 0)
    std::fprintf(stderr,
                 "strata-report: note: %lld lines of metrics.jsonl could not be read, line "
                 "%lld first; they were left out\n",
                 static_cast<long long>(metrics.damaged_lines),
                 static_cast<long long>(metrics.first_damaged));
  std::printf("report   %s\n", out.string().c_str());
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Writes the report of a training run, one HTML page, from its metrics.jsonl.",
               "strata-report");
  std::string run_directory, out;
  app.add_option("RUN_DIRECTORY", run_directory, "the directory that the run wrote to (--out)")
      ->required();
  app.add_option("--out", out, "the page to write; default: RUN_DIRECTORY/report.html");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  try {
    write_report(run_directory, out);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "strata-report: error: %s\n", error.what());
    return 1;
  }
}
