// labels: unit property fuzz
#include "spec/text/json.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "spec/text/utf8.hpp"

namespace assay::spec::json_test {
namespace {

using document::Item;
using document::Kind;

/// The error of `use` on the root of `text`, "" when there is none.
template <class Use>
std::string refusal(const std::string& text, Use use) {
  try {
    const auto tree = parse_json(text, "a.json", ExitCode::usage);
    use(tree.root());
  } catch (const UserError& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.what();
  }
  return "";
}

std::string refusal(const std::string& text) {
  return refusal(text, [](Item) {});
}

TEST(JsonSpec, ReadsEveryKindInTheOrderOfTheText) {
  const auto tree =
      parse_json(R"({"z":null,"a":true,"i":-3,"r":2.0,"t":"é\u00e9\n","l":[1,[]],"o":{}})", "x");
  const Item root = tree.root();
  ASSERT_EQ(root.size(), 7u);
  EXPECT_EQ(root.key(0), "z");
  EXPECT_TRUE(root[0].is(Kind::null));
  EXPECT_TRUE(root.at("a").boolean());
  EXPECT_EQ(root.at("i").integer(), -3);
  EXPECT_TRUE(root.at("r").is(Kind::real));
  EXPECT_EQ(root.at("r").real(), 2.0);
  EXPECT_EQ(root.at("i").real(), -3.0);
  EXPECT_EQ(root.at("t").text(), "éé\n");
  EXPECT_EQ(root.at("l")[0].integer(), 1);
  EXPECT_EQ(root.at("l")[1].size(), 0u);
  EXPECT_EQ(root.at("o").size(), 0u);
  EXPECT_FALSE(root.find("Z").has_value());
}

TEST(JsonSpec, IntegersAreExactOver64Bits) {
  const auto tree = parse_json(
      "[9223372036854775807,-9223372036854775808,9223372036854775808,18446744073709551615,"
      "18446744073709551616]",
      "x");
  const Item root = tree.root();
  EXPECT_EQ(root[0].integer(), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(root[1].integer(), std::numeric_limits<std::int64_t>::min());
  EXPECT_THROW(root[2].integer(), UserError);
  EXPECT_EQ(root[3].shown(), "18446744073709551615");
  EXPECT_TRUE(root[4].is(Kind::real));
}

TEST(JsonSpec, ErrorsNameFilePathExpectedAndFound) {
  const std::string text = R"({"gpus":[{"uuid":3}],"n":1.5})";
  EXPECT_EQ(refusal(text, [](Item root) { root.at("gpus")[0].at("uuid").text(); }),
            "a.json: \"gpus[0].uuid\" must be a text, not 3");
  EXPECT_EQ(refusal(text, [](Item root) { root.at("n").integer(); }),
            "a.json: \"n\" must be an integer, not 1.5");
  EXPECT_EQ(refusal(text, [](Item root) { root.at("n").find("x"); }),
            "a.json: \"n\" must be an object, not 1.5");
  EXPECT_EQ(refusal(text, [](Item root) { root.at("n").size(); }), "a.json: \"n\" must be an array, not 1.5");
  EXPECT_EQ(refusal(text, [](Item root) { root.at("gpus")[0].at("name"); }),
            "a.json: \"gpus[0].name\" is missing; add it");
  EXPECT_EQ(refusal(text, [](Item root) { root.boolean(); }),
            "a.json: the whole text must be true or false, not an object");
  EXPECT_EQ(refusal(text,
                    [](Item root) {
                      root.allow_only({"gpu", "n"});
                    }),
            "a.json: unknown key \"gpus\"; did you mean \"gpu\"?");
}

TEST(JsonSpec, SyntaxErrorsHaveTheirPlace) {
  EXPECT_EQ(refusal("{\"a\": tru}").rfind("a.json: not valid JSON at byte 10: ", 0), 0u)
      << refusal("{\"a\": tru}");
  EXPECT_EQ(refusal("{\n\"a\": 1,\n}").rfind("a.json: not valid JSON at byte 11 (line 3, column 1): ", 0), 0u)
      << refusal("{\n\"a\": 1,\n}");
  for (const std::string text : {"", " ", "nan", "[1,]", "01", "'a'", "[1] 2", "/**/1", "\"\xff\"",
                                 "\"\\ud800\"", "{1:2}", "1e999", "\"\n\""})
    EXPECT_NE(refusal(text), "") << text;
  EXPECT_EQ(refusal(std::string("[1]\0[2]", 7)), "a.json: not valid JSON at byte 4: a NUL byte");
  const std::string endless = refusal("{\"a\": \"" + std::string(100'000, 'x'));
  EXPECT_LT(endless.size(), 300u);
}

TEST(JsonSpec, AKeyThatOccursTwiceIsRefusedInSmallAndLargeObjects) {
  EXPECT_EQ(refusal(R"({"a":{"b":1,"b":2}})"),
            "a.json: not valid JSON: key \"b\" occurs twice in one object");
  EXPECT_EQ(refusal(R"([{"b":1},{"b":2}])"), "");
  std::string large = "{\"last\":0";
  for (int i = 0; i < 1000; ++i) large += ",\"" + std::to_string(i) + "\":0";
  EXPECT_EQ(refusal(large + "}"), "");
  EXPECT_NE(refusal(large + ",\"last\":0}").find("\"last\" occurs twice"), std::string::npos);
}

TEST(JsonSpec, NestingEndsAtTheLimit) {
  const auto nested = [](std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_EQ(refusal(nested(json_depth_limit)), "");
  EXPECT_NE(refusal(nested(json_depth_limit + 1)), "");
  EXPECT_NE(refusal(std::string(4'000'000, '[')), "");
}

RC_GTEST_PROP(JsonSpec, NumbersAndTextsReadBackTheSame, ()) {
  const double number = std::bit_cast<double>(*rc::gen::arbitrary<std::uint64_t>());
  const auto integer = *rc::gen::arbitrary<std::int64_t>();
  const auto text = valid_utf8(*rc::gen::arbitrary<std::string>());
  RC_PRE(std::isfinite(number));
  const auto tree = parse_json(
      "[" + json_number(number) + "," + std::to_string(integer) + "," + json_string(text) + "]", "x");
  RC_ASSERT(std::bit_cast<std::uint64_t>(tree.root()[0].real()) == std::bit_cast<std::uint64_t>(number));
  RC_ASSERT(tree.root()[1].integer() == integer);
  RC_ASSERT(tree.root()[2].text() == text);
}

RC_GTEST_PROP(JsonSpec, AnyTextIsReadOrRefusedByName, ()) {
  std::string text = R"({"a":[1,-2,3.5,true,null,{"b":"c\u0041"}],"d":{}})";
  for (int edit = *rc::gen::inRange(0, 4); edit > 0; --edit)
    text[*rc::gen::inRange<std::size_t>(0, text.size())] = *rc::gen::arbitrary<char>();
  try {
    const auto tree = parse_json(text, "a.json");
    RC_ASSERT(!tree.root().shown().empty());
  } catch (const UserError& error) {
    RC_ASSERT(std::string(error.what()).find("a.json: ") == 0);
  }
}

}  // namespace
}  // namespace assay::spec::json_test
