// labels: unit property
// JSON in which chat tools, word processors and pages put other characters in the place of printed ones.
#include "spec/audit/readers/plain_json.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <sstream>
#include <string>
#include <vector>

#include "spec/error.hpp"
#include "tests/support/read_text.hpp"
#include "tests/support/simulated/run.hpp"

namespace assay::spec::audit::plain_json_test {
namespace {

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size())
    text.replace(at, what.size(), by);
  return text;
}

/// As a word processor does: every second quote closes.
std::string typographic(const std::string& text) {
  std::string out;
  bool opens = true;
  for (const char c : text)
    if (c == '"') {
      out += opens ? "\xe2\x80\x9c" : "\xe2\x80\x9d";
      opens = !opens;
    } else {
      out += c;
    }
  return out;
}

template <class Numbers>
std::vector<double> values(const Numbers& numbers) {
  std::vector<double> out;
  out.reserve(numbers.size());
  for (const auto& number : numbers)
    out.push_back(!number ? -1e300 : std::isnan(number->value) ? -1e301 : number->value);
  return out;
}

TEST(PlainJsonSpec, QuotesBlanksAndSignsAreThoseOfJson) {
  EXPECT_EQ(PlainJson::of("{\xe2\x80\x9c"
                          "a\xe2\x80\x9d:\xc2\xa0\xe2\x88\x92"
                          "1}"),
            "{\"a\": -1}");
  EXPECT_EQ(PlainJson::of("{&quot;a&quot;: 1}"), "{\"a\": 1}");
  EXPECT_EQ(PlainJson::of("\xef\xbb\xbf{\"a\"\xe2\x80\xaf: \"H100\xc2\xa0"
                          "SXM\"}"),
            "{\"a\" : \"H100 SXM\"}");
}

/// A text ends with a quote of the kind that it began with.
TEST(PlainJsonSpec, QuotesOfOtherKindsStayInTheText) {
  for (const std::string text :
       {"{\"a\": \"so \xe2\x80\x9cit\xe2\x80\x9d is\"}", "{\"a\": \"&quot;so&quot;\"}",
        "{\"a\": \"3\\\" of \\\\\"}", "{\"a\": \"NVIDIA \xe2\x86\x92 \xff\"}"})
    EXPECT_EQ(PlainJson::of(text), text);
  EXPECT_EQ(PlainJson::of("{\xe2\x80\x9c"
                          "a\xe2\x80\x9d: \xe2\x80\x9c"
                          "a 3\" disk, \\\xe2\x80\x9cnew\\\xe2\x80\x9d\xe2\x80\x9d}"),
            "{\"a\": \"a 3\\\" disk, \\\"new\\\"\"}");
  // What was torn off in a text is not looked for in the next line.
  EXPECT_EQ(PlainJson::of("{\"a\n{\xe2\x80\x9c"
                          "b\xe2\x80\x9d: 1}"),
            "{\"a\n{\"b\": 1}");
}

/// Wherever a block of the file ends.
TEST(PlainJsonSpec, CharactersThatBeginInOneBlockEndInTheNext) {
  for (std::size_t before = Blocks::block - 6; before < Blocks::block + 2; ++before) {
    const std::string text = "{\xe2\x80\x9c" + std::string(before, 'a') + "\xe2\x80\x9d: &quot;b&quot;}";
    std::istringstream in(text);
    Blocks blocks(in, "a.json");
    ASSERT_TRUE(blocks.more());
    PlainJson plain(blocks);
    const std::string got{std::istreambuf_iterator<char>(&plain), {}};
    EXPECT_EQ(got.size(), before + 9) << before;
    EXPECT_EQ(got.substr(got.size() - 8), "a\": \"b\"}") << before;
  }
}

RC_GTEST_PROP(PlainJsonSpec, ADocumentReadsAsTheOneThatWasWritten, ()) {
  const std::vector<tests::LogFormat> formats{tests::LogFormat::llm_tii_json, tests::LogFormat::hugging_face,
                                              tests::LogFormat::llmq_json};
  const std::string text =
      render(tests::simulate(*rc::gen::elementOf(formats), *rc::gen::inRange<std::uint64_t>(0, 1000)));
  const RunRecord want = tests::read_text(text);
  RC_ASSERT(!want.steps.empty());
  for (const std::string& odd :
       {replaced(text, " ", "\xc2\xa0"), typographic(text), replaced(text, "\"", "&quot;"),
        typographic(replaced(replaced(text, "-", "\xe2\x88\x92"), " ", "\xe2\x80\xaf"))}) {
    const RunRecord got = tests::read_text(odd);
    RC_ASSERT(got.format.name == want.format.name);
    RC_ASSERT(got.steps.size() == want.steps.size());
    for (std::size_t i = 0; i < want.steps.size(); ++i)
      RC_ASSERT(values(got.steps[i].fields) == values(want.steps[i].fields));
    RC_ASSERT(values(got.settings) == values(want.settings));
    RC_ASSERT(got.gpu == want.gpu && got.model == want.model && got.dtype == want.dtype);
  }
}

/// What nothing stands for is named where it stands, and not put down to a file that is cut.
TEST(PlainJsonSpec, ACharacterThatJsonDoesNotKnowIsNamed) {
  try {
    tests::read_text("{\"run_name\": \"a\",\n\"config\": \xe2\x86\x92 {}}\n");
    FAIL();
  } catch (const UserError& error) {
    const std::string what = error.what();
    EXPECT_NE(what.find("line 2"), std::string::npos) << what;
    EXPECT_NE(what.find("U+2192"), std::string::npos) << what;
    EXPECT_EQ(what.find("stopped before"), std::string::npos) << what;
  }
}

}  // namespace
}  // namespace assay::spec::audit::plain_json_test
