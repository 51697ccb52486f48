#include "common/data/corpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <stdexcept>
#include <system_error>

#include "common/data/vocabulary.h"

namespace strata::data {
namespace {

namespace fs = std::filesystem;

/// Walks through inputs and collects what may be text.
class Lister {
 public:
  explicit Lister(std::span<const SourceFile> held_out) {
    for (const SourceFile& file : held_out) held_out_.insert(fs::weakly_canonical(file.path));
  }

  void add(const fs::path& path) {
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (error) return skip(path, "it cannot be looked at: " + error.message());
    if (fs::is_directory(status)) return add_directory(path);
    if (!fs::is_regular_file(status)) return skip(path, "it is neither a file nor a directory");
    const fs::path canonical = fs::weakly_canonical(path, error);
    if (held_out_.contains(canonical)) return skip(path, "it is held out for validation");
    if (!seen_.insert(canonical).second) return skip(path, "it was read already");
    const std::uint64_t size = fs::file_size(path, error);
    if (error) return skip(path, "it cannot be looked at: " + error.message());
    if (size == 0) return skip(path, "it is empty");
    const auto modified = fs::last_write_time(path, error).time_since_epoch().count();
    list.files.push_back({path, size, static_cast<std::int64_t>(modified)});
  }

  FileList list;

 private:
  void skip(const fs::path& path, std::string reason) {
    list.skipped.push_back({path, std::move(reason)});
  }

  void add_directory(const fs::path& directory) {
    if (fs::exists(directory / "dataset.json"))
      return skip(directory, "it is a data set, not text");
    std::error_code error;
    std::vector<fs::path> entries;
    for (fs::directory_iterator entry(directory, error), end; !error && entry != end;
         entry.increment(error))
      entries.push_back(entry->path());
    if (error) skip(directory, "it cannot be read: " + error.message());
    std::sort(entries.begin(), entries.end(),
              [](const fs::path& a, const fs::path& b) { return a.native() < b.native(); });
    for (const fs::path& entry : entries) {
      if (entry.filename().native().starts_with('.'))
        skip(entry, "it is hidden");
      else if (fs::is_symlink(entry) && fs::is_directory(entry))
        skip(entry, "it is a link to a directory");
      else
        add(entry);
    }
  }

