#include "common/data/prepare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "common/data/output_directory.h"

namespace strata::data {
namespace {

namespace fs = std::filesystem;

void check_options(const PrepareOptions& options) {
  if (options.inputs.empty())
    throw std::runtime_error("there is no input to make a data set from.");
  if (!options.validation.empty() && options.validation_fraction)
    throw std::runtime_error("--val and --val-fraction exclude each other.");
  const double fraction = options.validation_fraction.value_or(0.1);
  if (!(fraction > 0 && fraction <= 0.5))
    throw std::runtime_error(
        fmt::format("--val-fraction is {}, but has to be above 0 and at most 0.5.", fraction));
  if (options.tokenizer && options.vocab_size != 0)
    throw std::runtime_error("--tokenizer brings its vocabulary, so --vocab-size has no meaning.");
  if (options.vocab_size != 0 &&
      (options.vocab_size < 257 || options.vocab_size > max_shard_vocabulary))
    throw std::runtime_error(fmt::format(
        "--vocab-size is {}, but has to be from 257 (the bytes and <|endoftext|>) to {} "
        "(a shard's tokens have 16 bits).",
        options.vocab_size, max_shard_vocabulary));
  if (options.train_facts.has_value() != options.validation_facts.has_value())
    throw std::runtime_error("facts are needed for both splits or for neither.");
  if (options.train_facts && options.validation.empty())
    throw std::runtime_error(
        "facts about the splits need --val: they do not hold for a split that is cut here.");
  if (options.threads < 0 || options.threads > 1024)
    throw std::runtime_error(
        fmt::format("--threads is {}, but has to be from 0 to 1024.", options.threads));
  if (options.shard_tokens < 1 || options.shard_tokens > max_shard_tokens)
    throw std::runtime_error(fmt::format("--shard-tokens is {}, but has to be from 1 to {}.",
                                         options.shard_tokens, max_shard_tokens));
}

/// Everything that the data set depends on, as a short text: settings, and for each file its path,
/// size and time. Reading all contents would be surer, but no longer quick.
std::string fingerprint(const PrepareOptions& options, const std::vector<SourceFile>& train,
                        const std::vector<SourceFile>& validation) {
  std::uint64_t hash = 0xcbf2'9ce4'8422'2325;  // FNV-1a
  const auto add = [&hash](std::string_view text) {
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100'0000'01b3;
    hash = (hash ^ 0xff) * 0x100'0000'01b3;  // so that two texts are not one
  };
  const auto add_file = [&add](const fs::path& path) {
    std::error_code error;
    const auto size = fs::file_size(path, error);
    if (error) return add("absent");
    const auto time = fs::last_write_time(path, error).time_since_epoch().count();
    add(fmt::format("{} {} {}", fs::weakly_canonical(path, error).string(), size, time));
  };
  add(fmt::format("1 {} {} {} {} {} {}", options.vocab_size, options.sample_bytes,
                  options.validation_fraction.value_or(0), static_cast<int>(options.documents),
                  options.shard_tokens, options.validation.size()));
  add(options.name);
  add(options.source);
  if (options.tokenizer) {
    add_file(*options.tokenizer);
    for (const char* file : {"tokenizer.json", "vocab.json", "merges.txt"})
      add_file(*options.tokenizer / file);
  }
  if (options.train_facts) add_file(*options.train_facts);
  if (options.validation_facts) add_file(*options.validation_facts);
  for (const auto& files : {train, validation}) {
    add("split");
    for (const SourceFile& file : files) add_file(file.path);
  }
  return fmt::format("{:016x}", hash);
}

/// The facts of `out` if it was made from what `fingerprint` stands for and is still whole.
std::optional<DataSetFacts> up_to_date(const fs::path& out, const std::string& fingerprint) {
  try {
    DataSetFacts facts = open_data_set(out).facts;
    const bool tokenizer = fs::exists(out / "tokenizer.json") && fs::exists(out / "tokenizer.bin");
    if (facts.fingerprint == fingerprint && tokenizer) return facts;
  } catch (const std::runtime_error&) {
    // It is missing or damaged, and will be made anew.
  }
  return std::nullopt;
}

/// Says which files were left out and why: each reason with its number of files and an example.
void say_skipped(const std::vector<SkippedFile>& skipped, Progress& progress) {
  std::map<std::string, std::vector<const SkippedFile*>> by_reason;
  for (const SkippedFile& file : skipped) by_reason[file.reason].push_back(&file);
  for (const auto& [reason, files] : by_reason) {
    const std::string first = files.front()->path.string();
    if (files.size() == 1)
      progress.say("skipped", fmt::format("'{}': {}", first, reason));
    else
      progress.say("skipped", fmt::format("{} entries, '{}' for example: {}",
                                          with_commas(files.size()), first, reason));
  }
}

std::string joined(const std::vector<fs::path>& paths) {
  std::string all;
  for (const fs::path& path : paths) all += (all.empty() ? "" : ", ") + path.string();
  return all;
}

struct Splits {
  Corpus train;
  Corpus validation;
};

Splits make_splits(const PrepareOptions& options, FileList train, FileList validation,
                   Progress& progress) {
  std::vector<SkippedFile> skipped;
  for (FileList* list : {&train, &validation}) {
    keep_text(*list);
    skipped.insert(skipped.end(), list->skipped.begin(), list->skipped.end());
  }
  say_skipped(skipped, progress);
  const auto require_text = [](const FileList& list, const std::vector<fs::path>& inputs) {
    if (!list.files.empty()) return;
    throw std::runtime_error(fmt::format("there is no text in {}{}.", joined(inputs),
                                         list.skipped.empty() ? "" : ": everything was skipped"));
  };
  require_text(train, options.inputs);
  const std::size_t files = train.files.size() + validation.files.size();
  Corpus corpus = whole_corpus(std::move(train.files), options.documents);
  Splits splits;
  if (options.validation.empty()) {
    const double fraction =
        options.validation_fraction.value_or(default_validation_fraction(corpus.bytes()));
    std::tie(splits.train, splits.validation) = split(corpus, fraction);
  } else {
    require_text(validation, options.validation);
    splits.train = std::move(corpus);
    splits.validation = whole_corpus(std::move(validation.files), options.documents);
  }
  progress.say("text",
               fmt::format("{} {}: {} to train with, {} to validate with", with_commas(files),
                           files == 1 ? "file" : "files", in_bytes(splits.train.bytes()),
                           in_bytes(splits.validation.bytes())));
  for (const auto& [part, what] :
       {std::pair{&splits.train, "training"}, std::pair{&splits.validation, "validation"}})
    if (!DocumentStream(*part).next())
      throw std::runtime_error(fmt::format(
          "the {} split would be empty: {} has {} bytes of text, too few to be split.", what,
          joined(options.inputs), splits.train.bytes() + splits.validation.bytes()));
  return splits;
}

/// Replacing the output must not delete what it is made from.
void require_apart(const OutputDirectory& directory, const std::vector<SourceFile>& files) {
  const std::string inside = directory.final_path().string() + "/";
  for (const SourceFile& file : files)
    if (fs::weakly_canonical(file.path).string().starts_with(inside))
      throw std::runtime_error(fmt::format(
          "the input '{}' is inside the output '{}', which is going to be replaced; choose another "
          "output.",
          file.path.string(), directory.final_path().string()));
}

/// Learns a vocabulary from the training text, or from pieces spread evenly over it if it is long.
Tokenizer train_tokenizer(const Corpus& corpus, std::uint32_t vocab_size,
                          std::uint64_t sample_bytes, Progress& progress,
                          const std::atomic<bool>& interrupt) {
  const std::uint64_t total = corpus.bytes();
  const double share =
      std::min(1.0, static_cast<double>(sample_bytes) / static_cast<double>(total));
  DocumentStream stream(corpus);
  std::uint64_t seen = 0;
  std::uint64_t taken = 0;
  std::optional<Piece> piece;  // keeps the view alive until the next call
  const DocumentSource source = [&]() -> std::optional<std::string_view> {
    while ((piece = stream.next())) {
      if (interrupt) throw Interrupted();
      // Take the piece unless more than its share of what came before was taken.
      const bool take = static_cast<double>(taken) <= share * static_cast<double>(seen);
      seen += piece->text.size();
      progress.advance(seen);
      if (!take) continue;
      taken += piece->text.size();
      return piece->text;
    }
    return std::nullopt;
  };
  progress.begin("tokens", "counting words", total);
  Tokenizer tokenizer = Tokenizer::train(source, {.vocab_size = vocab_size, .min_frequency = 2});
  const double seconds = progress.end();
  progress.say("tokens",
               fmt::format("a vocabulary of {} tokens, learnt from {}{} in {}",
                           with_commas(tokenizer.vocab_size()), in_bytes(taken),
                           taken == seen ? "" : " spread over the text", in_time(seconds)));
  if (tokenizer.vocab_size() < vocab_size)
    progress.say("",
                 fmt::format("({} were wanted, but then no pair of tokens occurs twice any more)",
                             with_commas(vocab_size)));
  return tokenizer;
}

Tokenizer choose_tokenizer(const PrepareOptions& options, const Corpus& train, Progress& progress,
                           const std::atomic<bool>& interrupt) {
  if (!options.tokenizer) {
    const std::uint32_t vocab_size =
        options.vocab_size != 0 ? options.vocab_size : default_vocab_size(train.bytes());
    return train_tokenizer(train, vocab_size, options.sample_bytes, progress, interrupt);
  }
  Tokenizer tokenizer = Tokenizer::load(*options.tokenizer);
  if (tokenizer.vocab_size() > max_shard_vocabulary)
    throw std::runtime_error(
        fmt::format("the tokenizer '{}' has {} tokens, but a shard's 16 bits allow only {}.",
                    options.tokenizer->string(), tokenizer.vocab_size(), max_shard_vocabulary));
  progress.say("tokens",
               fmt::format("the vocabulary of '{}', {} tokens", options.tokenizer->string(),
                           with_commas(tokenizer.vocab_size())));
  return tokenizer;
}

/// The information content that a facts file states. If it counts documents or bytes as well, they
/// have to be those that were found: else the figure belongs to another text.
double read_bits(const fs::path& path, const SplitFacts& split) {
  nlohmann::json facts;
  try {
    facts = nlohmann::json::parse(io::MappedFile(path).text());
  } catch (const nlohmann::json::exception& error) {
    throw std::runtime_error(fmt::format("'{}' is not JSON: {}.", path.string(), error.what()));
  }
  const auto bits = facts.is_object() ? facts.find("bits") : facts.end();
  if (bits == facts.end() || !bits->is_number() || !(bits->get<double>() >= 0))
    throw std::runtime_error(fmt::format(
        "'{}' should have a number \"bits\" that is not negative, and has none.", path.string()));
  for (const auto& [key, found] :
       {std::pair{"documents", split.documents}, std::pair{"bytes", split.bytes}})
    if (facts.contains(key) && facts[key] != found)
      throw std::runtime_error(
          fmt::format("'{}' is about a text of {} {}, but the text here has {}.", path.string(),
                      facts[key].dump(), key, found));
  return bits->get<double>();
}

SplitFacts encode_split(const Corpus& corpus, const Tokenizer& tokenizer, const SplitOutput& output,
                        Progress& progress, const std::atomic<bool>& interrupt) {
  progress.begin(output.split, "encoding", corpus.bytes());
  const SplitFacts facts = write_split(corpus, tokenizer, output, progress, interrupt);
  const double seconds = progress.end();
  const double bytes = static_cast<double>(facts.bytes);
  std::string text =
      fmt::format("{} tokens in {} {}: {} {}, {:.2f} bytes a token", with_commas(facts.tokens),
                  with_commas(facts.shards), facts.shards == 1 ? "shard" : "shards",
                  with_commas(facts.documents), facts.documents == 1 ? "document" : "documents",
                  bytes / static_cast<double>(facts.tokens));
  if (seconds >= 0.05)
    text += fmt::format("; {} at {}/s", in_time(seconds),
                        in_bytes(static_cast<std::uint64_t>(bytes / seconds)));
  progress.say(output.split, text);
  return facts;
}

}  // namespace

double default_validation_fraction(std::uint64_t bytes) {
  return std::min(0.1, 1e7 / static_cast<double>(bytes));
}

std::uint32_t default_vocab_size(std::uint64_t bytes) {
  if (bytes < 10'000'000) return 1024;
  if (bytes < 100'000'000) return 4096;
  if (bytes < 1'000'000'000) return 16384;
  return 32768;
}

PrepareResult prepare(const PrepareOptions& options, Progress& progress,
                      const std::atomic<bool>& interrupt) {
  check_options(options);
  FileList validation = list_files(options.validation);
  FileList train = list_files(options.inputs, validation.files);
  const std::string mark = fingerprint(options, train.files, validation.files);
  if (options.if_changed)
    if (auto facts = up_to_date(options.out, mark)) {
      progress.say("data", fmt::format("'{}' is up to date", options.out.string()));
      return {.facts = *std::move(facts), .was_up_to_date = true};
    }

  OutputDirectory directory(options.out, options.force);
  require_apart(directory, train.files);
  require_apart(directory, validation.files);
  const Splits splits = make_splits(options, std::move(train), std::move(validation), progress);
  const Tokenizer tokenizer = choose_tokenizer(options, splits.train, progress, interrupt);
  tokenizer.save_json(directory.path() / "tokenizer.json");
  tokenizer.save_bin(directory.path() / "tokenizer.bin");

  DataSetFacts facts;
  facts.name = options.name.empty() ? directory.final_path().filename().string() : options.name;
  facts.source = options.source.empty() ? joined(options.inputs) : options.source;
  facts.vocab_size = tokenizer.vocab_size();
  facts.end_of_text = tokenizer.end_of_text();
  facts.fingerprint = mark;
  SplitOutput output{directory.path(), "train", options.shard_tokens, options.threads};
  facts.train = encode_split(splits.train, tokenizer, output, progress, interrupt);
  output.split = "val";
  facts.val = encode_split(splits.validation, tokenizer, output, progress, interrupt);
  if (options.train_facts)
    facts.entropy = {.train_bits = read_bits(*options.train_facts, facts.train),
                     .val_bits = read_bits(*options.validation_facts, facts.val)};
  write_facts(directory.path(), facts);
  directory.commit();
  progress.say("data", fmt::format("'{}' is ready", options.out.string()));
  return {.facts = std::move(facts), .was_up_to_date = false};
}

}  // namespace strata::data
