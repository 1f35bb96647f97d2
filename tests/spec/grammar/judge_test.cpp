// labels: unit property
#include "spec/grammar/judge.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>

#include "spec/grammar/demo_grammar.hpp"

namespace assay::spec::grammar::judge_test {
namespace {

TEST(JudgeSpec, CountsSentencesSumsAndTheRightOnes) {
  const Judgement j = judge(demo(),
                            "the fox eats rice.\n"       // valid
                            "two plus three is five.\n"  // valid, a right sum
                            "two plus three is six.\n"   // a wrong sum
                            "ten plus one is eleven.\n"  // a right sum that the grammar does not write
                            "two plus fox is five.\n"    // no sum
                            "two plus three is five\n"   // no full stop: no sum
                            " is two plus three.\n"      // the parts in another order
                            "\n"                         // an empty line
                            "the fox eats");             // unfinished: not judged
  EXPECT_EQ(j.sentences, 8);
  EXPECT_EQ(j.valid, 2);
  EXPECT_EQ(j.sums, 3);
  EXPECT_EQ(j.sums_right, 2);
  EXPECT_DOUBLE_EQ(j.valid_share(), 0.25);
  EXPECT_DOUBLE_EQ(j.sums_right_share(), 2.0 / 3);
  EXPECT_EQ(j.verdicts[2].sentence, "two plus three is six.");
  EXPECT_TRUE(j.verdicts[2].sum && !j.verdicts[2].sum_right && !j.verdicts[2].valid);
}

TEST(JudgeSpec, SharesOfNothingAreNotANumber) {
  const Judgement j = judge(demo(), "the fox");
  EXPECT_EQ(j.sentences, 0);
  EXPECT_TRUE(std::isnan(j.valid_share()));
  EXPECT_TRUE(std::isnan(j.sums_right_share()));
}

RC_GTEST_PROP(JudgeSpec, EveryGeneratedSentenceIsValidAndEverySumRight, ()) {
  const auto sample = *rc::gen::inRange<std::uint64_t>(0, 1000000);
  const std::string text = demo().window(5, sample, 513).substr(1);
  const Judgement j = judge(demo(), text);
  RC_ASSERT(j.sentences == std::count(text.begin(), text.end(), '\n'));
  RC_ASSERT(j.valid == j.sentences);
  RC_ASSERT(j.sums_right == j.sums);
}

RC_GTEST_PROP(JudgeSpec, AnyBytesAreJudgedWithoutTrouble, (const std::string& text)) {
  const Judgement j = judge(demo(), text);
  RC_ASSERT(j.sentences == std::count(text.begin(), text.end(), '\n'));
  RC_ASSERT(j.valid <= j.sentences && j.sums_right <= j.sums && j.sums <= j.sentences);
}

}  // namespace
}  // namespace assay::spec::grammar::judge_test
