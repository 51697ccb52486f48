#include "common/train/text.h"

#include <limits>
#include <string>
#include <utility>

#include "tests/catch.h"

using namespace std::string_literals;
using namespace strata::train;

TEST_CASE("markup in a text is shown, not obeyed") {
  CHECK(escape("<script>alert(\"&'\")</script>") ==
        "&lt;script&gt;alert(&quot;&amp;&#39;&quot;)&lt;/script&gt;");
}

TEST_CASE("control characters become their pictures, line ends and tabs stay") {
  CHECK(escape("a\tb\nc") == "a\tb\nc");
  CHECK(escape("\0\x1b\x7f"s) == "\xe2\x90\x80\xe2\x90\x9b\xe2\x90\xa1");
}

TEST_CASE("characters that turn text around are named") {
  CHECK(escape("\xe2\x80\xae") == "\xe2\x80\xb9U+202E\xe2\x80\xba");
  CHECK(escape("\xef\xbb\xbf") == "\xe2\x80\xb9U+FEFF\xe2\x80\xba");
  CHECK(escape("\xc2\x85") == "\xe2\x80\xb9U+0085\xe2\x80\xba");
}

TEST_CASE("valid UTF-8 passes, everything else becomes the replacement character") {
  const std::string r = "\xef\xbf\xbd";
  const std::pair<std::string, std::string> cases[] = {
      {"gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f"},
      {"\xe2\x82\xac \xf0\x9f\x98\x80 \xf4\x8f\xbf\xbd",
       "\xe2\x82\xac \xf0\x9f\x98\x80 \xf4\x8f\xbf\xbd"},
      {"\x80", r},                          // a continuation alone
      {"\xc0\xaf", r + r},                  // overlong
      {"\xe0\x80\x80", r + r + r},          // overlong
      {"\xed\xa0\x80", r + r + r},          // a surrogate
      {"\xf4\x90\x80\x80", r + r + r + r},  // past U+10FFFF
      {"\xff\xfe", r + r},
      {"\xe2\x82", r},             // cut off at the end
      {"\xf0\x9f\x98<", r + "<"},  // cut off before a character
  };
  for (const auto& [bytes, expected] : cases) {
    CHECK(replace_invalid_utf8(bytes) == expected);
    CHECK(is_utf8(bytes) == (bytes == expected));
    CHECK(is_utf8(escape(bytes)));
  }
}

TEST_CASE("every two-byte string comes out as safe text") {
  for (int a = 0; a < 256; ++a) {
    for (int b = 0; b < 256; ++b) {
      const char bytes[] = {static_cast<char>(a), static_cast<char>(b)};
      const std::string out = escape({bytes, 2});
      bool safe = is_utf8(out);
      for (const char c : out) safe = safe && c != '<' && c != '>' && c != '"' && c != '\0';
      if (!safe) FAIL("bytes " << a << " " << b);
    }
  }
}

TEST_CASE("numbers read as people write them") {
  CHECK(grouped(0) == "0");
  CHECK(grouped(999) == "999");
  CHECK(grouped(1234567) == "1,234,567");
  CHECK(grouped(-1234) == "-1,234");
  CHECK(grouped(std::numeric_limits<double>::quiet_NaN()) == "unknown");
  CHECK(fixed(1.23456, 4) == "1.2346");
  CHECK(fixed(3e30, 2) == "3.00e+30");
  CHECK(short_count(1500) == "1.5k");
  CHECK(short_count(2e6) == "2M");
  CHECK(short_count(250) == "250");
  CHECK(bytes_text(512) == "512 B");
  CHECK(bytes_text(1536) == "1.50 KiB");
  CHECK(bytes_text(48.5 * 1048576) == "48.5 MiB");
  CHECK(duration(0.25) == "250 ms");
  CHECK(duration(12.34) == "12.3 s");
  CHECK(duration(75.2) == "1 min 15 s");
  CHECK(duration(3599.9) == "1 h 0 min");
  CHECK(duration(-1) == "unknown");
  CHECK(utc(1796048700) == "2026-11-30 14:25 UTC");
  CHECK(utc(-5) == "unknown");
}