  std::set<fs::path> held_out_;
  std::set<fs::path> seen_;
};

/// A line that is exactly <|endoftext|>: where it begins, and where the next line does.
struct Separator {
  std::size_t begin, end;
};

/// The first separator that begins at `from` or later, but before `until`; `text` is a whole file.
std::optional<Separator> find_separator(std::string_view text, std::size_t from,
                                        std::size_t until) {
  // The search ends with the range: the file may go on for gigabytes.
  const std::string_view range = text.substr(0, until + end_of_text_content.size());
  for (std::size_t at = range.find(end_of_text_content, from); at < until;
       at = range.find(end_of_text_content, at + 1)) {
    std::size_t end = at + end_of_text_content.size();
    if (at > 0 && text[at - 1] != '\n') continue;
    if (text.substr(end, 2) == "\r\n") return Separator{at, end + 2};
    if (end == text.size()) return Separator{at, end};
    if (text[end] == '\n') return Separator{at, end + 1};
  }
  return std::nullopt;
}

std::shared_ptr<const io::MappedFile> open_file(const SourceFile& file) {
  auto mapped = std::make_shared<const io::MappedFile>(file.path);
  if (mapped->bytes().size() != file.size)
    throw std::runtime_error(fmt::format("'{}' changed while it was read: it had {} bytes, now {}.",
                                         file.path.string(), file.size, mapped->bytes().size()));
  return mapped;
}

bool is_ascii_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

/// Is the character before text[at] surely whole and surely not white space? (White space beyond
/// ASCII begins with C2, E1, E2 or E3 80; characters whose kind would take a table count as no.)
bool solid_before(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t back) { return static_cast<unsigned char>(text[at - back]); };
  if (at < 1) return false;
  if (byte(1) < 0x80) return byte(1) > 0x20 && byte(1) < 0x7f;
  if (at >= 2 && is_continuation(text[at - 1]) && byte(2) >= 0xc3 && byte(2) <= 0xdf) return true;
  if (at < 3 || !is_continuation(text[at - 1]) || !is_continuation(text[at - 2])) return false;
  return byte(3) >= 0xe3 && byte(3) <= 0xec && !(byte(3) == 0xe3 && byte(2) == 0x80);
}

/// A place in a corpus: an offset in one of its parts.
struct Cut {
  std::size_t part;
  std::uint64_t offset;  // in the file
};

/// The beginning of a document nearest to byte `target` of the corpus and at most `reach` away.
std::optional<Cut> nearest_beginning(const Corpus& corpus, double target, double reach) {
  std::optional<Cut> best;
  double best_distance = reach;
  std::uint64_t start = 0;  // of the part, in the corpus
  const auto offer = [&](std::size_t part, std::uint64_t offset) {
    const double position = static_cast<double>(start + offset - corpus.parts[part].begin);
    const double distance = std::abs(position - target);
    if (position == 0 || distance > best_distance || (best && distance == best_distance)) return;
    best = Cut{part, offset};
    best_distance = distance;
  };
  for (std::size_t i = 0; i < corpus.parts.size(); ++i) {
    const FilePart& part = corpus.parts[i];
    const std::uint64_t length = part.end - part.begin;
    const double low = target - reach - static_cast<double>(start);
    const double high = target + reach - static_cast<double>(start);
    if (high < 0) break;
    if (low <= static_cast<double>(length)) {
      offer(i, part.begin);
      if (corpus.rule == DocumentRule::separators) {
        const auto file = open_file((*corpus.files)[part.file]);
        // One separator may begin before the range and end inside it.
        const auto first = part.begin + static_cast<std::uint64_t>(std::max(0.0, low - 16));
        const auto last =
            std::min<std::uint64_t>(part.end, part.begin + static_cast<std::uint64_t>(high) + 1);
        for (auto found = find_separator(file->text(), first, last); found;
             found = find_separator(file->text(), found->end, last))
          if (found->end < part.end) offer(i, found->end);
      }
    }
    start += length;
  }
  return best;
}

/// A cut inside a document, at byte `target` of the corpus or a little after it.
Cut inner_cut(const Corpus& corpus, double target, double reach) {
  std::uint64_t start = 0;
  std::size_t i = 0;
  for (; i + 1 < corpus.parts.size(); ++i) {
    const std::uint64_t length = corpus.parts[i].end - corpus.parts[i].begin;
    if (target < static_cast<double>(start + length)) break;
    start += length;
  }
  const FilePart& part = corpus.parts[i];
  const auto file = open_file((*corpus.files)[part.file]);
  const std::string_view text = file->text().substr(0, part.end);
  const auto from = std::min(part.end, part.begin + static_cast<std::uint64_t>(target) - start);
  const auto until = std::min(part.end, from + static_cast<std::uint64_t>(reach) + 1);
  // Only a separator that ends the corpus can still be here.
  if (corpus.rule == DocumentRule::separators)
    if (const auto found =
            find_separator(file->text(), from - std::min<std::uint64_t>(from, 16), from + 1);
        found && found->end > from)
      return {i, std::max<std::uint64_t>(found->begin, part.begin)};
  for (std::uint64_t at = from; at + 1 < until; ++at)
    if (text[at] == '\n') return {i, at + 1};
  for (std::uint64_t at = from; at < until; ++at)
    if (is_ascii_space(text[at]) && at > part.begin) return {i, at};
  std::uint64_t at = from;
  while (at < part.end && at < from + 3 && is_continuation(text[at])) ++at;
  return {i, at};
}

}  // namespace

std::size_t safe_cut(std::string_view text, std::size_t enough) {
  // GPT-2's pieces have white space only at their start (" word") or are white space altogether, so
  // each place where something else is followed by white space lies between two pieces.
  for (std::size_t at = std::max<std::size_t>(enough, 1); at < text.size(); ++at)
    if (is_ascii_space(text[at]) && solid_before(text, at)) return at;
  return text.size();
}

