#include "common/data/tokenizer.h"

#include <stdexcept>

namespace strata::data {

struct Tokenizer::Tables {
  Vocabulary vocabulary;
};

struct Encoder::State {};

Tokenizer Tokenizer::load(const std::filesystem::path& path) {
  throw std::runtime_error("'" + path.string() + "' cannot be read yet");
}
Tokenizer Tokenizer::train(const DocumentSource&, const TrainerOptions&) {
  return Tokenizer(Vocabulary{});
}
Tokenizer Tokenizer::train(std::span<const std::string_view>, const TrainerOptions&) {
  return Tokenizer(Vocabulary{});
}
Tokenizer::Tokenizer(Vocabulary vocabulary)
    : tables_(std::make_shared<const Tables>(Tables{std::move(vocabulary)})) {}
std::vector<std::uint32_t> Tokenizer::encode(std::string_view, bool) const { return {}; }
std::string Tokenizer::decode(std::span<const std::uint32_t>) const { return {}; }
std::string_view Tokenizer::token_bytes(std::uint32_t id) const {
  return tables_->vocabulary.tokens.at(id);
}
std::uint32_t Tokenizer::vocab_size() const {
  return static_cast<std::uint32_t>(tables_->vocabulary.tokens.size());
}
std::uint32_t Tokenizer::end_of_text() const { return tables_->vocabulary.end_of_text; }
const Vocabulary& Tokenizer::vocabulary() const { return tables_->vocabulary; }
void Tokenizer::save_json(const std::filesystem::path&) const {}
void Tokenizer::save_bin(const std::filesystem::path&) const {}

Encoder::Encoder(const Tokenizer&) : state_(std::make_unique<State>()) {}
Encoder::~Encoder() = default;
Encoder::Encoder(Encoder&&) noexcept = default;
Encoder& Encoder::operator=(Encoder&&) noexcept = default;
void Encoder::encode(std::string_view, std::vector<std::uint32_t>&, bool) {}
std::uint64_t Encoder::pair_looks() const { return 0; }

}  // namespace strata::data
