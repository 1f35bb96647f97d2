// labels: gpu parity property
// Which expert ranks tokens visit and what travels with them, on a GPU.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/impl/ops/parity/visits_parity.hpp"
#include "tests/support/gpu.hpp"

namespace assay::impl::cuda_visits_test {
namespace {

TEST(VisitsCuda, FollowTheDefinition) {
  ASSAY_NEEDS_GPU();
  EXPECT_TRUE(rc::check(+[] { parity::visits_follow_the_definition(at::kCUDA); }));
}
TEST(VisitsCuda, OrderPassesOverChoicesOfOthers) {
  ASSAY_NEEDS_GPU();
  EXPECT_TRUE(rc::check(+[] { parity::order_passes_over_choices_of_others(at::kCUDA); }));
}

}  // namespace
}  // namespace assay::impl::cuda_visits_test
