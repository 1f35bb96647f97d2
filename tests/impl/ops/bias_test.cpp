// labels: parity property
#include "impl/ops/bias/bias.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/impl/ops/parity/bias_parity.hpp"
#include "tests/support/tensors.hpp"

namespace assay::impl::bias_test {
namespace {

RC_GTEST_PROP(BiasImpl, MatchesReference, ()) { parity::bias_matches_reference(at::kCPU); }

TEST(BiasImpl, SameBitsOnAnyNumberOfThreads) {
  const at::Tensor dy = tests::normal({5000, 130}, 1, at::kFloat);
  EXPECT_TRUE(tests::repeatable([&] {
    const at::Tensor dbias = at::zeros({130});
    bias::backward(dy, dbias);
    return std::vector{dbias};
  }));
}

TEST(BiasImpl, C1RejectsAGradientOfAnotherSize) {
  EXPECT_EQ(tests::refusal([] { bias::backward(at::ones({2, 3}), at::ones({4})); }), "bias_c1");
}

TEST(BiasImpl, C2RejectsEmptyRows) {
  EXPECT_EQ(tests::refusal([] { bias::backward(at::ones({2, 0}), at::ones({0})); }), "bias_c2");
}

}  // namespace
}  // namespace assay::impl::bias_test
