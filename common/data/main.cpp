// strata-data: turns text into a data set, looks into one, encodes and decodes.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <charconv>
#include <csignal>
#include <iostream>
#include <iterator>

#include "common/data/inspect.h"
#include "common/data/prepare.h"

namespace {

using namespace strata::data;  // this file is nothing but their command line

std::atomic<bool> interrupt{false};

/// The first Ctrl-C ends the work in good order, the second at once.
void stop_when_interrupted() {
  static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may set it");
  struct sigaction action {};
  action.sa_handler = [](int) { interrupt = true; };
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::sigaction(signal, &action, nullptr);
}

/// A command: what it is called with, and what it does then.
struct Command {
  CLI::App* app;
  std::function<void()> run;
};

/// The options that say which text goes into which split.
void add_text_options(CLI::App& app, PrepareOptions& options) {
  app.add_option("INPUT,--train", options.inputs,
                 "text files, and directories with all text below them (--train is optional)");
  app.add_option("--val", options.validation,
                 "a file or directory to validate with; may be repeated (default: the end of the "
                 "inputs, cut off between documents if one ends near there)")
      ->allow_extra_args(false);
  app.add_option("--val-fraction", options.validation_fraction,
                 "share of the bytes that is cut off for validation (default: a tenth, at most 10 "
                 "MB)");
  app.add_option_function<std::string>(
         "--split-documents",
         [&options](const std::string& word) {
           options.documents = word == "file" ? DocumentRule::files : DocumentRule::separators;
         },
         "endoftext (default): a file is a document, and lines <|endoftext|> in it separate "
         "several; "
         "file: such lines are ordinary text")
      ->check(CLI::IsMember({"endoftext", "file"}));
  app.add_option_function<std::vector<std::string>>(
         "--facts",
         [&options](const std::vector<std::string>& files) {
           options.train_facts = files[0];
           options.validation_facts = files[1];
         },
         "two JSON files whose number \"bits\" is the information content of the training and of "
         "the "
         "validation text; needs --val")
      ->expected(2);
}

/// The options that say how the text becomes tokens.
void add_token_options(CLI::App& app, PrepareOptions& options) {
  app.add_option(
      "--tokenizer", options.tokenizer,
      "use this vocabulary: a tokenizer.json, or a directory with one or with vocab.json "
      "and merges.txt (default: one is learnt from the text)");
  app.add_option(
      "--vocab-size", options.vocab_size,
      "tokens of the vocabulary to learn (default by size of the text: 1024 below 10 MB, "
      "4096 below 100 MB, 16384 below 1 GB, else 32768)");
  app.add_option("--sample-bytes", options.sample_bytes,
                 "bytes of text that the vocabulary is learnt from, spread over all of it")
      ->capture_default_str();
  app.add_option("--shard-tokens", options.shard_tokens, "tokens of a shard")
      ->capture_default_str();
}

Command prepare_command(CLI::App& parent, PrepareOptions& options) {
  CLI::App* app = parent.add_subcommand(
      "prepare", "Makes a data set of text: tokenizer, shards to train and validate with.");
  add_text_options(*app, options);
  app->add_option("--out", options.out, "directory of the data set")->required();
  app->add_option("--name", options.name, "the data set's name (default: the name of --out)");
  app->add_option("--source", options.source,
                  "where the text comes from, in words (default: the inputs)");
  add_token_options(*app, options);
  app->add_option("--threads", options.threads, "threads to encode with (0: as OpenMP chooses)")
      ->capture_default_str();
  app->add_flag("--if-changed", options.if_changed,
                "do nothing if --out was made from the same files and settings");
  app->add_flag("--force", options.force, "replace --out even if other files are in it");
  app->callback([&options] {
    if (options.inputs.empty()) throw CLI::RequiredError("INPUT (a text file or a directory)");
  });
  return {app, [&options] {
            stop_when_interrupted();
            Progress progress(::isatty(STDERR_FILENO) != 0 ? Progress::Style::terminal
                                                           : Progress::Style::plain);
            prepare(options, progress, interrupt);
          }};
}

Command info_command(CLI::App& parent, std::string& directory) {
  CLI::App* app =
      parent.add_subcommand("info", "Says what is in a data set, and checks every token of it.");
  app->add_option("DIR,--data", directory, "directory of the data set")->required();
  return {app, [&directory] {
            const DataSetFacts facts = inspect(directory);
            fmt::print(
                "{}{:<11}all tokens are in the vocabulary, and they stand for as many "
                "documents and bytes as stated\n",
                describe(facts), "checked");
          }};
}

std::string read_standard_input() {
  return {std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
}

struct CodeOptions {
  std::string tokenizer;
  std::string text;
  bool special = false;
};

void add_tokenizer_option(CLI::App& app, CodeOptions& options) {
  app.add_option("--data,--tokenizer", options.tokenizer,
                 "a data set, a checkpoint, or any other directory with a tokenizer; or the "
                 "tokenizer.json itself")
      ->required();
}

Command encode_command(CLI::App& parent, CodeOptions& options) {
  CLI::App* app =
      parent.add_subcommand("encode", "Prints the token ids of a text, separated by commas.");
  add_tokenizer_option(*app, options);
  app->add_option("TEXT,--text", options.text, "the text; - reads standard input")->required();
  app->add_flag("--special", options.special, "<|endoftext|> in the text is the end-of-text token");
  return {app, [&options] {
            const Tokenizer tokenizer = Tokenizer::load(options.tokenizer);
            const std::string text = options.text == "-" ? read_standard_input() : options.text;
            std::string ids;
            for (const std::uint32_t id : tokenizer.encode(text, options.special))
              ids += (ids.empty() ? "" : ",") + std::to_string(id);
            fmt::print("{}\n", ids);
          }};
}

/// Ids between commas, white space, or both.
std::vector<std::uint32_t> parse_ids(std::string_view text) {
  constexpr std::string_view between = ", \t\r\n";
  std::vector<std::uint32_t> ids;
  for (auto start = text.find_first_not_of(between); start < text.size();
       start = text.find_first_not_of(between, start)) {
    const std::string_view word = text.substr(start, text.find_first_of(between, start) - start);
    std::uint32_t id = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), id);
    if (error != std::errc() || end != word.data() + word.size())
      throw std::runtime_error(fmt::format("'{}' is not a token id.", word));
    ids.push_back(id);
    start += word.size();
  }
  return ids;
}

