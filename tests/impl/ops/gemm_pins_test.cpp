// labels: unit
#include "impl/ops/gemm/gemm_pins.hpp"

#include <gtest/gtest.h>

namespace assay::impl::cuda::gemm_pins_test {
namespace {

const auto all_run = [](const std::string&) { return true; };

TEST(GemmPins, AKnownAlgorithmIsUsedAndElseTheLibrarysFirstChoice) {
  GemmPins pins(AlgorithmTexts{{"qkv", "tuned"}});
  EXPECT_EQ(pins.of("qkv", "first", all_run), "tuned");
  EXPECT_EQ(pins.of("down", "first", all_run), "first");
  EXPECT_EQ(pins.used(), (AlgorithmTexts{{"qkv", "tuned"}, {"down", "first"}}));
}

TEST(GemmPins, AnAlgorithmThatDoesNotRunHereIsNotUsed) {
  GemmPins pins(AlgorithmTexts{{"qkv", "of another GPU"}});
  EXPECT_EQ(pins.of("qkv", "first", [](const std::string& text) { return text == "first"; }), "first");
  EXPECT_EQ(pins.used(), (AlgorithmTexts{{"qkv", "first"}}));
}

/// A run that follows another one in the same process has neither its algorithms nor its list.
TEST(GemmPins, WhatIsUsedIsNotThereforeKnown) {
  GemmPins pins(AlgorithmTexts{{"qkv", "tuned"}});
  pins.of("down", "first", [](const std::string&) { return true; });
  EXPECT_TRUE(pins.knows("qkv"));
  EXPECT_FALSE(pins.knows("down"));
  pins.give(pins.used());
  EXPECT_FALSE(pins.knows("qkv"));
  EXPECT_TRUE(pins.knows("down"));
}

TEST(GemmPins, GivenAnewTheyForgetAndSaySo) {
  GemmPins pins(AlgorithmTexts{{"qkv", "tuned"}});
  const auto before = pins.generation();
  pins.of("qkv", "first", all_run);
  pins.give({{"qkv", "of the run"}});
  EXPECT_NE(pins.generation(), before);
  EXPECT_TRUE(pins.used().empty());
  EXPECT_EQ(pins.of("qkv", "first", all_run), "of the run");
}

}  // namespace
}  // namespace assay::impl::cuda::gemm_pins_test
