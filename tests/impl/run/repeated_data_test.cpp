// labels: unit
// A run that reads its data more than once says so in its record, from which banner and report have it.
#include <gtest/gtest.h>

#include <string>

#include "tests/impl/run/every_key/workshop.hpp"

namespace assay::impl::run::repeated_data_test {
namespace {

using tests::every_key::Outcome;
using tests::every_key::Settings;
using tests::every_key::Workshop;

/// Behind the description of the data of a run of `settings`: from its last "; " on.
std::string told(Workshop& shop, const Settings& settings) {
  const Outcome outcome = shop.train(settings);
  EXPECT_EQ(outcome.code, 0) << outcome.refusal;
  const std::string description = outcome.run.start.data.description;
  const std::size_t at = description.rfind("; ");
  return at == std::string::npos ? "" : description.substr(at);
}

TEST(RepeatedDataImpl, ARunSaysHowOftenItReadsItsData) {
  Workshop shop;  // 4 steps of 4 sequences
  EXPECT_EQ(told(shop, {"data.grammar_samples=16"}), "") << "each sample once";
  EXPECT_EQ(told(shop, {"data.grammar_samples=15"}), "; the run reads it 1.07 times");
  EXPECT_EQ(told(shop, {"data.grammar_samples=8"}), "; the run reads it 2.00 times");
  EXPECT_EQ(told(shop, {"data.grammar_samples=8", "batch.ramp=2:2"}), "; the run reads it 1.50 times");
  EXPECT_EQ(told(shop, {"data.grammar_samples=8", "eval.share=0.5", "eval.every=4"}),
            "; the run reads it 4.00 times")
      << "half of it is held out";
}

TEST(RepeatedDataImpl, OfAMixtureEachSourceIsTold) {
  Workshop shop;  // 24 samples in the file
  EXPECT_EQ(told(shop, {"data.paths=" + shop.tokens + "," + shop.tokens, "data.dtype=uint32",
                        "data.mixture=web:3,code:1", "train.steps=12"}),
            "; the run reads web 1.50 times");
}

}  // namespace
}  // namespace assay::impl::run::repeated_data_test
