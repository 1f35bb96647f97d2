// labels: unit property
#include "spec/text/utf8.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace assay::spec::utf8_test {
namespace {

TEST(Utf8Spec, AcceptsTheFirstAndLastCharacterOfEachLength) {
  EXPECT_EQ(utf8_length(std::string_view("\0", 1)), 1u);
  EXPECT_EQ(utf8_length("\x7f"), 1u);
  EXPECT_EQ(utf8_length("\xc2\x80"), 2u);
  EXPECT_EQ(utf8_length("\xdf\xbf"), 2u);
  EXPECT_EQ(utf8_length("\xe0\xa0\x80"), 3u);
  EXPECT_EQ(utf8_length("\xef\xbf\xbf"), 3u);
  EXPECT_EQ(utf8_length("\xf0\x90\x80\x80"), 4u);
  EXPECT_EQ(utf8_length("\xf4\x8f\xbf\xbf"), 4u);
}

TEST(Utf8Spec, RefusesOverlongSurrogateTooLargeAndCutOffCharacters) {
  for (const char* bad : {"", "\x80", "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xed\xbf\xbf",
                          "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "\xc3",
                          "\xe2\x82", "\xf0\x9f\xa5", "\xc3("})
    EXPECT_EQ(utf8_length(bad), 0u) << bad;
}

TEST(Utf8Spec, AnIllFormedPieceIsAsLongAsItBeginsACharacter) {
  // Unicode 16, table 3-11 and its text: maximal subparts.
  const std::pair<const char*, std::size_t> pieces[] = {
      {"\x80", 1},      {"\xff", 1},         {"\xc0\xaf", 1},  {"\xe0\x80\x80", 1},
      {"\xed\xa0", 1},  {"\xf0\x80", 1},     {"\xf4\x90", 1},  {"\xe2\x82", 2},
      {"\xe2\x82(", 2}, {"\xf0\x9f\xa5", 3}, {"\xf1\x80z", 2}, {"\xc3(", 1}};
  for (const auto& [text, length] : pieces) {
    EXPECT_EQ(ill_formed_length(text), length) << text;
    EXPECT_EQ(begins_character(text), length == std::string_view(text).size() &&
                                          static_cast<unsigned char>(*text) >= 0xc2 &&
                                          static_cast<unsigned char>(*text) <= 0xf4)
        << text;
  }
}

/// Of any character every beginning begins one, and no more.
RC_GTEST_PROP(Utf8Spec, ACharacterIsBegunByItsBytes, (const std::string& bytes)) {
  const std::string text = valid_utf8(bytes);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(std::string_view(text).substr(at));
    for (std::size_t part = 1; part <= length; ++part)
      RC_ASSERT(begins_character(std::string_view(text).substr(at, part)) == (part < length));
    at += length;
  }
}

RC_GTEST_PROP(Utf8Spec, RepairedTextIsValidAndStable, (const std::string& bytes)) {
  const std::string repaired = valid_utf8(bytes);
  RC_ASSERT(valid_utf8(repaired) == repaired);
  std::size_t at = 0;
  while (at < repaired.size()) {
    const std::size_t length = utf8_length(std::string_view(repaired).substr(at));
    RC_ASSERT(length > 0u);
    at += length;
  }
}

}  // namespace
}  // namespace assay::spec::utf8_test
