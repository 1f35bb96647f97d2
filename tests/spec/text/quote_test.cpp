// labels: unit
#include "spec/text/quote.hpp"

#include <gtest/gtest.h>

namespace assay::spec::quote_test {
namespace {

TEST(Quote, KeepsAnErrorOnOneLine) { EXPECT_EQ(quote("a\nb\x1b[31m\x7f"), "\"a?b?[31m?\""); }

TEST(Quote, KeepsAnErrorReadable) {
  EXPECT_EQ(quote("\x7f"
                  "ELF\xff\xc3"),
            "\"?ELF??\"");  // no UTF-8
  EXPECT_EQ(quote("\xc2\x9b"
                  "2J"),
            "\"?2J\"");  // a terminal's control character
  EXPECT_EQ(quote("Größe"), "\"Größe\"");
}

TEST(Quote, CutsLongText) {
  std::string cut = "\"" + std::string(79, 'x'), whole = std::string(79, 'x');
  whole += "ü";
  EXPECT_EQ(quote(whole), cut += "...\"");  // no half a character

  EXPECT_EQ(quote(std::string(80, 'x')), "\"" + std::string(80, 'x') + "\"");
  EXPECT_EQ(quote(std::string(81, 'x')), "\"" + std::string(80, 'x') + "...\"");
}

TEST(Quote, AWordOfAShellIsOneWordOfIt) {
  EXPECT_EQ(shell_word("runs/tiny-llama-2"), "runs/tiny-llama-2");
  EXPECT_EQ(shell_word(""), "''");
  EXPECT_EQ(shell_word("my runs/a"), "'my runs/a'");
  EXPECT_EQ(shell_word("it's; rm -r $HOME"), "'it'\\''s; rm -r $HOME'");
  EXPECT_EQ(shell_word("~"), "'~'");
  EXPECT_EQ(shell_word("a\nb\xff"), "'a?b?'");
}

}  // namespace
}  // namespace assay::spec::quote_test
