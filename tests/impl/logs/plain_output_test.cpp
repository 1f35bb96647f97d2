// labels: unit property
#include "impl/logs/plain_output.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <sstream>

#include "spec/text/quote.hpp"
#include "spec/text/utf8.hpp"

namespace assay::impl::logs::plain_output_test {
namespace {

std::string printed(const std::vector<std::string>& pieces, bool terminal = false) {
  std::ostringstream to;
  {
    const PlainOutput plain(to, terminal);
    for (const std::string& piece : pieces) to << piece << std::flush;
  }
  return to.str();
}

TEST(PlainOutputImpl, WhatATerminalMightObeyIsSpelledOut) {
  EXPECT_EQ(printed({"a\x1b]0;title\x07"
                     "b\n\tc\x7f\r"}),
            "a\\x1b]0;title\\x07"
            "b\n\tc\\x7f\\r");
  EXPECT_EQ(printed({"\xc2\x9b"
                     "2J \xff"}),
            "\\u009b2J \\xff");
  EXPECT_EQ(printed({"Größe 模型 🙂\n"}), "Größe 模型 🙂\n");
  EXPECT_EQ(printed({std::string("nul\0", 4)}), "nul\\x00");
}

TEST(PlainOutputImpl, OurColoursReachATerminalAlone) {
  const std::string bar = "\r\x1b[K\x1b[1m4.5\x1b[0m \x1b[33mwarning\x1b[0m \x1b[32m==\x1b[0m";
  EXPECT_EQ(printed({bar}, true), bar);
  EXPECT_EQ(printed({"\x1b[1m4.5"}), "\\x1b[1m4.5");
  EXPECT_EQ(printed({"\x1b[2J\x1b[31m\x1b[?25l"}, true), "\\x1b[2J\\x1b[31m\\x1b[?25l");
}

// A model's token may be a part of a character.
TEST(PlainOutputImpl, ACharacterMayComeInPieces) {
  EXPECT_EQ(printed({"a\xe6", "\xa8", "\xa1z"}), "a模z");
  EXPECT_EQ(printed({"\xe6\xa8", "z"}), "\\xe6\\xa8z");
  EXPECT_EQ(printed({"\xf0\x9f"}), "\\xf0\\x9f") << "never whole";
  EXPECT_EQ(printed({"\xc2", "\x9b"}), "\\u009b");
}

RC_GTEST_PROP(PlainOutputImpl, PiecesAreTheSameAsTheWhole, ()) {
  const auto bytes = *rc::gen::container<std::string>(rc::gen::element(
      'a', '\n', '\x1b', '\xc2', '\x9b', '\xe6', '\xa8', '\xa1', '\xf0', '\x9f', '\x99', '\x82'));
  const auto cut = *rc::gen::inRange<std::size_t>(0, bytes.size() + 1);
  const std::string whole = printed({bytes});
  RC_ASSERT(printed({bytes.substr(0, cut), bytes.substr(cut)}) == whole);
  RC_ASSERT(spec::valid_utf8(whole) == whole);
  for (const char c : whole) RC_ASSERT(c == '\n' || static_cast<unsigned char>(c) >= 0x20);
}

}  // namespace
}  // namespace assay::impl::logs::plain_output_test
