// labels: unit property
// Characters that copies through chat tools, word processors and pages put in the place of printed ones.
#include "spec/audit/readers/odd_characters.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <vector>

#include "spec/audit/invariants.hpp"
#include "tests/support/read_text.hpp"
#include "tests/support/simulated/run.hpp"

namespace assay::spec::audit::odd_characters_test {
namespace {

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size())
    text.replace(at, what.size(), by);
  return text;
}

TEST(OddCharactersSpec, EachHasItsPlainOne) {
  EXPECT_EQ(with_plain_characters("a\xc2\xa0"
                                  "b\xe2\x80\xaf"
                                  "c\xe3\x80\x80"
                                  "d"),
            "a b c d");
  EXPECT_EQ(with_plain_characters("1\xe2\x80\x8b"
                                  "2\xef\xbb\xbf"
                                  "3\xc2\xad"),
            "123");
  EXPECT_EQ(with_plain_characters("\xe2\x80\x98x\xe2\x80\x99 \xe2\x80\x9cy\xe2\x80\x9d"), "'x' \"y\"");
  EXPECT_EQ(with_plain_characters("1e\xe2\x88\x92"
                                  "05 \xe2\x80\x93"),
            "1e-05 -");
  EXPECT_EQ(with_plain_characters("\xef\xbc\x93\xef\xbc\x8e\xef\xbc\x95\xef\xbd\x9c"), "3.5|");
  EXPECT_EQ(with_plain_characters("{&#x27;loss&#39;: &quot;&lt;&amp;lt;"), "{'loss': \"<&lt;");
}

TEST(OddCharactersSpec, AllElseIsKept) {
  for (const std::string text :
       {"NVIDIA H200 \xe2\x86\x92 989.0", "\xe2\x80\xa6", "\xc3\xa4\xf0\x9f\x98\x80", "\xff\xe2\x80",
        "a & b &x;", "{\"text\": \"\xe2\x80\x9cso\xe2\x80\x9d\"}", "'it\xe2\x80\x99s'",
        "{\"text\": \"so \xef\xbc\x82it\xef\xbc\x82 \xef\xbc\xbc is &quot;so&quot; &#34;\"}",
        "'&#x27;\xef\xbc\x87'"})
    EXPECT_EQ(with_plain_characters(text), text);
  EXPECT_FALSE(may_be_odd("parallel, distributed & accumulation = 256"));
  EXPECT_TRUE(may_be_odd("123456789&quot;"));
  EXPECT_FALSE(may_be_odd("12345678\xa0"));
  EXPECT_TRUE(
      may_be_odd("\xc2\xa0"
                 "12345678"));
}

RC_GTEST_PROP(OddCharactersSpec, TextIsOddWhereverItWouldBePutInAnotherWay, ()) {
  const std::vector<std::string> pieces{"\xc2\xa0",     "\xe2\x80\xaf",
                                        "\xe3\x80\x80", "\xe2\x80\x8b",
                                        "\xef\xbb\xbf", "\xc2\xad",
                                        "\xe2\x80\x99", "\xe2\x80\x9c",
                                        "\xe2\x88\x92", "\xef\xbc\x93",
                                        "\xe2\x81\x9f", "&quot;",
                                        "&#39;",        "&amp;",
                                        "\xe2\x86\x92", "\xe2\x94\x80",
                                        "\xc3\xa4",     "\xf0\x9f\x98\x80",
                                        "\xe2\x80",     "\xe2",
                                        "\xa0",         "&",
                                        "\xe2\x80\xa6", "\xc2"};
  std::string text(*rc::gen::inRange<std::size_t>(0, 200), 'x');
  const std::size_t before = text.size();
  text += *rc::gen::elementOf(pieces);
  text += *rc::gen::element<std::string>("", "y", "\xa0", "\x80\x8b");
  text.append(*rc::gen::inRange<std::size_t>(0, 200), 'z');
  RC_ASSERT(may_be_odd(text) == (with_plain_characters(text) != text));
  RC_ASSERT(!may_be_odd(text.substr(0, before)));
}

TEST(OddCharactersSpec, LogsWithThemAreReadAsTheyWerePrinted) {
  using enum tests::LogFormat;
  for (const tests::LogFormat format :
       {torchtitan, megatron, nanogpt, llmc, kempnerforge, nanotron, build_nanogpt, hugging_face_console}) {
    const std::string log = render(tests::simulate(format, 5));
    const RunRecord printed = tests::read_text(log);
    for (const std::string& text :
         {replaced(log, " ", "\xc2\xa0"), replaced(log, "'", "\xe2\x80\x99"), replaced(log, "'", "&#x27;"),
          replaced(log, "-", "\xe2\x88\x92"), replaced(log, ":", "\xef\xbc\x9a"),
          "    " + replaced(log.substr(0, log.size() - 1), "\n", "\n    ") + "\n"}) {
      const std::string what = std::string(tests::to_string(format)) + "\n" + text.substr(0, 400);
      const RunRecord run = tests::read_text(text);
      ASSERT_EQ(run.steps.size(), printed.steps.size()) << what;
      for (std::size_t i = 0; i < run.steps.size(); ++i)
        for (std::size_t f = 0; f < field_count; ++f)
          EXPECT_EQ(run.steps[i].fields[f].has_value(), printed.steps[i].fields[f].has_value()) << f << what;
      for (std::size_t s = 0; s < setting_count; ++s)
        EXPECT_EQ(run.settings[s].has_value(), printed.settings[s].has_value()) << s << what;
      EXPECT_EQ(run.unread_lines, printed.unread_lines) << what;
      EXPECT_EQ(contradictions(run), contradictions(printed)) << what;
    }
  }
}

}  // namespace
}  // namespace assay::spec::audit::odd_characters_test
