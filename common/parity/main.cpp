// strata-parity: compares two traces and prints one table.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <string>

#include "common/io/files.h"
#include "common/parity/compare.h"
#include "common/parity/report.h"
#include "common/parity/tolerances.h"
#include "common/parity/trace.h"

namespace {

using namespace strata;

void print_kinds() {
  for (const parity::Tolerance& tolerance : parity::default_tolerances())
    std::printf("%-20s %-8g %s\n", std::string(tolerance.kind).c_str(), tolerance.value,
                std::string(tolerance.reason).c_str());
}

int run(const std::string& a, const std::string& b, const std::string& tolerances_file,
        const std::string& json_file, bool all) {
  const parity::Tolerances tolerances =
      tolerances_file.empty() ? parity::Tolerances() : parity::Tolerances(tolerances_file);
  const parity::Comparison comparison =
      parity::compare(parity::Trace(a), parity::Trace(b), tolerances);
  std::fputs(parity::table(comparison, all).c_str(), stdout);
  if (!json_file.empty()) io::write_file(json_file, parity::to_json(comparison) + "\n");
  return comparison.passed() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "Compares trace B with trace A, the reference, and prints one table.\n"
      "Exit status: 0 if B agrees, 1 if it does not or a file cannot be read, 2 for wrong usage.",
      "strata-parity");
  std::string a, b, tolerances, json;
  bool all = false;
  bool kinds = false;
  app.add_option("A", a, "trace of the reference (safetensors)");
  app.add_option("B", b, "trace to be compared with it");
  app.add_option("--tolerances", tolerances,
                 "JSON object of kinds and numbers that replace the default tolerances");
  app.add_option("--json", json, "write the whole comparison to this file");
  app.add_flag("--all", all, "a line for every tensor, not only the worst of each kind");
  app.add_flag("--kinds", kinds,
               "print the default tolerance of each kind with its reason, and stop");
  try {
    app.parse(argc, argv);
    if (!kinds && (a.empty() || b.empty())) throw CLI::RequiredError("two traces, A and B");
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  try {
    if (kinds) return print_kinds(), 0;
    return run(a, b, tolerances, json, all);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "strata-parity: error: %s\n", error.what());
    return 1;
  }
}
