#include "common/data/bpe_trainer.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <queue>
#include <stdexcept>
#include <tuple>
#include <unordered_set>
#include <utility>
#include <vector>

#include "common/data/byte_alphabet.h"
#include "common/data/token_chain.h"

namespace strata::data {
namespace {

struct Pair {
  std::uint32_t left;
  std::uint32_t right;
  friend bool operator==(const Pair&, const Pair&) = default;
};

struct PairHash {
  std::size_t operator()(const Pair& pair) const {
    const std::uint64_t key = std::uint64_t{pair.left} << 32 | pair.right;
    return (key ^ key >> 29) * 0x9e3779b97f4a7c15u >> 16;
  }
};

/// What is known of a pair: how often it stands in the text, and every place where it stands in the
/// distinct words (with places where it once stood among them).
struct PairUse {
  std::uint64_t count = 0;
  std::vector<std::uint32_t> places;
};

/// A pair with the count that it had when it was put into the queue.
struct Candidate {
  std::uint64_t count;
  Pair pair;
  /// Whether `b` is to be merged before `a`: the order of std::priority_queue.
  friend bool operator<(const Candidate& a, const Candidate& b) {
    return std::tuple(a.count, b.pair.left, b.pair.right) <
           std::tuple(b.count, a.pair.left, a.pair.right);
  }
};

/// The words while they are merged, with the uses of all pairs kept up to date.
class MergingWords {
 public:
  explicit MergingWords(std::uint64_t min_frequency) : min_frequency_(min_frequency) {
    for (const std::uint8_t byte : byte_order()) {
      byte_tokens_[byte] = static_cast<std::uint32_t>(vocabulary_.tokens.size());
      add_token(std::string(1, static_cast<char>(byte)));
    }
  }

  void reserve(std::size_t cells) {
    chain_.reserve(cells);
    word_at_.reserve(cells);
  }

  void add_word(std::string_view word, std::uint64_t count) {
    const auto index = static_cast<std::uint32_t>(counts_.size());
    counts_.push_back(count);
    chain_.push_barrier();
    for (const char byte : word) chain_.push_byte(byte_tokens_[static_cast<std::uint8_t>(byte)]);
    word_at_.resize(chain_.size(), index);
  }

  /// To be called after the last word.
  void count_pairs() {
    chain_.push_barrier();
    for (std::size_t place = 1; place + 1 < chain_.size(); ++place)
      if (TokenChain::is_token(chain_.at(place)) && TokenChain::is_token(chain_.at(place + 1)))
        gain({chain_.at(place), chain_.at(place + 1)}, place);
    queue_grown_pairs();
  }

  /// Merges the best pair into a new token; false if no pair is left that may be merged.
  bool merge_best() {
    const std::optional<Pair> best = take_best();
    if (!best) return false;
    const auto result = static_cast<std::uint32_t>(vocabulary_.tokens.size());
    add_token(vocabulary_.tokens[best->left] + vocabulary_.tokens[best->right]);
    vocabulary_.merges.push_back({best->left, best->right, result});
    replace(*best, result);
    queue_grown_pairs();
    return true;
  }

  [[nodiscard]] std::size_t tokens() const { return vocabulary_.tokens.size(); }

  /// The vocabulary so far, with `<|endoftext|>` after it.
  [[nodiscard]] Vocabulary take_vocabulary() {
    vocabulary_.end_of_text = static_cast<std::uint32_t>(vocabulary_.tokens.size());
    vocabulary_.tokens.emplace_back(end_of_text_content);
    return std::move(vocabulary_);
  }

 private:
  void add_token(std::string bytes) {
    lengths_.push_back(static_cast<std::uint32_t>(bytes.size()));
    known_.insert(bytes);
    vocabulary_.tokens.push_back(std::move(bytes));
  }

  /// `pair` stands at `place` from now on.
  void gain(Pair pair, std::size_t place) {
    PairUse& use = uses_[pair];
    use.count += counts_[word_at_[place]];
    use.places.push_back(static_cast<std::uint32_t>(place));
    if (!grown_.empty() && grown_.back() == pair) return;
    grown_.push_back(pair);
  }
  /// `pair` no longer stands at `place`. Its candidate in the queue is set right when it comes up.
  void lose(Pair pair, std::size_t place) { uses_[pair].count -= counts_[word_at_[place]]; }

