// labels: parity property
// Which expert ranks tokens visit and what travels with them, on the CPU.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/impl/ops/parity/visits_parity.hpp"

namespace assay::impl::visits_test {
namespace {

RC_GTEST_PROP(VisitsImpl, FollowTheDefinition, ()) { parity::visits_follow_the_definition(at::kCPU); }
RC_GTEST_PROP(VisitsImpl, OrderPassesOverChoicesOfOthers, ()) {
  parity::order_passes_over_choices_of_others(at::kCPU);
}

}  // namespace
}  // namespace assay::impl::visits_test
