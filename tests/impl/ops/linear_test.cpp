// labels: parity property
#include "impl/ops/linear/linear.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/impl/ops/parity/linear_parity.hpp"
#include "tests/support/tensors.hpp"

namespace assay::impl::linear_test {
namespace {

RC_GTEST_PROP(LinearImpl, ForwardMatchesReference, ()) { parity::linear_forward_matches_reference(at::kCPU); }

RC_GTEST_PROP(LinearImpl, BackwardMatchesReference, ()) {
  parity::linear_backward_matches_reference(at::kCPU);
}

TEST(LinearImpl, SameBitsTwice) {
  const at::Tensor x = tests::normal({300, 70}, 1, at::kFloat),
                   weight = tests::normal({90, 70}, 2, at::kFloat);
  const auto all = [&] {
    const at::Tensor y = linear::forward(x, weight), dweight = at::zeros_like(weight);
    linear::backward_weight(y, x, dweight);
    return std::vector{y, linear::backward_input(y, weight), dweight};
  };
  const auto first = all(), second = all();
  for (std::size_t i = 0; i < first.size(); ++i) EXPECT_TRUE(tests::same_bits(first[i], second[i])) << i;
}

TEST(LinearImpl, C1RejectsInnerExtentsThatDiffer) {
  EXPECT_EQ(tests::refusal([] { linear::forward(at::ones({2, 3}), at::ones({5, 4})); }), "linear_c1");
  EXPECT_EQ(tests::refusal([] {
              linear::backward_weight(at::ones({2, 5}), at::ones({2, 3}), at::ones({5, 4}));
            }),
            "linear_c1");
}

TEST(LinearImpl, RejectsABiasOfAnotherSize) {
  EXPECT_EQ(tests::refusal([] {
              linear::forward(at::ones({2, 3}), at::ones({5, 3}), at::ones({4}));
            }),
            "bias_c1");
}

TEST(LinearImpl, C2RejectsEmptyRows) {
  EXPECT_EQ(tests::refusal([] { linear::forward(at::ones({2, 0}), at::ones({5, 0})); }), "linear_c2");
}

TEST(LinearImpl, C3RejectsAnUpstreamOfAnotherSize) {
  EXPECT_EQ(tests::refusal([] { linear::backward_input(at::ones({2, 4}), at::ones({5, 3})); }), "linear_c3");
  EXPECT_EQ(tests::refusal([] {
              linear::backward_weight(at::ones({3, 5}), at::ones({2, 4}), at::ones({5, 4}));
            }),
            "linear_c3");
  EXPECT_EQ(tests::refusal([] {
              linear::forward_residual(at::ones({1, 5}), at::ones({2, 3}), at::ones({5, 3}));
            }),
            "linear_c3");
}

}  // namespace
}  // namespace assay::impl::linear_test
