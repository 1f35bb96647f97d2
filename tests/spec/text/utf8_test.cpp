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