Command decode_command(CLI::App& parent, CodeOptions& options) {
  CLI::App* app = parent.add_subcommand(
      "decode", "Prints the text of token ids, byte for byte: no end of line is added.");
  add_tokenizer_option(*app, options);
  app->add_option("IDS,--ids", options.text, "ids separated by commas; - reads standard input")
      ->required();
  return {app, [&options] {
            const Tokenizer tokenizer = Tokenizer::load(options.tokenizer);
            const std::string ids = options.text == "-" ? read_standard_input() : options.text;
            std::cout << tokenizer.decode(parse_ids(ids));
          }};
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Data sets for Strata: text to tokens and back.", "strata-data");
  app.require_subcommand(1);
  PrepareOptions prepare_options;
  std::string info_directory;
  CodeOptions encode_options;
  CodeOptions decode_options;
  const Command commands[] = {
      prepare_command(app, prepare_options), info_command(app, info_directory),
      encode_command(app, encode_options), decode_command(app, decode_options)};
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    fmt::print(stderr, "strata-data: error: {}; strata-data --help says more.\n", error.what());
    return 2;
  }
  try {
    for (const Command& command : commands)
      if (command.app->parsed()) command.run();
    std::cout.flush();
    if (!std::cout) throw std::runtime_error("cannot write to standard output.");
    return 0;
  } catch (const Interrupted& stopped) {
    fmt::print(stderr, "strata-data: {}\n", stopped.what());
    return 130;
  } catch (const std::exception& error) {
    fmt::print(stderr, "strata-data: error: {}\n", error.what());
    return 1;
  }
}
