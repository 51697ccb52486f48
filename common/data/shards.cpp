#include "common/data/shards.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cctype>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace strata::data {
namespace {

static_assert(std::endian::native == std::endian::little, "shards are mapped as they are");

std::uint32_t header_word(std::span<const std::byte> bytes, std::size_t index) {
  std::uint32_t value = 0;
  std::memcpy(&value, bytes.data() + 4 * index, sizeof value);
  return value;
}

bool looks_like_text(std::span<const std::byte> bytes) {
  const auto start = bytes.first(std::min<std::size_t>(bytes.size(), 64));
  return std::all_of(start.begin(), start.end(), [](std::byte byte) {
    const auto c = std::to_integer<unsigned char>(byte);
    return c >= 0x20 || std::isspace(c);
  });
}

/// What a file is that does not begin as a shard does, for the sentence that refuses it.
std::string foreign_kind(std::span<const std::byte> bytes) {
  const std::uint32_t magic = header_word(bytes, 0);
  const auto starts_with = [&](std::size_t at, std::string_view text) {
    return bytes.size() >= at + text.size() &&
           std::memcmp(bytes.data() + at, text.data(), text.size()) == 0;
  };
  switch (magic) {
    case 20240801:
      return "is a shard of Llama 3 tokens (magic 20240801), which are 32 bits wide, but GPT-2's "
             "16-bit shards (magic 20240520) are wanted";
    case 20240326:
      return "is one of llm.c's model files (magic 20240326), not a token shard";
    case 20240327:
      return "is one of llm.c's debug states (magic 20240327), not a token shard";
    case 20240328:
      return "is a tokenizer.bin (magic 20240328), not a token shard";
    case 20240522:
      return "is one of llm.c's evaluation sets (magic 20240522), not a token shard";
    case 20240527:
      return "is one of llm.c's optimizer states (magic 20240527), not a token shard";
    default:
      break;
  }
  if (magic == 0x88d8'3401) return "is a token shard of a big-endian machine, which is not read";
  if (starts_with(8, "{\"")) return "is a safetensors file, not a token shard";
  if (starts_with(0, "\x93NUMPY")) return "is a NumPy array, not a token shard";
  if (starts_with(0, "\x1f\x8b") || starts_with(0, "PK\x03\x04") ||
      starts_with(0, "\x28\xb5\x2f\xfd"))
    return "is compressed, and has to be unpacked before it can be a token shard";
  if (looks_like_text(bytes))
    return "is text, not a token shard; ./run data FILE makes shards from a text";
  return fmt::format("is not a token shard: it begins with {}, not with the magic {}", magic,
                     shard_magic);
}

}  // namespace

std::string shard_name(const std::string& prefix, std::uint64_t index) {
  return fmt::format("{}_{:06}.bin", prefix, index);
}

std::optional<std::uint64_t> shard_index(const std::string& name, const std::string& prefix) {
  const std::string start = prefix + "_";
  if (!name.starts_with(start) || !name.ends_with(".bin")) return std::nullopt;
  const std::string digits = name.substr(start.size(), name.size() - start.size() - 4);
  if (digits.size() != 6 || digits.find_first_not_of("0123456789") != std::string::npos)
    return std::nullopt;
  return std::stoull(digits);
}

ShardReader::ShardReader(const std::filesystem::path& path) : file_(path) {
  const auto bytes = file_.bytes();
  const auto refuse = [&](const std::string& what) {
    throw std::runtime_error(fmt::format("'{}' {}.", path.string(), what));
  };
  if (bytes.empty()) refuse("is empty, not a token shard");
  if (bytes.size() >= 4 && header_word(bytes, 0) != shard_magic) refuse(foreign_kind(bytes));
  if (bytes.size() < shard_header_bytes)
    refuse(fmt::format("is truncated: it has {} bytes, but a token shard's header alone has {}",
                       bytes.size(), shard_header_bytes));
  if (header_word(bytes, 1) != shard_version)
    refuse(fmt::format("is a token shard of version {}; version {} is wanted",
                       header_word(bytes, 1), shard_version));
  size_ = header_word(bytes, 2);
  const std::uint64_t expected = shard_header_bytes + 2 * size_;
  if (bytes.size() < expected)
    refuse(
        fmt::format("is truncated: its header says {} tokens, which take {} bytes, but it has {}",
                    size_, expected, bytes.size()));
  if (bytes.size() > expected)
    refuse(fmt::format("is too long: its header says {} tokens, which take {} bytes, but it has {}",
                       size_, expected, bytes.size()));
  if (size_ == 0) refuse("is a token shard without tokens");
}

std::span<const std::uint16_t> ShardReader::tokens(std::uint64_t first, std::uint64_t count) const {
  if (first > size_ || count > size_ - first)
    throw std::out_of_range(fmt::format("tokens {} to {} of '{}' were asked for; it has {}.", first,
                                        first + count, path().string(), size_));
  // The map begins at a page and the header has 1024 bytes, so the tokens are aligned.
  const std::byte* start = file_.bytes().data() + shard_header_bytes;
  return {reinterpret_cast<const std::uint16_t*>(start) + first, count};
}

void ShardReader::check(std::uint64_t first, std::uint64_t count, std::uint32_t vocab_size) const {
  const auto range = tokens(first, count);
  // The largest token first: that loop is vectorised, and as a rule there is nothing to look for.
  std::uint16_t largest = 0;
  for (const std::uint16_t token : range) largest = std::max(largest, token);
  if (range.empty() || largest < vocab_size) return;
  const auto bad = std::find_if(range.begin(), range.end(),
                                [&](std::uint16_t token) { return token >= vocab_size; });
  throw std::runtime_error(fmt::format(
      "'{}' has token {} at position {}, but the vocabulary has {} tokens (0 to {}): the shard was "
      "made with another tokenizer or is damaged.",
      path().string(), *bad, first + static_cast<std::uint64_t>(bad - range.begin()), vocab_size,
      std::int64_t{vocab_size} - 1));
}

ShardWriter::ShardWriter(std::filesystem::path directory, std::string prefix,
                         std::uint32_t vocab_size, std::uint64_t tokens_per_shard)
    : directory_(std::move(directory)),
      prefix_(std::move(prefix)),
      vocab_size_(vocab_size),
      tokens_per_shard_(tokens_per_shard) {
  if (tokens_per_shard < 1 || tokens_per_shard > max_shard_tokens)
    throw std::runtime_error(fmt::format("a shard can have 1 to {} tokens, not {}.",
                                         max_shard_tokens, tokens_per_shard));
  if (vocab_size < 1 || vocab_size > max_shard_vocabulary)
    throw std::runtime_error(
        fmt::format("a shard's tokens have 16 bits, so the vocabulary can have 1 to {} tokens, "
                    "not {}.",
                    max_shard_vocabulary, vocab_size));
}

ShardWriter::~ShardWriter() = default;

void ShardWriter::begin_shard() {
  file_ = std::make_unique<io::AtomicFile>(directory_ / shard_name(prefix_, shards_));
  const std::array<std::byte, shard_header_bytes> blank{};  // filled in when the count is known
  file_->write(blank.data(), blank.size());
  shard_tokens_ = 0;
  ++shards_;
}

void ShardWriter::end_shard() {
  const std::array<std::uint32_t, 3> header{shard_magic, shard_version,
                                            static_cast<std::uint32_t>(shard_tokens_)};
  file_->write_at(0, header.data(), sizeof header);
  file_->commit();
  file_.reset();
}

void ShardWriter::append(std::span<const std::uint32_t> tokens) {
  constexpr std::size_t piece_tokens = 1 << 16;
  while (!tokens.empty()) {
    if (file_ == nullptr) begin_shard();
    const std::uint64_t room = tokens_per_shard_ - shard_tokens_;
    const auto piece = tokens.first(
        static_cast<std::size_t>(std::min<std::uint64_t>({room, piece_tokens, tokens.size()})));
    buffer_.clear();
    for (const std::uint32_t token : piece) {
      if (token >= vocab_size_)
        throw std::runtime_error(
            fmt::format("token {} cannot be written to '{}': the vocabulary has {} tokens.", token,
                        (directory_ / shard_name(prefix_, shards_ - 1)).string(), vocab_size_));
      buffer_.push_back(static_cast<std::uint16_t>(token));
    }
    file_->write(buffer_.data(), 2 * buffer_.size());
    shard_tokens_ += piece.size();
    tokens_ += piece.size();
    tokens = tokens.subspan(piece.size());
    if (shard_tokens_ == tokens_per_shard_) end_shard();
  }
}

void ShardWriter::finish() {
  if (file_ != nullptr) end_shard();
}

}  // namespace strata::data
