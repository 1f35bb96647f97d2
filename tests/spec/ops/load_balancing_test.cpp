// labels: unit
#include "spec/ops/load_balancing/load_balancing.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/label_of.hpp"

namespace assay::spec::load_balancing_test {
namespace {

using Ids = std::vector<std::int64_t>;
const load_balancing::Shape shape{.N = 4, .X = 2, .G = 2};
const std::vector<double> shares{0.75, 0.25, 0.5, 0.5};
constexpr double infinity = std::numeric_limits<double>::infinity();

TEST(LoadBalancingSpec, C1RejectsGroupsThatDoNotDivideTheRows) {
  const auto refusal = [](const load_balancing::Shape& s) {
    return tests::label_of([&] {
      load_balancing::check(
          s, 1, std::vector<double>(static_cast<std::size_t>(std::max<std::int64_t>(s.G * s.X, 0))), 1);
    });
  };
  EXPECT_EQ(refusal(shape), "accepted");
  EXPECT_EQ(refusal({.N = 0, .X = 2, .G = 1}), "accepted");
  EXPECT_EQ(refusal({.N = 4, .X = 2, .G = 3}), "load_balancing_c1");
  EXPECT_EQ(refusal({.N = 4, .X = 2, .G = 0}), "load_balancing_c1");
  EXPECT_EQ(refusal({.N = 4, .X = 0, .G = 2}), "load_balancing_c1");
  EXPECT_EQ(refusal({.N = -1, .X = 2, .G = 1}), "load_balancing_c1");
  EXPECT_EQ(tests::label_of([] { load_balancing::check_z(-1, 2, 1); }), "load_balancing_c1");
}

TEST(LoadBalancingSpec, C2RejectsSharesThatAreNone) {
  EXPECT_NO_THROW(load_balancing::check(shape, 1, shares, 1));
  for (const std::vector<double>& f : {std::vector<double>{0.75, 0.25, 0.5},
                                       {0.75, -0.25, 0.5, 0.5},
                                       {1.25, 0.25, 0.5, 0.5},
                                       {std::nan(""), 0.25, 0.5, 0.5}})
    EXPECT_EQ(tests::label_of([&] { load_balancing::check(shape, 1, f, 1); }), "load_balancing_c2");
  EXPECT_NO_THROW(load_balancing::check(shape, 2, std::vector<double>{1.25, 0.75, 1, 1}, 1));
}

TEST(LoadBalancingSpec, C3RejectsANormalizerThatIsNotPositive) {
  for (const double normalizer : {0.0, -1.0, infinity}) {
    EXPECT_EQ(tests::label_of([&] { load_balancing::check(shape, 1, shares, normalizer); }),
              "load_balancing_c3");
    EXPECT_EQ(tests::label_of([&] { load_balancing::check_z(4, 2, normalizer); }), "load_balancing_c3");
  }
}

TEST(LoadBalancingSpec, C4RejectsCountsAndRatesThatAreNone) {
  std::vector<double> bias(3);
  const auto refusal = [&](const Ids& counts, double rate) {
    return tests::label_of([&] { load_balancing::move_bias(bias, counts, rate); });
  };
  EXPECT_EQ(refusal({1, 2, 3}, 0.1), "accepted");
  EXPECT_EQ(refusal({1, 2}, 0.1), "load_balancing_c4");
  EXPECT_EQ(refusal({1, -2, 3}, 0.1), "load_balancing_c4");
  EXPECT_EQ(refusal({1, 2, 3}, -0.1), "load_balancing_c4");
  EXPECT_EQ(refusal({1, 2, 3}, infinity), "load_balancing_c4");
}

TEST(LoadBalancingSpec, TheBiasMovesTowardsTheMeanAndStaysOnIt) {
  std::vector<double> bias{0, 1, -1};
  load_balancing::move_bias(bias, Ids{5, 2, 2}, 0.5);
  EXPECT_EQ(bias, (std::vector<double>{-0.5, 1.5, -0.5}));
  load_balancing::move_bias(bias, Ids{3, 3, 3}, 0.5);
  EXPECT_EQ(bias, (std::vector<double>{-0.5, 1.5, -0.5}));
  load_balancing::move_bias(bias, Ids{0, 2, 1}, 0.5);  // the mean is 1
  EXPECT_EQ(bias, (std::vector<double>{0, 1, -0.5}));
  load_balancing::move_bias(bias, Ids{0, 0, 0}, 0.5);
  EXPECT_EQ(bias, (std::vector<double>{0, 1, -0.5}));
  // Means beyond the doubles' integers: 2^62 + 1 is above the mean of itself and 2^62.
  std::vector<double> two{0, 0};
  load_balancing::move_bias(two, Ids{(std::int64_t{1} << 62) + 1, std::int64_t{1} << 62}, 1);
  EXPECT_EQ(two, (std::vector<double>{-1, 1}));
}

TEST(LoadBalancingSpec, CountsChoices) {
  EXPECT_EQ(load_balancing::counts(Ids{2, 0, 2, 2}, 4), (Ids{1, 0, 3, 0}));
  EXPECT_EQ(load_balancing::counts(Ids{}, 2), (Ids{0, 0}));
}

TEST(LoadBalancingSpec, FormsHaveNames) {
  using enum load_balancing::Form;
  EXPECT_EQ(to_string(global), "global");
  EXPECT_EQ(to_string(running), "running");
  EXPECT_EQ(to_string(sequence), "sequence");
  EXPECT_EQ(to_string(micro_batch), "micro_batch");
  EXPECT_EQ(to_string(hugging_face), "hugging_face");
}

TEST(LoadBalancingSpec, CountsBytesOfEveryTensorOnce) {
  EXPECT_EQ(load_balancing::forward_bytes(shape, 4), Count(48));    // p 8, f 4
  EXPECT_EQ(load_balancing::backward_bytes(shape, 4), Count(32));   // f, and as many of dp
  EXPECT_EQ(load_balancing::z_forward_bytes(4, 2, 4), Count(48));   // logits 8, lse 4
  EXPECT_EQ(load_balancing::z_backward_bytes(4, 2, 4), Count(80));  // and dlogits
}

TEST(LoadBalancingSpec, TheLargestLoadIsOverTheMean) {
  EXPECT_EQ(load_balancing::largest_load(std::vector<double>{3, 3, 3}), 1);
  EXPECT_EQ(load_balancing::largest_load(std::vector<double>{0, 12, 0, 0}), 4);
  EXPECT_EQ(load_balancing::largest_load(std::vector<double>{1, 2, 3}), 1.5);
  EXPECT_EQ(load_balancing::largest_load(std::vector<double>{0, 0}), 0);
}

}  // namespace
}  // namespace assay::spec::load_balancing_test
