#include "tests/train/xml.h"

#include <cctype>
#include <set>
#include <stdexcept>
#include <vector>

#include "common/train/text.h"

namespace strata::tests {
namespace {

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  void parse() {
    if (!train::is_utf8(text_)) fail("not UTF-8");
    for (const unsigned char c : text_)
      if (c < 0x20 && c != '\n' && c != '\t') fail("a control character");
    constexpr std::string_view doctype = "<!DOCTYPE html>\n";
    if (text_.substr(0, doctype.size()) != doctype) fail("no doctype");
    at_ = doctype.size();
    do {
      if (text_[at_] != '<') {
        characters('<');
      } else if (text_.substr(at_, 2) == "</") {
        close();
      } else {
        open();
      }
    } while (!open_.empty() && at_ < text_.size());
    if (!open_.empty()) fail("<" + open_.back() + "> is never closed");
    if (text_.substr(at_) != "\n") fail("text after the end");
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw std::runtime_error(what + " at byte " + std::to_string(at_) + ": " +
                             std::string(text_.substr(at_, 40)));
  }

  void expect(char c) {
    if (at_ >= text_.size() || text_[at_] != c) fail(std::string("expected ") + c);
    ++at_;
  }

  std::string name() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 ||
                                  text_[at_] == '-' || text_[at_] == ':'))
      ++at_;
    if (begin == at_) fail("no name");
    return std::string(text_.substr(begin, at_ - begin));
  }

  void characters(char end) {
    for (; at_ < text_.size() && text_[at_] != end; ++at_) {
      if (text_[at_] == '<') fail("a bare <");
      if (text_[at_] != '&') continue;
      const std::size_t semicolon = text_.find(';', at_);
      const std::string_view entity = text_.substr(at_ + 1, semicolon - at_ - 1);
      static const std::set<std::string_view> known = {"amp", "lt", "gt", "quot", "nbsp"};
      if (semicolon == std::string_view::npos || (known.count(entity) == 0 && entity[0] != '#'))
        fail("a bare &");
    }
  }

  void open() {
    expect('<');
    const std::string element = name();
    std::set<std::string> attributes;
    while (at_ < text_.size() && text_[at_] == ' ') {
      ++at_;
      const std::string attribute = name();
      if (!attributes.insert(attribute).second) fail("attribute " + attribute + " twice");
      expect('=');
      expect('"');
      const std::size_t begin = at_;
      characters('"');
      if (attribute == "id" && !ids_.insert(std::string(text_.substr(begin, at_ - begin))).second)
        fail("an id twice");
      expect('"');
    }
    if (at_ < text_.size() && text_[at_] == '/') {
      ++at_;
    } else {
      open_.push_back(element);
    }
    expect('>');
  }

  void close() {
    at_ += 2;
    const std::string element = name();
    if (open_.empty() || open_.back() != element) fail("</" + element + "> closes nothing");
    open_.pop_back();
    expect('>');
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::vector<std::string> open_;
  std::set<std::string> ids_;
};

}  // namespace

std::optional<std::string> xml_error(std::string_view text) {
  try {
    Parser(text).parse();
    return std::nullopt;
  } catch (const std::runtime_error& error) {
    return error.what();
  }
}

}  // namespace strata::tests
