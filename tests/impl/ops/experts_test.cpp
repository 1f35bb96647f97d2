// labels: parity property
// The ops of a mixture of experts on a CPU.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/impl/ops/parity/experts_parity.hpp"
#include "tests/support/tensors.hpp"

namespace assay::impl::experts_test {
namespace {

RC_GTEST_PROP(ExpertsImpl, RouterMatchesReference, ()) { parity::router_matches_reference(at::kCPU); }
RC_GTEST_PROP(ExpertsImpl, RouterLossesMatchReference, ()) {
  parity::router_losses_match_reference(at::kCPU);
}
RC_GTEST_PROP(ExpertsImpl, PermuteIsAStableSort, ()) { parity::permute_is_a_stable_sort(at::kCPU); }
RC_GTEST_PROP(ExpertsImpl, LimitedOrderIsTheReferencesPlan, ()) {
  parity::limited_order_is_the_references_plan(at::kCPU);
}
RC_GTEST_PROP(ExpertsImpl, GroupedLinearIsALinearAnExpert, ()) {
  parity::grouped_linear_is_a_linear_an_expert(at::kCPU);
}
RC_GTEST_PROP(ExpertsImpl, GroupedLinearInFp8IsALinearAnExpert, ()) {
  parity::grouped_fp8_linear_is_a_linear_an_expert(at::kCPU);
}
RC_GTEST_PROP(ExpertsImpl, WeightedGateIsAGateTimesWeights, ()) {
  parity::weighted_gate_is_a_gate_times_weights(at::kCPU);
}

}  // namespace
}  // namespace assay::impl::experts_test
