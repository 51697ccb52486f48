#include "data/tales/corpus.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "common/io/files.h"
#include "data/tales/storyteller.h"

namespace strata::tales {

void Sum::add(double x) {
  const double sum = sum_ + x;
  lost_ += std::abs(sum_) >= std::abs(x) ? (sum_ - sum) + x : (x - sum) + sum_;
  sum_ = sum;
}

std::uint64_t count_words(std::string_view text) {
  std::uint64_t words = 0;
  bool inside = false;
  for (const char c : text) {
    const bool space = c == ' ' || c == '\n';
    words += !space && !inside;
    inside = !space;
  }
  return words;
}

std::vector<std::string_view> split_documents(std::string_view text) {
  const std::string_view line = separator;
  std::vector<std::string_view> documents;
  for (std::size_t start = 0;;) {
    const std::size_t found = text.find(line, start);
    documents.push_back(text.substr(start, found - start));
    if (found == std::string_view::npos) return documents;
    start = found + line.size();
  }
}

namespace {

nlohmann::ordered_json facts_json(const CorpusRequest& request, const CorpusFacts& facts) {
  return {{"format", 1},
          {"seed", request.seed},
          {"first", request.first},
          {"stories", facts.stories},
          {"documents", facts.stories},
          {"bytes", facts.bytes},
          {"words", facts.words},
          {"bits", facts.bits},
          {"bits_per_story", facts.bits / static_cast<double>(facts.stories)},
          {"bits_per_word", facts.bits / static_cast<double>(facts.words)},
          {"bits_per_byte", facts.bits / static_cast<double>(facts.bytes)}};
}

}  // namespace

CorpusFacts write_corpus(const Language& language, const CorpusRequest& request,
                         const std::filesystem::path& out,
                         const std::filesystem::path& facts_path) {
  constexpr std::size_t flush_bytes = 1 << 20;
  io::AtomicFile file(out);
  io::AtomicFile facts_file(facts_path);
  CorpusFacts facts;
  Sum bits;
  std::string buffer;
  const auto wanted = [&] {
    return request.stories != 0 ? facts.stories < request.stories : facts.bytes < request.bytes;
  };
  while (wanted()) {
    RandomChooser chooser(request.seed, request.first + facts.stories);
    const std::string story = tell_story(language, chooser);
    if (facts.stories > 0) buffer += separator;
    buffer += story;
    ++facts.stories;
    facts.bytes += story.size();
    facts.words += count_words(story);
    bits.add(chooser.bits());
    if (buffer.size() >= flush_bytes) {
      file.write(buffer);
      buffer.clear();
    }
  }
  file.write(buffer);
  facts.bits = bits.value();
  facts_file.write(facts_json(request, facts).dump(2) + "\n");
  file.commit();
  facts_file.commit();
  return facts;
}

}  // namespace strata::tales
