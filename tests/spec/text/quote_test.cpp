// labels: unit
#include "spec/text/quote.hpp"

#include <gtest/gtest.h>

namespace assay::spec {
namespace {

TEST(Quote, KeepsAnErrorOnOneLine) { EXPECT_EQ(quote("a\nb\x1b[31m\x7f"), "\"a?b?[31m?\""); }

TEST(Quote, CutsLongText) {
  EXPECT_EQ(quote(std::string(80, 'x')), "\"" + std::string(80, 'x') + "\"");
  EXPECT_EQ(quote(std::string(81, 'x')), "\"" + std::string(80, 'x') + "...\"");
}

}  // namespace
}  // namespace assay::spec
