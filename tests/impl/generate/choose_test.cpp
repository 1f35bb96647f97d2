// labels: unit property
#include "impl/generate/choose.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "spec/error.hpp"

namespace assay::impl::generate::choose_test {
namespace {

using Logits = std::vector<double>;

/// Logits of these probabilities.
Logits of(const std::vector<double>& probabilities) {
  Logits out;
  for (const double each : probabilities) out.push_back(std::log(each));
  return out;
}

TEST(Choose, InvertsTheCumulativeSumInTheOrderOfTheVocabulary) {
  const Logits logits = of({0.125, 0.5, 0.25, 0.125});
  const Sampling plain;
  EXPECT_EQ(choose(logits, plain, 0.1), 0);
  EXPECT_EQ(choose(logits, plain, 0.13), 1);
  EXPECT_EQ(choose(logits, plain, 0.62), 1);
  EXPECT_EQ(choose(logits, plain, 0.63), 2);
  EXPECT_EQ(choose(logits, plain, 0.88), 3);
  EXPECT_EQ(choose(logits, plain, 1), 3);
  EXPECT_EQ(choose(of({0.5, 0.5, 0}), plain, 1), 1) << "a token without probability is drawn";
}

TEST(Choose, TemperatureZeroTakesTheFirstOfTheLargest) {
  EXPECT_EQ(choose(Logits{-1, 3, 2, 3}, {.temperature = 0}, 0.99), 1);
  // Half the temperature squares the ratios: 1/2 and 1/4 become 1/4 and 1/16, that is 4 to 1.
  EXPECT_EQ(choose(of({0.5, 0.25}), {.temperature = 0.5}, 0.79), 0);
  EXPECT_EQ(choose(of({0.5, 0.25}), {.temperature = 0.5}, 0.81), 1);
}

TEST(Choose, TopPKeepsTheFewestThatReachIt) {
  const Logits logits = of({0.125, 0.5, 0.25, 0.125});
  for (const double u : {0.01, 0.5, 1.0}) EXPECT_EQ(choose(logits, {.top_p = 0.5}, u), 1);
  EXPECT_EQ(choose(logits, {.top_p = 0.51}, 0.66), 1);  // of 0.5 and 0.25, 2 to 1
  EXPECT_EQ(choose(logits, {.top_p = 0.51}, 0.67), 2);
  EXPECT_EQ(choose(logits, {.top_p = 0.8}, 0.1), 0) << "of equals the first is kept";
  EXPECT_EQ(choose(logits, {.top_p = 0.8}, 1), 2) << "and the second is not";
}

TEST(Choose, RefusesLogitsThatAreNoNumbers) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN(),
                   inf = std::numeric_limits<double>::infinity();
  for (const Logits& logits : {Logits{0, nan}, Logits{nan, 0}, Logits{0, inf}, Logits{-inf, -inf}})
    for (const double temperature : {0.0, 1.0}) try {
        choose(logits, {.temperature = temperature}, 0.5);
        ADD_FAILURE() << "accepted";
      } catch (const UserError& error) {
        EXPECT_EQ(error.code(), ExitCode::non_finite);
      }
  EXPECT_EQ(choose(Logits{-inf, 0, -inf}, {}, 1), 1);
}

RC_GTEST_PROP(Choose, DrawsWhatTopPKeepsAlone, ()) {
  const auto weights = *rc::gen::nonEmpty(rc::gen::container<std::vector<int>>(rc::gen::inRange(1, 1000)));
  const double top_p = *rc::gen::inRange(1, 101) / 100.0, u = *rc::gen::inRange(1, 1001) / 1000.0;
  Logits logits;
  double sum = 0;
  for (const int each : weights) logits.push_back(std::log(each)), sum += each;
  const auto token = static_cast<std::size_t>(choose(logits, {.top_p = top_p}, u));
  // What is more probable than a token that is kept adds up to less than top_p.
  double before = 0;
  for (const int each : weights) before += each > weights[token] ? each : 0;
  RC_ASSERT(before < top_p * sum * (1 + 1e-12) + 1e-9);
}

}  // namespace
}  // namespace assay::impl::generate::choose_test
