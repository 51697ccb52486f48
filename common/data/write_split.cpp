// Encoding a split by all threads.
#include <omp.h>

#include <exception>

#include "common/data/prepare.h"
#include "common/data/shards.h"

namespace strata::data {
namespace {

/// Consecutive pieces, which one thread encodes at one go.
struct Unit {
  std::vector<Piece> pieces;
  std::vector<std::uint32_t> ids;
  std::exception_ptr error;
};

constexpr std::size_t unit_bytes = 256 * 1024;

/// Fills `unit` with pieces of at least unit_bytes together; false at the end of the stream.
bool take_unit(DocumentStream& stream, Unit& unit, SplitFacts& facts) {
  unit.pieces.clear();
  unit.ids.clear();
  std::size_t bytes = 0;
  while (bytes < unit_bytes) {
    auto piece = stream.next();
    if (!piece) break;
    bytes += piece->text.size();
    facts.documents += piece->starts_document;
    unit.pieces.push_back(*std::move(piece));
  }
  facts.bytes += bytes;
  return bytes > 0;
}

void encode_unit(Unit& unit, Encoder& encoder, std::uint32_t end_of_text) {
  try {
    for (const Piece& piece : unit.pieces) {
      if (piece.starts_document) unit.ids.push_back(end_of_text);
      encoder.encode(piece.text, unit.ids);
    }
  } catch (...) {  // it must not leave the parallel region
    unit.error = std::current_exception();
  }
}

}  // namespace

SplitFacts write_split(const Corpus& corpus, const Tokenizer& tokenizer, const SplitOutput& output,
                       Progress& progress, const std::atomic<bool>& interrupt) {
  const int threads = output.threads > 0 ? output.threads : omp_get_max_threads();
  std::vector<Encoder> encoders;
  for (int thread = 0; thread < threads; ++thread) encoders.emplace_back(tokenizer);
  std::vector<Unit> units(static_cast<std::size_t>(4 * threads));
  ShardWriter writer(output.directory, output.split, tokenizer.vocab_size(), output.shard_tokens);
  DocumentStream stream(corpus);
  SplitFacts facts;
  for (bool more = true; more;) {
    if (interrupt) throw Interrupted();
    std::size_t count = 0;
    while (count < units.size() && more)
      if ((more = take_unit(stream, units[count], facts))) ++count;
#pragma omp parallel for schedule(dynamic) num_threads(threads)
    for (std::size_t i = 0; i < count; ++i)
      encode_unit(units[i], encoders[static_cast<std::size_t>(omp_get_thread_num())],
                  tokenizer.end_of_text());
    for (std::size_t i = 0; i < count; ++i) {
      if (units[i].error) std::rethrow_exception(units[i].error);
      writer.append(units[i].ids);
    }
    progress.advance(facts.bytes);
  }
  writer.finish();
  facts.tokens = writer.tokens();
  facts.shards = writer.shards();
  return facts;
}

}  // namespace strata::data