  void queue_grown_pairs() {
    const auto by_ids = [](const Pair& a, const Pair& b) {
      return std::tuple(a.left, a.right) < std::tuple(b.left, b.right);
    };
    std::sort(grown_.begin(), grown_.end(), by_ids);
    grown_.erase(std::unique(grown_.begin(), grown_.end()), grown_.end());
    for (const Pair& pair : grown_) queue_.push({uses_[pair].count, pair});
    grown_.clear();
  }

  std::optional<Pair> take_best() {
    while (!queue_.empty()) {
      const Candidate best = queue_.top();
      queue_.pop();
      const std::uint64_t count = uses_[best.pair].count;
      if (count < min_frequency_ || count == 0) continue;
      if (count != best.count) {  // it has lost places since: back into the queue, further behind
        queue_.push({count, best.pair});
        continue;
      }
      if (may_merge(best.pair)) return best.pair;
    }
    return std::nullopt;
  }

  [[nodiscard]] bool may_merge(const Pair& pair) const {
    const std::string &left = vocabulary_.tokens[pair.left],
                      &right = vocabulary_.tokens[pair.right];
    return left.size() + right.size() <= max_token_bytes && !known_.contains(left + right);
  }

  void replace(const Pair& pair, std::uint32_t result) {
    // Places are seen in ascending order: a pair with the newest token in it gets all its places
    // during one sweep. So overlapping runs ("aaa") are merged from the left.
    const std::vector<std::uint32_t> places = std::move(uses_[pair].places);
    for (const std::uint32_t place : places) {
      if (!chain_.has_pair(place, pair.left, pair.right)) continue;
      const std::uint32_t before = chain_.token_before(place);
      const std::size_t behind_place = place + chain_.length(pair.left) + chain_.length(pair.right);
      const std::uint32_t behind = chain_.at(behind_place);
      chain_.merge(place, result);
      lose(pair, place);
      if (before != TokenChain::nothing) {
        lose({before, pair.left}, place);
        gain({before, result}, place - chain_.length(before));
      }
      if (behind != TokenChain::nothing) {
        lose({pair.right, behind}, place);
        gain({result, behind}, place);
      }
    }
  }

  std::uint64_t min_frequency_;
  Vocabulary vocabulary_;
  std::array<std::uint32_t, 256> byte_tokens_{};
  std::unordered_set<std::string> known_;  // the bytes of all tokens
  std::vector<std::uint32_t> lengths_;
  TokenChain chain_{lengths_};
  std::vector<std::uint32_t> word_at_;  // by place: the index of the word
  std::vector<std::uint64_t> counts_;   // by word: how often it stands in the text
  std::unordered_map<Pair, PairUse, PairHash> uses_;
  std::vector<Pair> grown_;  // pairs that gained places since the queue was last fed
  std::priority_queue<Candidate> queue_;
};

}  // namespace

BpeTrainer::BpeTrainer() : scanner_(PreTokenizer()) {}

void BpeTrainer::add(std::string_view document) {
  scanner_.start(document);
  for (std::string_view word = scanner_.next(); !word.empty(); word = scanner_.next()) {
    const auto found = word_counts_.find(word);
    if (found != word_counts_.end())
      ++found->second;
    else
      word_counts_.emplace(word, 1);
  }
}

Vocabulary BpeTrainer::train(const TrainerOptions& options) const {
  if (options.vocab_size < 257 || options.vocab_size > max_vocab_size)
    throw std::runtime_error("a vocabulary of " + std::to_string(options.vocab_size) +
                             " tokens was asked for, expected from 257 (256 bytes and " +
                             std::string(end_of_text_content) + ") to " +
                             std::to_string(max_vocab_size));
  std::size_t cells = 1;
  for (const auto& [word, count] : word_counts_) cells += word.size() + 1;
  if (cells >= std::size_t{1} << 31)
    throw std::runtime_error("the distinct words of the text have " + std::to_string(cells) +
                             " bytes, expected less than 2^31: train on a part of it");
  MergingWords words(options.min_frequency);
  words.reserve(cells);
  for (const auto& [word, count] : word_counts_) words.add_word(word, count);
  words.count_pairs();
  while (words.tokens() + 1 < options.vocab_size && words.merge_best()) continue;
  return words.take_vocabulary();
}

}  // namespace strata::data
