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
  EXPECT_TRUE(rc::check(+[] { parity::qk_norm_matches_reference(at::kCUDA); }));
}

TEST(QkNormCuda, SameBitsTwice) {
  ASSAY_NEEDS_GPU();
  parity::qk_norm_is_repeatable(at::kCUDA, 128);
}

}  // namespace
}  // namespace assay::impl::cuda_qk_norm_test
