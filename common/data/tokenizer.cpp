#include "common/data/tokenizer.h"

#include <stdexcept>
#include <unordered_map>
#include <utility>

#include "common/data/bpe.h"
#include "common/data/bpe_trainer.h"
#include "common/data/pretokenizer.h"
#include "common/data/tokenizer_files.h"

namespace strata::data {

struct Tokenizer::Tables {
  explicit Tables(Vocabulary made) : vocabulary(std::move(made)), merges(vocabulary) {}

  Vocabulary vocabulary;
  MergeTable merges;
  PreTokenizer pretokenizer;
};

Tokenizer::Tokenizer(Vocabulary vocabulary) {
  const std::string fault = vocabulary_fault(vocabulary);
  if (!fault.empty()) throw std::runtime_error("the vocabulary does not fit together: " + fault);
  tables_ = std::make_shared<const Tables>(std::move(vocabulary));
}

Tokenizer Tokenizer::load(const std::filesystem::path& path) {
  return Tokenizer(read_tokenizer(path));
}

Tokenizer Tokenizer::train(const DocumentSource& documents, const TrainerOptions& options) {
  BpeTrainer trainer;
  while (const std::optional<std::string_view> document = documents()) trainer.add(*document);
  return Tokenizer(trainer.train(options));
}

Tokenizer Tokenizer::train(std::span<const std::string_view> documents,
                           const TrainerOptions& options) {
  BpeTrainer trainer;
  for (const std::string_view document : documents) trainer.add(document);
  return Tokenizer(trainer.train(options));
}

std::vector<std::uint32_t> Tokenizer::encode(std::string_view text, bool allow_special) const {
  std::vector<std::uint32_t> ids;
  Encoder(*this).encode(text, ids, allow_special);
  return ids;
}

std::string Tokenizer::decode(std::span<const std::uint32_t> ids) const {
  std::string text;
  for (const std::uint32_t id : ids) text += token_bytes(id);
  return text;
}

std::string_view Tokenizer::token_bytes(std::uint32_t id) const {
  if (id >= vocab_size())
    throw std::runtime_error("there is no token " + std::to_string(id) + ", expected an id under " +
                             std::to_string(vocab_size()));
  return tables_->vocabulary.tokens[id];
}

std::uint32_t Tokenizer::vocab_size() const {
  return static_cast<std::uint32_t>(tables_->vocabulary.tokens.size());
}

std::uint32_t Tokenizer::end_of_text() const { return tables_->vocabulary.end_of_text; }

const Vocabulary& Tokenizer::vocabulary() const { return tables_->vocabulary; }

void Tokenizer::save_json(const std::filesystem::path& path) const {
  write_tokenizer_json(path, tables_->vocabulary);
}

void Tokenizer::save_bin(const std::filesystem::path& path) const {
  write_tokenizer_bin(path, tables_->vocabulary);
}

struct Encoder::State {
  explicit State(std::shared_ptr<const Tokenizer::Tables> made)
      : tables(std::move(made)), scanner(tables->pretokenizer), words(tables->merges) {}

  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view word) const {
      return std::hash<std::string_view>{}(word);
    }
  };
  using Ids = std::vector<std::uint32_t>;

  void encode_ordinary(std::string_view text, Ids& ids);
  void encode_word(std::string_view word, Ids& ids);

  /// Words longer than this seldom come again, and a cache of them could grow large.
  static constexpr std::size_t longest_kept_word = 32;
  static constexpr std::size_t most_kept_words = std::size_t{1} << 16;

  std::shared_ptr<const Tokenizer::Tables> tables;
  PieceScanner scanner;
  WordEncoder words;
  struct Run {
    std::uint32_t first;
    std::uint32_t count;
  };
  std::unordered_map<std::string, Run, Hash, std::equal_to<>> kept;  // runs of kept_ids
  Ids kept_ids;
};

void Encoder::State::encode_ordinary(std::string_view text, Ids& ids) {
  scanner.start(text);
  for (std::string_view word = scanner.next(); !word.empty(); word = scanner.next())
    encode_word(word, ids);
}

void Encoder::State::encode_word(std::string_view word, Ids& ids) {
  if (word.size() > longest_kept_word) return words.encode(word, ids);
  auto found = kept.find(word);
  if (found == kept.end()) {
    if (kept.size() == most_kept_words) {
      kept.clear();
      kept_ids.clear();
    }
    const auto first = static_cast<std::uint32_t>(kept_ids.size());
    words.encode(word, kept_ids);
    const auto count = static_cast<std::uint32_t>(kept_ids.size()) - first;
    found = kept.emplace(word, Run{first, count}).first;
  }
  const auto run = kept_ids.begin() + found->second.first;
  ids.insert(ids.end(), run, run + found->second.count);
}

Encoder::Encoder(const Tokenizer& tokenizer) : state_(std::make_unique<State>(tokenizer.tables_)) {}
Encoder::~Encoder() = default;
Encoder::Encoder(Encoder&&) noexcept = default;
Encoder& Encoder::operator=(Encoder&&) noexcept = default;

void Encoder::encode(std::string_view text, std::vector<std::uint32_t>& ids, bool allow_special) {
  while (allow_special) {
    const std::size_t special = text.find(end_of_text_content);
    if (special == std::string_view::npos) break;
    state_->encode_ordinary(text.substr(0, special), ids);
    ids.push_back(state_->tables->vocabulary.end_of_text);
    text.remove_prefix(special + end_of_text_content.size());
  }
  state_->encode_ordinary(text, ids);
}

std::uint64_t Encoder::pair_looks() const { return state_->words.pair_looks(); }

}  // namespace strata::data
