// A corpus: text files on disk, and the documents in them, without ever holding it in memory.
//
//   list_files   files and directories -> the files that may be text (looks at names and sizes only)
//   keep_text    drops the files that are not text (reads them once)
//   split        cuts a corpus into one for training and one for validation
//   DocumentStream   reads a corpus from end to end in pieces of about a megabyte
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/io/files.h"

namespace strata::data {

struct SourceFile {
  std::filesystem::path path;
  std::uint64_t size = 0;     ///< bytes
  std::int64_t modified = 0;  ///< a time stamp; only its changes mean something
};

struct SkippedFile {
  std::filesystem::path path;
  std::string reason;  ///< a clause, for example "it is empty"
};

struct FileList {
  std::vector<SourceFile> files;
  std::vector<SkippedFile> skipped;
};

/// The files that `inputs` name, directories with all that is below them, each directory's entries in
/// the byte order of their names, so that the list is the same everywhere. Skipped with a reason:
/// hidden entries of directories, links to directories, other data sets, empty files, what is neither
/// file nor directory, what was listed already, and the files of `held_out`. Throws
/// std::runtime_error if an input does not exist.
[[nodiscard]] FileList list_files(std::span<const std::filesystem::path> inputs,
                                  std::span<const SourceFile> held_out = {});

/// Reads each file once and moves those that have a NUL byte (no text has) or cannot be read to
/// `skipped`.
void keep_text(FileList& list);

/// What makes a document.
enum class DocumentRule {
  separators,  ///< a file, or a part of one between lines that are exactly <|endoftext|>
  files,       ///< a file; a line <|endoftext|> in it is ordinary text
};

/// A part of a file of a corpus.
struct FilePart {
  std::size_t file = 0;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

struct Corpus {
  std::shared_ptr<const std::vector<SourceFile>> files;
  std::vector<FilePart> parts;
  DocumentRule rule = DocumentRule::separators;

  /// Bytes of all parts, separator lines included.
  [[nodiscard]] std::uint64_t bytes() const;
};

/// The whole of `files`.
[[nodiscard]] Corpus whole_corpus(std::vector<SourceFile> files, DocumentRule rule);

/// Cuts the last `fraction` of the bytes off, for validation. The cut goes to the nearest beginning
/// of a document if there is one within half that amount on either side. Else the cut is inside a
/// document: after the next end of line, or before the next white space, or else between two
/// characters. Either part may come out without text; that is the caller's to refuse.
[[nodiscard]] std::pair<Corpus, Corpus> split(const Corpus& corpus, double fraction);

/// A document or, of a long one, a part that can be tokenized on its own.
struct Piece {
  std::shared_ptr<const io::MappedFile> file;  ///< what `text` points into
  std::string_view text;                       ///< never empty
  bool starts_document = true;
};

/// Reads a corpus from end to end. Documents without a byte are passed over.
class DocumentStream {
 public:
  /// Pieces are cut once they have `piece_bytes`, at the next place where GPT-2's pre-tokenizer cuts
  /// in any case, so that their tokens, side by side, are the document's.
  explicit DocumentStream(Corpus corpus, std::size_t piece_bytes = std::size_t{1} << 20);

  /// The next piece; nothing at the end. Throws std::runtime_error if a file can no longer be read or
  /// has another size than when it was listed.
  [[nodiscard]] std::optional<Piece> next();

 private:
  bool open_next_part();

  Corpus corpus_;
  std::size_t piece_bytes_;
  std::size_t next_part_ = 0;
  std::shared_ptr<const io::MappedFile> file_;
  std::string_view part_;      // what is left of the part, from the current document on
  std::string_view document_;  // what is left of the document
  bool starts_document_ = true;
};

/// Where a text that is longer than `enough` bytes can be cut so that the tokens of the two halves,
/// side by side, are those of the whole; the text's length if there is no such place.
[[nodiscard]] std::size_t safe_cut(std::string_view text, std::size_t enough);

}  // namespace strata::data
