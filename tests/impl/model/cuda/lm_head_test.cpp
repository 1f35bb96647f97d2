// labels: gpu parity property
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/impl/model/lm_head_parity.hpp"
#include "tests/support/gpu.hpp"

namespace assay::impl::cuda_lm_head_test {
namespace {

TEST(LmHeadCuda, ChunksMatchReference) {
  ASSAY_NEEDS_GPU();
  EXPECT_TRUE(rc::check(+[] { parity::lm_head_matches_reference(at::kCUDA); }));
}

}  // namespace
}  // namespace assay::impl::cuda_lm_head_test
