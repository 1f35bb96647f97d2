// labels: gpu parity property
#include "impl/ops/bias/bias.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/impl/ops/parity/bias_parity.hpp"
#include "tests/support/gpu.hpp"

namespace assay::impl::cuda_bias_test {
namespace {

TEST(BiasCuda, MatchesReference) {
  ASSAY_NEEDS_GPU();
  EXPECT_TRUE(rc::check(+[] { parity::bias_matches_reference(at::kCUDA); }));
}

TEST(BiasCuda, SameBitsTwice) {
  ASSAY_NEEDS_GPU();
  for (auto type : {at::kFloat, at::kBFloat16}) {
    const at::Tensor dy = tests::normal({5000, 1152}, 1, type).to(at::kCUDA);
    EXPECT_TRUE(tests::repeatable([&] {
      const at::Tensor dbias = at::zeros({1152}, at::TensorOptions(at::kCUDA).dtype(at::kFloat));
      bias::backward(dy, dbias);
      return std::vector{dbias};
    })) << type;
  }
}

}  // namespace
}  // namespace assay::impl::cuda_bias_test