FileList list_files(std::span<const fs::path> inputs, std::span<const SourceFile> held_out) {
  Lister lister(held_out);
  for (const fs::path& input : inputs) {
    std::error_code error;
    if (!fs::exists(input, error))
      throw std::runtime_error(fmt::format("there is no file or directory '{}'.", input.string()));
    lister.add(input);
  }
  return std::move(lister.list);
}

void keep_text(FileList& list) {
  std::vector<SourceFile> kept;
  for (SourceFile& file : list.files) {
    std::string reason;
    try {
      const io::MappedFile mapped(file.path);
      const auto bytes = mapped.bytes();
      if (!bytes.empty() && std::memchr(bytes.data(), 0, bytes.size()) != nullptr)
        reason = "it has NUL bytes: it is binary, or text in UTF-16";
    } catch (const std::runtime_error& error) {
      reason = error.what();
    }
    if (reason.empty())
      kept.push_back(std::move(file));
    else
      list.skipped.push_back({std::move(file.path), std::move(reason)});
  }
  list.files = std::move(kept);
}

std::uint64_t Corpus::bytes() const {
  std::uint64_t sum = 0;
  for (const FilePart& part : parts) sum += part.end - part.begin;
  return sum;
}

Corpus whole_corpus(std::vector<SourceFile> files, DocumentRule rule) {
  Corpus corpus{.files = nullptr, .parts = {}, .rule = rule};
  for (std::size_t i = 0; i < files.size(); ++i) corpus.parts.push_back({i, 0, files[i].size});
  corpus.files = std::make_shared<const std::vector<SourceFile>>(std::move(files));
  return corpus;
}

std::pair<Corpus, Corpus> split(const Corpus& corpus, double fraction) {
  const double total = static_cast<double>(corpus.bytes());
  const double target = std::floor(total - fraction * total);
  const double reach = fraction * total / 2;
  // The slack of more than a separator's length keeps a cut from falling inside one.
  auto cut = nearest_beginning(corpus, target, reach + 16);
  if (!cut) cut = inner_cut(corpus, target, reach);
  Corpus first{corpus.files, {}, corpus.rule};
  Corpus second{corpus.files, {}, corpus.rule};
  for (std::size_t i = 0; i < corpus.parts.size(); ++i) {
    const FilePart& part = corpus.parts[i];
    const std::uint64_t middle = i < cut->part   ? part.end
                                 : i > cut->part ? part.begin
                                                 : cut->offset;
    if (part.begin < middle) first.parts.push_back({part.file, part.begin, middle});
    if (middle < part.end) second.parts.push_back({part.file, middle, part.end});
  }
  return {std::move(first), std::move(second)};
}

DocumentStream::DocumentStream(Corpus corpus, std::size_t piece_bytes)
    : corpus_(std::move(corpus)), piece_bytes_(piece_bytes) {}

bool DocumentStream::open_next_part() {
  if (next_part_ == corpus_.parts.size()) return false;
  const FilePart& part = corpus_.parts[next_part_];
  const bool same_file = next_part_ > 0 && corpus_.parts[next_part_ - 1].file == part.file;
  if (!same_file) file_ = open_file((*corpus_.files)[part.file]);
  part_ = file_->text().substr(part.begin, part.end - part.begin);
  ++next_part_;
  return true;
}

std::optional<Piece> DocumentStream::next() {
  while (document_.empty()) {
    if (part_.empty() && !open_next_part()) return std::nullopt;
    starts_document_ = true;
    const std::string_view text = file_->text();
    const auto from = static_cast<std::size_t>(part_.data() - text.data());
    const std::size_t until = from + part_.size();
    std::optional<Separator> separator;
    if (corpus_.rule == DocumentRule::separators) separator = find_separator(text, from, until);
    if (!separator) separator = Separator{until, until};
    document_ = text.substr(from, separator->begin - from);
    part_.remove_prefix(std::min(separator->end, until) - from);
  }
  Piece piece{file_, document_.substr(0, safe_cut(document_, piece_bytes_)), starts_document_};
  document_.remove_prefix(piece.text.size());
  starts_document_ = false;
  return piece;
}

}  // namespace strata::data
