// strata-tales: writes the default corpus, measures it, and reads what a model has sampled.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdint>
#include <exception>
#include <limits>
#include <string>

#include "data/tales/corpus.h"

namespace {

namespace tales = strata::tales;

struct WriteOptions {
  tales::CorpusRequest request;
  std::string out;
  std::string facts;
};

/// An option whose value is a whole number of at least `least`; anything else is refused in words.
CLI::Option* add_number(CLI::App& app, const std::string& flag, std::uint64_t& value,
                        std::uint64_t least, const std::string& help) {
  const auto parse = [flag, least, &value](const std::string& text) {
    const char* end = text.data() + text.size();
    const auto [stopped, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc() || stopped != end || value < least)
      throw CLI::ValidationError(fmt::format("{} wants a whole number from {} to {}, not '{}'.",
                                             flag, least, std::numeric_limits<std::uint64_t>::max(),
                                             text));
  };
  return app.add_option_function<std::string>(flag, parse, help)->type_name("N");
}

void add_write(CLI::App& app, WriteOptions& options) {
  CLI::App& command = *app.add_subcommand("write", "write stories, and their facts beside them");
  tales::CorpusRequest& request = options.request;
  CLI::Option* stories = add_number(command, "--stories", request.stories, 1, "number of stories");
  add_number(command, "--bytes", request.bytes, 1,
             "instead of --stories: write whole stories until there are as many bytes")
      ->excludes(stories);
  add_number(command, "--seed", request.seed, 0, "seed of the corpus (default 1)");
  add_number(command, "--first", request.first, 0, "number of the first story (default 0)");
  command.add_option("--out", options.out, "the file to write")->required()->type_name("FILE");
  command.add_option("--facts", options.facts, "the JSON file for the facts (default: OUT.json)")
      ->type_name("FILE");
  command.callback([&options] {
    if (options.request.stories == 0 && options.request.bytes == 0)
      throw CLI::ValidationError("write wants either --stories N or --bytes N.");
    if (options.facts.empty()) options.facts = options.out + ".json";
    if (options.facts == options.out)
      throw CLI::ValidationError(
          fmt::format("--facts and --out name the same file, '{}'.", options.out));
  });
}

void write(const WriteOptions& options) {
  const tales::CorpusFacts facts =
      tales::write_corpus(tales::default_language(), options.request, options.out, options.facts);
  fmt::print(
      "{} stories, {} words, {} bytes; {:.2f} bits a story, {:.4f} a word, {:.5f} a byte\n",
      facts.stories, facts.words, facts.bytes, facts.bits / static_cast<double>(facts.stories),
      facts.bits / static_cast<double>(facts.words), facts.bits / static_cast<double>(facts.bytes));
}

int run(int argc, char** argv) {
  CLI::App app("Stories in a language whose entropy is known.", "strata-tales");
  app.require_subcommand(1);
  WriteOptions write_options;
  add_write(app, write_options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    fmt::print(stderr, "strata-tales: error: {}\n", error.what());
    return 2;
  }
  if (app.got_subcommand("write")) write(write_options);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "strata-tales: error: {}\n", error.what());
    return 1;
  }
}
