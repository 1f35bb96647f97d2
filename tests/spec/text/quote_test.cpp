// labels: unit
#include "spec/text/quote.hpp"

#include <gtest/gtest.h>

namespace assay::spec::quote_test {
namespace {

TEST(Quote, KeepsAnErrorOnOneLine) {
  EXPECT_EQ(quote("a\nb\x1b[31m\x7f"), R"("a\nb\x1b[31m\x7f")");
  EXPECT_EQ(printable(std::string_view("\r\t\0\b", 4)), R"(\r\t\x00\x08)");
}

TEST(Quote, ShowsWhatNobodySees) {
  // A right-to-left override turns what follows: "exe.txt" would be read as "txt.exe".
  EXPECT_EQ(printable("a\xe2\x80\xae"
                      "b"),
            R"(a\u202eb)");
  EXPECT_EQ(printable("\xef\xbb\xbfloss"), R"(\ufeffloss)");
  EXPECT_EQ(printable("x\xf3\xa0\x80\x81"), R"(x\U000e0001)");  // a tag
  EXPECT_EQ(printable("Gr\xc3\xb6\xc3\x9f"
                      "e \xe6\xa8\xa1\xe5\x9e\x8b \xf0\x9f\x99\x82"),
            "Gr\xc3\xb6\xc3\x9f"
            "e \xe6\xa8\xa1\xe5\x9e\x8b \xf0\x9f\x99\x82");
}

TEST(Quote, KeepsAnErrorReadable) {
  EXPECT_EQ(quote("\x7f"
                  "ELF\xff\xc3"),
            R"("\x7fELF\xff\xc3")");  // no UTF-8
  EXPECT_EQ(quote("\xc2\x9b"
                  "2J"),
            R"("\u009b2J")");  // a terminal's control character
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
  EXPECT_EQ(shell_word("a\nb\xff"), R"('a\nb\xff')");
}

}  // namespace
}  // namespace assay::spec::quote_test
