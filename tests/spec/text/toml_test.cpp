// labels: unit
#include "spec/text/toml.hpp"

#include <gtest/gtest.h>

namespace assay::spec::toml_test {
namespace {

using document::Item;
using document::Kind;

const std::string example =
    "z = 1\n[b.c]\nreal = 2\ntext = 'x'\n\n[a]\nlist = [1, 'two']\nday = 1979-05-27\nbig = inf\n";

TEST(TomlSpec, ReadsEveryKindInTheOrderOfTheText) {
  const auto tree = parse_toml(example, "a.toml");
  const Item root = tree.root();
  ASSERT_EQ(root.size(), 3u);
  EXPECT_EQ(root.key(0), "z");
  EXPECT_EQ(root.key(1), "b");
  EXPECT_EQ(root.key(2), "a");
  EXPECT_EQ(root[0].integer(), 1);
  EXPECT_EQ(root.at("b").at("c").at("real").real(), 2.0);
  EXPECT_EQ(root.at("b").at("c").at("text").text(), "x");
  EXPECT_EQ(root.at("a").at("list")[1].text(), "two");
  EXPECT_TRUE(root.at("a").at("day").is(Kind::date));
  EXPECT_TRUE(root.at("a").at("big").is(Kind::real));
}

TEST(TomlSpec, AFaultIsOneLineWhateverStandsInTheText) {
  document::Node root;
  for (const char* text : {"a = tru\nb = 1\n", "a = \"x\ny\"", "a = 1\x01\n", "a\x0b = 1"}) {
    const auto fault = read_toml(text, root);
    ASSERT_TRUE(fault.has_value());
    EXPECT_EQ(fault->why.find('\n'), std::string::npos) << text;
  }
}

TEST(TomlSpec, OnlyQuotesAndCommentsHoldOtherLettersThanAscii) {
  document::Node root;
  // What fuzzing found: toml++ runs into code there that it holds for unreachable (UBSan).
  for (const char* text : {"\xcf\xa0m", "ü = 1\n", "a = 1 ü\n", "a = 'x'\n\nb = \"\"\"c\"\"\"\"\nü = 1",
                           "a = 2x\"\xd2\x8a\"\"", "a = 8_+)\xc7\xbc\n"})
    EXPECT_TRUE(read_toml(text, root).has_value()) << text;
  const auto fault = read_toml("a = 1\nb = ü\n", root);
  ASSERT_TRUE(fault.has_value());
  EXPECT_EQ(fault->position.line, 2u);
  EXPECT_EQ(fault->position.column, 5u);
  for (const char* text :
       {"a = \"ü\" # é\nb = 'ä'\n", "\xef\xbb\xbf# x\na = 1\n", "# ü", "\"ü\" = 1\n",
        "a = \"\"\"\nü\\\"\"\"\" # ö\n", "a = '''ü\\'''\nb = '''x'''''\nc = 'ü'\n", "a = \"\\\"ü\"\n",
        "a = ''\nb = \"\" # ü\n", "a = \"\"\"x \\\n  y ü\"\"\"\n", "a = \"\"\"b\\\n  ü\"\"\"\n"}) {
    const auto none = read_toml(text, root);
    EXPECT_FALSE(none.has_value()) << text << ": " << (none ? none->why : "");
  }
}

TEST(TomlSpec, KeysAndValuesHaveTheirPlaces) {
  const auto tree = parse_toml(example, "a.toml");
  EXPECT_EQ(tree.root().where_key(0), "a.toml:1:1");
  EXPECT_EQ(tree.root()[0].where(), "a.toml:1:5");
  EXPECT_EQ(tree.root().at("a").at("list")[1].where(), "a.toml:7:12");
}

TEST(TomlSpec, ErrorsNamePlacePathExpectedAndFound) {
  const auto tree = parse_toml(example, "a.toml");
  const auto refusal = [](auto use) {
    try {
      use();
    } catch (const UserError& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      return std::string(error.what());
    }
    return std::string();
  };
  const Item c = tree.root().at("b").at("c");
  EXPECT_EQ(refusal([&] { c.at("real").text(); }), "a.toml:3:8: \"b.c.real\" must be a text, not 2");
  EXPECT_EQ(refusal([&] { tree.root().at("a").at("list").integer(); }),
            "a.toml:7:8: \"a.list\" must be an integer, not an array");
  EXPECT_EQ(refusal([&] { c.at("real").find("x"); }), "a.toml:3:8: \"b.c.real\" must be a table, not 2");
  EXPECT_EQ(refusal([&] {
              c.allow_only({"real", "texts"});
            }),
            "a.toml:4:1: unknown key \"b.c.text\"; did you mean \"b.c.texts\"?");
  EXPECT_EQ(
      refusal([] { parse_toml("a = 1\nb = = 2\n", "b.toml"); }).rfind("b.toml:2:5: not valid TOML: ", 0), 0u);
  EXPECT_NE(refusal([] { parse_toml("a = 1\na = 2\n", "b.toml"); }), "");
  for (const char* amount : {"64k", "1.5M", "64KiB", "1_000k"}) {
    const std::string hint = std::string("; a number with a letter is a text in TOML: \"") + amount + "\"";
    for (const std::string& text :
         {"a = 1\nb = " + std::string(amount) + " # c", "b = [1," + std::string(amount) + "]"})
      EXPECT_TRUE(refusal([&] { parse_toml(text, "b.toml"); }).ends_with(hint))
          << refusal([&] { parse_toml(text, "b.toml"); });
  }
  for (const char* text : {"b = 64-", "b = 1e", "b = k64", "b =", "b = 64 k"})
    EXPECT_EQ(refusal([&] { parse_toml(text, "b.toml"); }).find("a number with"), std::string::npos) << text;
}

}  // namespace
}  // namespace assay::spec::toml_test
