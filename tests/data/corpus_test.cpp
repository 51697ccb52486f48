#include "common/data/corpus.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <random>

#include "common/data/tokenizer.h"
#include "tests/catch.h"
#include "tests/temporary_directory.h"

namespace {

namespace fs = std::filesystem;
using namespace std::string_literals;
using strata::data::Corpus;
using strata::data::DocumentRule;
using strata::data::DocumentStream;
using strata::data::FileList;
using strata::data::keep_text;
using strata::data::list_files;
using strata::data::safe_cut;
using strata::data::split;
using strata::data::whole_corpus;
using strata::io::write_file;
using strata::tests::contains;
using strata::tests::TemporaryDirectory;

Corpus corpus_of(const TemporaryDirectory& directory, const std::vector<std::string>& texts,
                 DocumentRule rule = DocumentRule::separators) {
  std::vector<fs::path> paths;
  for (const std::string& text : texts) {
    paths.push_back(directory / std::to_string(paths.size()));
    std::ofstream(paths.back(), std::ios::binary) << text;  // write_file syncs, which takes long
  }
  return whole_corpus(list_files(paths).files, rule);
}

std::vector<std::string> documents(const Corpus& corpus, std::size_t piece_bytes = 1 << 20) {
  std::vector<std::string> all;
  DocumentStream stream(corpus, piece_bytes);
  while (const auto piece = stream.next()) {
    if (piece->starts_document)
      all.emplace_back(piece->text);
    else
      all.back() += piece->text;
  }
  return all;
}

using Texts = std::vector<std::string>;

// -------------------------------------------------------------------------------- documents

TEST_CASE("files and lines <|endoftext|> separate documents, and empty ones are passed over") {
  const TemporaryDirectory directory;
  const Corpus corpus = corpus_of(
      directory, {"a\nb\n<|endoftext|>\nc\n", "<|endoftext|>\nd<|endoftext|>", "e\n<|endoftext|>",
                  "f\r\n<|endoftext|>\r\ng\n<|endoftext|>\n<|endoftext|>\n", "<|endoftext|>\n",
                  "h\n <|endoftext|>\n<|endoftext|> \n<|endoftext|><|endoftext|>\n"});
  CHECK(documents(corpus) ==
        Texts{"a\nb\n", "c\n", "d<|endoftext|>", "e\n", "f\r\n", "g\n",
              "h\n <|endoftext|>\n<|endoftext|> \n<|endoftext|><|endoftext|>\n"});
}

TEST_CASE("where only files are documents a line <|endoftext|> is text") {
  const TemporaryDirectory directory;
  CHECK(documents(corpus_of(directory, {"a\n<|endoftext|>\nb", "c"}, DocumentRule::files)) ==
        Texts{"a\n<|endoftext|>\nb", "c"});
}

TEST_CASE("a file that changes while it is read is refused by name") {
  const TemporaryDirectory directory;
  DocumentStream stream(corpus_of(directory, {"abc", "def"}));
  REQUIRE(stream.next()->text == "abc");
  write_file(directory / "1", "defg");
  CHECK_THROWS_WITH(stream.next(), contains("1' changed while it was read: it had 3 bytes, now 4"));
}

// ------------------------------------------------------------------------------------ files

std::string reason_for(const FileList& list, const std::string& name) {
  for (const auto& file : list.skipped)
    if (file.path.filename() == name) return file.reason;
  return "not skipped";
}

TEST_CASE("a directory is read with all that is below it, in the order of names") {
  const TemporaryDirectory directory;
  for (const char* name : {"b", "a/z", "a/b/c", "B", "a0"}) {
    fs::create_directories((directory / name).parent_path());
    write_file(directory / name, "text");
  }
  std::vector<std::string> names;
  for (const auto& file : list_files(std::vector{directory.path()}).files)
    names.push_back(fs::relative(file.path, directory.path()).string());
  CHECK(names == Texts{"B", "a/b/c", "a/z", "a0", "b"});
}

TEST_CASE("what is no text is skipped with its reason") {
  const TemporaryDirectory directory;
  write_file(directory / "text", "text\n");
  write_file(directory / "empty", "");
  write_file(directory / "binary", "GIF89a\0\1"s);
  write_file(directory / ".hidden", "text");
  write_file(directory / "unreadable", "text");
  ::chmod((directory / "unreadable").c_str(), 0);
  fs::create_directories(directory / ".git");
  fs::create_directories(directory / "set");
  write_file(directory / "set" / "dataset.json", "{}");
  fs::create_directory_symlink(directory.path(), directory / "loop");
  REQUIRE(::mkfifo((directory / "pipe").c_str(), 0600) == 0);
  FileList list = list_files(std::vector{directory.path(), directory / "text"});
  keep_text(list);
  CHECK(reason_for(list, "empty") == "it is empty");
  CHECK(reason_for(list, "binary") == "it has NUL bytes: it is binary, or text in UTF-16");
  CHECK(reason_for(list, ".hidden") == "it is hidden");
  CHECK(reason_for(list, ".git") == "it is hidden");
  CHECK(reason_for(list, "set") == "it is a data set, not text");
  CHECK(reason_for(list, "loop") == "it is a link to a directory");
  CHECK(reason_for(list, "pipe") == "it is neither a file nor a directory");
  CHECK(reason_for(list, "text") == "it was read already");
  if (::geteuid() != 0) CHECK_THAT(reason_for(list, "unreadable"), contains("Permission denied"));
  const std::size_t readable = ::geteuid() == 0 ? 2 : 1;
  CHECK(list.files.size() == readable);
}

TEST_CASE("a hidden file that is named is read, a missing one is an error") {
  const TemporaryDirectory directory;
  write_file(directory / ".hidden", "text");
  CHECK(list_files(std::vector{directory / ".hidden"}).files.size() == 1);
  CHECK_THROWS_WITH(list_files(std::vector{directory / "absent"}),
                    contains("there is no file or directory") && contains("absent"));
}

TEST_CASE("the validation text is not trained on as well") {
  const TemporaryDirectory directory;
  write_file(directory / "train", "text");
  write_file(directory / "val", "text");
  const auto held_out = list_files(std::vector{directory / "val"}).files;
  const FileList list = list_files(std::vector{directory.path()}, held_out);
  REQUIRE(list.files.size() == 1);
  CHECK(list.files[0].path.filename() == "train");
  CHECK(reason_for(list, "val") == "it is held out for validation");
}

// ------------------------------------------------------------------------------------ split

std::pair<Texts, Texts> split_documents(const Corpus& corpus, double fraction) {
  const auto [train, validation] = split(corpus, fraction);
  return {documents(train), documents(validation)};
}

TEST_CASE("the split is between documents where one ends near the wanted place") {
  const TemporaryDirectory directory;
  // Ten documents of ten bytes; lines of 14 bytes between them.
  std::string text;
  Texts all;
  for (char c = '0'; c <= '9'; ++c) {
    all.push_back(std::string(9, c) + "\n");
    text += (text.empty() ? "" : "<|endoftext|>\n") + all.back();
  }
  const auto [train, validation] = split_documents(corpus_of(directory, {text}), 0.15);
  CHECK(train == Texts(all.begin(), all.begin() + 8));
  CHECK(validation == Texts(all.begin() + 8, all.end()));
  const auto [first, last] = split_documents(corpus_of(directory, all), 0.1);
  CHECK(first == Texts(all.begin(), all.begin() + 9));
  CHECK(last == Texts{all.back()});
}

TEST_CASE("a single document is split after a line, before white space, or between characters") {
  const TemporaryDirectory directory;
  const auto of = [&](const std::string& text, double fraction) {
    return split_documents(corpus_of(directory, {text}), fraction);
  };
  using Parts = std::pair<Texts, Texts>;
  CHECK(of("aaaa bbbb cccc d\neee fff", 0.5) == Parts{{"aaaa bbbb cccc d\n"}, {"eee fff"}});
  CHECK(of("aaaaaaaaaa bbb ccc\n", 0.5) == Parts{{"aaaaaaaaaa"}, {" bbb ccc\n"}});
  CHECK(of("ab", 0.5) == Parts{{"a"}, {"b"}});
  CHECK(of("\xc3\xa4\xc3\xb6\xc3\xbc", 0.5) == Parts{{"\xc3\xa4\xc3\xb6"}, {"\xc3\xbc"}});
  CHECK(of("\xf0\x9f\x98\x80\xf0\x9f\x98\x80", 0.3) ==
        Parts{{"\xf0\x9f\x98\x80\xf0\x9f\x98\x80"}, {}});  // nothing is left: refused by prepare
}

TEST_CASE("a separator at the end of the corpus is no part of a document") {
  const TemporaryDirectory directory;
  for (const char* end : {"\n<|endoftext|>", "\n<|endoftext|>\n", "\n<|endoftext|>\r\n"})
    for (const double fraction : {0.05, 0.1, 0.3, 0.5}) {
      const std::string text = "some words and more of them" + std::string(end);
      const auto [train, validation] = split_documents(corpus_of(directory, {text}), fraction);
      std::string all;
      for (const auto& part : {train, validation})
        for (const auto& document : part) all += document;
      CHECK(all == "some words and more of them\n");
    }
}

TEST_CASE("one large and one small document are split inside the large one") {
  const TemporaryDirectory directory;
  std::string large;
  for (int line = 0; line < 1000; ++line) large += "a line of some words\n";
  const auto [train, validation] = split_documents(corpus_of(directory, {"small\n", large}), 0.1);
  REQUIRE(train.size() == 2);
  REQUIRE(validation.size() == 1);
  CHECK(train[1] + validation[0] == large);
  CHECK(validation[0].starts_with("a line"));
  CHECK(validation[0].size() > 1900);
  CHECK(validation[0].size() < 2110);
}

TEST_CASE("both parts of any split are the whole, and no character is cut") {
  const TemporaryDirectory directory;
  std::mt19937_64 random(3);
  const Texts words{"a", " ", "\n", "\xc3\xa4", "\xe4\xb8\xad", "word", "\n<|endoftext|>\n", "x\n"};
  for (int round = 0; round < 300; ++round) {
    Texts files(1 + random() % 3);
    std::string joined;
    for (std::string& file : files) {
      for (auto n = 1 + random() % 40; n > 0; --n) file += words[random() % words.size()];
      file += "end\n";
      joined += file;
    }
    const double fraction = 0.01 + static_cast<double>(random() % 50) / 100;
    const auto [train, validation] = split(corpus_of(directory, files), fraction);
    CHECK(train.bytes() + validation.bytes() == joined.size());
    const Texts whole = documents(whole_corpus(*train.files, train.rule));
    std::string all, parts;
    for (const std::string& text : whole) all += text;
    for (const Corpus& part : {train, validation})
      for (const std::string& text : documents(part)) {
        parts += text;
        CHECK((static_cast<unsigned char>(text[0]) & 0xc0) != 0x80);
      }
    CHECK(parts == all);
  }
}

// ----------------------------------------------------------------------------------- pieces

/// Text of many kinds, with white space of all sorts between and inside.
std::string random_text(std::mt19937_64& random, std::size_t words) {
  static const Texts parts{"word",
                           "it's",
                           "don't",
                           "12",
                           "3.5",
                           "!",
                           "...",
                           " ",
                           "  ",
                           "\n",
                           "\n\n",
                           "\t",
                           "\r\n",
                           "\xc2\xa0",
                           "\xc2\x85",
                           "\xe3\x80\x80",
                           "\xe2\x80\x89",
                           "\xe4\xb8\xad\xe6\x96\x87",
                           "\xd1\x81\xd0\xbb",
                           "\xc3\xa9",
                           "\xf0\x9f\x98\x80",
                           "\xff",
                           "\xe4\xb8",
                           "\x01",
                           "\x7f",
                           "\x1c",
                           "<|endoftext|>",
                           "'",
                           "s "};
  std::string text;
  for (; words > 0; --words) text += parts[random() % parts.size()];
  return text;
}

/// The ids of a text that is encoded in pieces cut by `cut`.
template <typename Cut>
std::vector<std::uint32_t> encode_in_pieces(const strata::data::Tokenizer& tokenizer,
                                            std::string_view text, const Cut& cut) {
  std::vector<std::uint32_t> ids;
  while (!text.empty()) {
    const std::size_t length = cut(text);
    const auto piece = tokenizer.encode(text.substr(0, length));
    ids.insert(ids.end(), piece.begin(), piece.end());
    text.remove_prefix(length);
  }
  return ids;
}

TEST_CASE("a document encoded in pieces has the ids of the whole document") {
  std::mt19937_64 random(5);
  const std::string training = random_text(random, 20'000);
  const auto tokenizer = strata::data::Tokenizer::train(std::vector<std::string_view>{training},
                                                        {.vocab_size = 600, .min_frequency = 2});
  std::size_t pieces = 0;
  std::size_t naive_failures = 0;
  for (int round = 0; round < 300; ++round) {
    const std::string text = random_text(random, 60);
    const auto whole = tokenizer.encode(text);
    const std::size_t enough = random() % 20;
    const auto safe = [&](std::string_view rest) {
      ++pieces;
      return safe_cut(rest, enough);
    };
    CHECK(encode_in_pieces(tokenizer, text, safe) == whole);
    // A careless cut must fail here, or this test could not find one.
    const auto naive = [](std::string_view rest) { return std::min<std::size_t>(rest.size(), 9); };
    naive_failures += encode_in_pieces(tokenizer, text, naive) != whole;
  }
  CHECK(pieces > 1000);
  CHECK(naive_failures > 200);
}

TEST_CASE("pieces are about as long as asked for, and together they are the documents") {
  const TemporaryDirectory directory;
  std::mt19937_64 random(6);
  const std::string text = random_text(random, 5000);
  const Corpus corpus = corpus_of(directory, {text, "short"}, DocumentRule::files);
  CHECK(documents(corpus, 100) == Texts{text, "short"});
  DocumentStream stream(corpus, 100);
  std::size_t longest = 0;
  while (const auto piece = stream.next()) longest = std::max(longest, piece->text.size());
  CHECK(longest >= 100);
  CHECK(longest < 400);
}

TEST_CASE("a text without white space is one piece") {
  CHECK(safe_cut(std::string(1000, 'x'), 10) == 1000);
  CHECK(safe_cut("", 10) == 0);
  CHECK(safe_cut("ab cd", 0) == 2);
}

}  // namespace
