// labels: unit property
#include "spec/model/token_statistics.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <vector>

#include "spec/error.hpp"
#include "spec/random/philox.hpp"
#include "spec/tolerance.hpp"
#include "tests/support/label_of.hpp"

namespace assay::spec::token_statistics_test {
namespace {

using Ids = std::vector<std::int64_t>;

TEST(TokenStatistics, CountsAHandExample) {
  // Pairs (1,2) (1,2) (2,1) (3,3); the last position is ignored.
  const Ids inputs{1, 1, 2, 3, 9, 9}, targets{2, 2, 1, 3, -100, -100};
  const TokenStatistics s = token_statistics(inputs, targets, 3);
  EXPECT_EQ(s.tokens, 4);
  EXPECT_EQ(s.sequence_length, 3);
  EXPECT_DOUBLE_EQ(s.input_collision, (4 + 1 + 1) / 16.0);
  EXPECT_DOUBLE_EQ(s.target_collision, (4 + 1 + 1) / 16.0);
  EXPECT_DOUBLE_EQ(s.pair_collision, (4 + 1 + 1) / 16.0);
  EXPECT_DOUBLE_EQ(s.reverse_collision, (2 + 2 + 1) / 16.0);
  EXPECT_DOUBLE_EQ(s.repeat_share, 0.25);
  EXPECT_DOUBLE_EQ(s.repeat_collision, 1 / 16.0);
}

TEST(TokenStatistics, C1RejectsSizesThatDoNotFit) {
  EXPECT_EQ(tests::label_of([] { token_statistics(Ids{1, 2}, Ids{1}, 1); }), "token_statistics_c1");
  EXPECT_EQ(tests::label_of([] { token_statistics(Ids{1, 2, 3}, Ids{1, 2, 3}, 2); }), "token_statistics_c1");
  EXPECT_EQ(tests::label_of([] { token_statistics(Ids{}, Ids{}, 1); }), "token_statistics_c1");
  EXPECT_EQ(tests::label_of([] { token_statistics(Ids{1}, Ids{1}, 0); }), "token_statistics_c1");
}

TEST(TokenStatistics, C2RejectsABatchWithoutTargets) {
  EXPECT_EQ(tests::label_of([] { token_statistics(Ids{1, 2}, Ids{-100, -100}, 2); }), "token_statistics_c2");
}

TEST(TokenStatistics, C3RejectsSizesBelowOne) {
  EXPECT_EQ(tests::label_of([] { uniform_tokens(0, 1, 1); }), "token_statistics_c3");
  EXPECT_EQ(tests::label_of([] { uniform_tokens(1, 0, 1); }), "token_statistics_c3");
  EXPECT_EQ(tests::label_of([] { uniform_tokens(1, 1, 0); }), "token_statistics_c3");
}

TEST(TokenStatistics, UniformTokensAreTheMeanOverDraws) {
  const std::int64_t vocab = 7, tokens = 12, draws = 20000;
  TokenStatistics mean;
  double pair_square = 0;  // for the standard error of the noisiest statistic
  for (std::int64_t draw = 0; draw < draws; ++draw) {
    const random::Stream stream(1, random::Site::test, static_cast<std::uint32_t>(draw));
    Ids inputs, targets;
    for (std::uint64_t n = 0; n < tokens; ++n) {
      inputs.push_back(static_cast<std::int64_t>(stream.below(2 * n, vocab)));
      targets.push_back(static_cast<std::int64_t>(stream.below(2 * n + 1, vocab)));
    }
    const TokenStatistics s = token_statistics(inputs, targets, tokens);
    mean.input_collision += s.input_collision / draws;
    mean.pair_collision += s.pair_collision / draws;
    mean.reverse_collision += s.reverse_collision / draws;
    mean.repeat_share += s.repeat_share / draws;
    mean.repeat_collision += s.repeat_collision / draws;
    pair_square += s.repeat_share * s.repeat_share / draws;
  }
  // Every statistic lies in [0, 1] with a variance below that of repeat_share; five standard errors.
  const double allowed = 5 * std::sqrt(pair_square / draws);
  const TokenStatistics expected = uniform_tokens(vocab, tokens, tokens);
  EXPECT_NEAR(mean.input_collision, expected.input_collision, allowed);
  EXPECT_NEAR(mean.pair_collision, expected.pair_collision, allowed);
  EXPECT_NEAR(mean.reverse_collision, expected.reverse_collision, allowed);
  EXPECT_NEAR(mean.repeat_share, expected.repeat_share, allowed);
  EXPECT_NEAR(mean.repeat_collision, expected.repeat_collision, allowed);
}

RC_GTEST_PROP(TokenStatistics, KeepTheirOrder, ()) {
  const auto size = *rc::gen::inRange<std::size_t>(1, 60);
  const Ids inputs = *rc::gen::container<Ids>(size, rc::gen::inRange<std::int64_t>(0, 5));
  const Ids targets = *rc::gen::container<Ids>(size, rc::gen::inRange<std::int64_t>(0, 5));
  const TokenStatistics s = token_statistics(inputs, targets, 1);
  // Sums of at most 60 squares of rounded ratios, all of one sign: two roundings each and those of the sum.
  const double tiny = gamma(63, unit_roundoff(Dtype::f64));
  RC_ASSERT(s.pair_collision >= 1.0 / static_cast<double>(size) - tiny);
  RC_ASSERT(s.pair_collision <= s.target_collision + tiny && s.pair_collision <= s.input_collision + tiny);
  RC_ASSERT(s.repeat_collision <= s.pair_collision + tiny &&
            s.repeat_collision <= s.reverse_collision + tiny);
  RC_ASSERT(s.reverse_collision <= s.pair_collision + tiny);  // Cauchy-Schwarz
  RC_ASSERT(s.input_collision <= 1 + tiny);
}

}  // namespace
}  // namespace assay::spec::token_statistics_test
