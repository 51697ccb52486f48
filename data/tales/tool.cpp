// strata-tales: writes the default corpus, measures it, and reads what a model has sampled.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdint>
#include <exception>
#include <iostream>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "common/io/files.h"
#include "data/tales/corpus.h"
#include "data/tales/judgement.h"

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

struct ReadOptions {
  std::string file = "-";
  bool complete = false;
};

/// The contents of a file, or of standard input for "-".
std::string contents(const std::string& file) {
  if (file != "-") return strata::io::read_file(file);
  return {std::istreambuf_iterator<char>(std::cin), {}};
}

void add_check(CLI::App& app, ReadOptions& options) {
  CLI::App& command = *app.add_subcommand(
      "check", "read a text, and say how much of it is of the language and true");
  command.add_option("file", options.file, "the text (default or -: standard input)")
      ->type_name("FILE");
  command.add_flag(
      "--complete", options.complete,
      "the text is of whole stories: it neither begins nor stops in the middle of one");
}

void add_measure(CLI::App& app, ReadOptions& options) {
  CLI::App& command = *app.add_subcommand(
      "measure", "recover the choices behind a corpus from its text, and their information");
  command.add_option("file", options.file, "the corpus (default or -: standard input)")
      ->type_name("FILE");
}

nlohmann::ordered_json example_json(const tales::Example& example) {
  if (example.sentence.empty()) return nullptr;
  return {{"sentence", example.sentence}, {"reason", example.reason}};
}

/// Prints the verdict as JSON to standard output, and in a sentence to standard error.
void check(const ReadOptions& options) {
  const tales::Judgement judgement =
      tales::judge(tales::default_language(), contents(options.file), options.complete);
  const nlohmann::ordered_json json = {{"sentences", judgement.sentences},
                                       {"malformed", judgement.malformed},
                                       {"untrue", judgement.untrue},
                                       {"unknown", judgement.unknown},
                                       {"true", judgement.right},
                                       {"share_well_formed", judgement.share_well_formed()},
                                       {"share_true", judgement.share_true()},
                                       {"stories", judgement.stories},
                                       {"finished_stories", judgement.finished},
                                       {"begins_mid_story", judgement.begins_mid_story},
                                       {"cut_off", judgement.cut_off},
                                       {"first_malformed", example_json(judgement.first_malformed)},
                                       {"first_untrue", example_json(judgement.first_untrue)}};
  // A model may write bytes that are not UTF-8; JSON gets a replacement character for them.
  fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  fmt::print(stderr, "{} sentences: {:.1f} % well formed, {:.1f} % true", judgement.sentences,
             100 * judgement.share_well_formed(), 100 * judgement.share_true());
  if (judgement.unknown > 0)
    fmt::print(stderr, " of the {} that the text lets one judge",
               judgement.sentences - judgement.unknown);
  if (!judgement.first_untrue.sentence.empty())
    fmt::print(stderr, "; untrue: \"{}\" ({})", judgement.first_untrue.sentence,
               judgement.first_untrue.reason);
  else if (!judgement.first_malformed.sentence.empty())
    fmt::print(stderr, "; malformed: \"{}\"", judgement.first_malformed.sentence);
  fmt::print(stderr, "\n");
}

void measure(const ReadOptions& options) {
  const tales::Measurement measured =
      tales::measure(tales::default_language(), contents(options.file));
  const nlohmann::ordered_json json = {
      {"stories", measured.stories},
      {"bytes", measured.bytes},
      {"words", measured.words},
      {"bits", measured.bits},
      {"bits_per_byte", measured.bits / static_cast<double>(measured.bytes)}};
  fmt::print("{}\n", json.dump(2));
}

int run(int argc, char** argv) {
  CLI::App app("Stories in a language whose entropy is known.", "strata-tales");
  app.require_subcommand(1);
  WriteOptions write_options;
  ReadOptions read_options;
  add_write(app, write_options);
  add_check(app, read_options);
  add_measure(app, read_options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    fmt::print(stderr, "strata-tales: error: {}\n", error.what());
    return 2;
  }
  if (app.got_subcommand("write")) write(write_options);
  if (app.got_subcommand("check")) check(read_options);
  if (app.got_subcommand("measure")) measure(read_options);
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
