// labels: gpu parity property
#include "impl/ops/qk_norm/qk_norm.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/impl/ops/parity/qk_norm_parity.hpp"
#include "tests/support/gpu.hpp"

namespace assay::impl::cuda_qk_norm_test {
namespace {

TEST(QkNormCuda, MatchesReference) {
  ASSAY_NEEDS_GPU();
  EXPECT_TRUE(rc::check([] { parity::qk_norm_matches_reference(at::kCUDA); }));
}

TEST(QkNormCuda, SameBitsTwice) {
  ASSAY_NEEDS_GPU();
  for (auto type : {at::kDouble, at::kFloat, at::kBFloat16}) {
    const at::Tensor qkv = tests::normal({2, 300, 8, 128}, 1, type).to(at::kCUDA),
                     gain = tests::normal({128}, 2, tests::math_of(type)).to(at::kCUDA);
    EXPECT_TRUE(tests::repeatable([&] { return parity::qk_norm_of(qkv, gain, 4, 2); })) << type;
  }
}

}  // namespace
}  // namespace assay::impl::cuda_qk_norm_test
