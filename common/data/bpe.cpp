#include "common/data/bpe.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <stdexcept>
#include <string>

namespace strata::data {

MergeTable::MergeTable(const Vocabulary& vocabulary) : merges_(vocabulary.merges) {
  for (std::size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    const std::string& token = vocabulary.tokens[id];
    lengths_.push_back(static_cast<std::uint32_t>(token.size()));
    if (token.size() == 1)
      byte_tokens_[static_cast<std::uint8_t>(token[0])] = static_cast<std::uint32_t>(id);
  }
  const std::size_t slots = std::bit_ceil(2 * merges_.size() + 2);
  slots_.assign(slots, {empty_key, no_rank});
  mask_ = slots - 1;
  shift_ = 64 - std::countr_zero(slots);
  for (std::size_t rank = 0; rank < merges_.size(); ++rank) {
    const std::uint64_t key = pair_key(merges_[rank].left, merges_[rank].right);
    std::size_t slot = hash(key) >> shift_;
    while (slots_[slot].key != empty_key) slot = (slot + 1) & mask_;
    slots_[slot] = {key, static_cast<std::uint32_t>(rank)};
  }
}

WordEncoder::WordEncoder(const MergeTable& merges) : merges_(&merges), chain_(merges.lengths()) {}

void WordEncoder::encode(std::string_view word, std::vector<std::uint32_t>& ids) {
  if (word.size() <= longest_scanned)
    encode_short(word, ids);
  else
    encode_long(word, ids);
}

void WordEncoder::encode_short(std::string_view word, std::vector<std::uint32_t>& ids) {
  std::array<std::uint32_t, longest_scanned> tokens;
  std::array<std::uint32_t, longest_scanned> ranks;  // of the pair (tokens[i], tokens[i + 1])
  std::size_t count = word.size();
  for (std::size_t i = 0; i < count; ++i) tokens[i] = merges_->byte_token(word[i]);
  for (std::size_t i = 0; i + 1 < count; ++i) ranks[i] = look(tokens[i], tokens[i + 1]);
  while (count > 1) {
    const auto lowest = std::min_element(ranks.begin(), ranks.begin() + count - 1);
    if (*lowest == MergeTable::no_rank) break;
    const auto i = static_cast<std::size_t>(lowest - ranks.begin());
    tokens[i] = merges_->merge(*lowest).result;
    std::copy(tokens.begin() + i + 2, tokens.begin() + count, tokens.begin() + i + 1);
    std::copy(lowest + 1, ranks.begin() + count - 1, lowest);
    --count;
    if (i + 1 < count) ranks[i] = look(tokens[i], tokens[i + 1]);
    if (i > 0) ranks[i - 1] = look(tokens[i - 1], tokens[i]);
  }
  ids.insert(ids.end(), tokens.begin(), tokens.begin() + count);
}

// A long word is merged rank by rank. For each rank we keep the places where its pair was seen, and
// merge them all in one sweep from left to right. That is the same as merging the leftmost pair of
// the lowest rank again and again: a merge creates only pairs of higher ranks (see Vocabulary), so
// nothing of the same or a lower rank can appear during the sweep. A place that has meanwhile become
// part of another token is passed over. Each merge adds at most two places and takes one token
// away, so a word of n bytes has under 3n places in all: linear, but for the heap of distinct ranks.
void WordEncoder::encode_long(std::string_view word, std::vector<std::uint32_t>& ids) {
  if (word.size() >= std::numeric_limits<std::uint32_t>::max() - 2)
    throw std::runtime_error("the text has a word of " + std::to_string(word.size()) +
                             " bytes without a gap, expected less than 4 GiB");
  places_.resize(merges_->size());
  chain_.clear();
  chain_.reserve(word.size() + 2);
  chain_.push_barrier();
  for (const char byte : word) chain_.push_byte(merges_->byte_token(byte));
  chain_.push_barrier();
  for (std::size_t place = 1; place < word.size(); ++place)
    note_pair(chain_.at(place), chain_.at(place + 1), place);
  while (!ranks_.empty()) {
    const std::uint32_t rank = ranks_.top();
    ranks_.pop();
    merge_rank(rank);
  }
  for (std::size_t place = 1; TokenChain::is_token(chain_.at(place)); place = chain_.after(place))
    ids.push_back(chain_.at(place));
}

void WordEncoder::note_pair(std::uint32_t left, std::uint32_t right, std::size_t place) {
  const std::uint32_t rank = look(left, right);
  if (rank == MergeTable::no_rank) return;
  if (places_[rank].empty()) ranks_.push(rank);
  places_[rank].push_back(static_cast<std::uint32_t>(place));
}

void WordEncoder::merge_rank(std::uint32_t rank) {
  const Merge& merge = merges_->merge(rank);
  current_.swap(places_[rank]);
  // Only a pair of equal tokens can overlap itself ("aaa"), so only there the order matters.
  if (merge.left == merge.right && !std::is_sorted(current_.begin(), current_.end()))
    std::sort(current_.begin(), current_.end());
  for (const std::uint32_t place : current_) {
    ++pair_looks_;
    if (!chain_.has_pair(place, merge.left, merge.right)) continue;
    chain_.merge(place, merge.result);
    const std::uint32_t before = chain_.token_before(place);
    if (before != TokenChain::nothing)
      note_pair(before, merge.result, place - chain_.length(before));
    const std::uint32_t behind = chain_.at(chain_.after(place));
    if (behind != TokenChain::nothing) note_pair(merge.result, behind, place);
  }
  current_.clear();
}

}  // namespace strata::data
