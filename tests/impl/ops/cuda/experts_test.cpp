// labels: gpu parity property
// The ops of a mixture of experts on a GPU.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/impl/ops/parity/experts_parity.hpp"
#include "tests/support/gpu.hpp"

namespace assay::impl::cuda_experts_test {
namespace {

TEST(ExpertsCuda, RouterMatchesReference) {
  ASSAY_NEEDS_GPU();
  EXPECT_TRUE(rc::check(+[] { parity::router_matches_reference(at::kCUDA); }));
}
TEST(ExpertsCuda, RouterLossesMatchReference) {
  ASSAY_NEEDS_GPU();
  EXPECT_TRUE(rc::check(+[] { parity::router_losses_match_reference(at::kCUDA); }));
}
TEST(ExpertsCuda, PermuteIsAStableSort) {
  ASSAY_NEEDS_GPU();
  EXPECT_TRUE(rc::check(+[] { parity::permute_is_a_stable_sort(at::kCUDA); }));
}
TEST(ExpertsCuda, LimitedOrderIsTheReferencesPlan) {
  ASSAY_NEEDS_GPU();
  EXPECT_TRUE(rc::check(+[] { parity::limited_order_is_the_references_plan(at::kCUDA); }));
}
TEST(ExpertsCuda, GroupedLinearIsALinearAnExpert) {
  ASSAY_NEEDS_GPU();
  EXPECT_TRUE(rc::check(+[] { parity::grouped_linear_is_a_linear_an_expert(at::kCUDA); }));
}
/// Many rows, of tiles that are full, cut and empty, by both sets of kernels of grouped_gemm.cu: one for
/// 2,048 rows an expert at most and one for more. Columns of neither are whole tiles.
TEST(ExpertsCuda, GroupedLinearsOfManyRowsAreLinears) {
  ASSAY_NEEDS_GPU();
  for (const std::vector<reference::Index>& counts :
       {std::vector<reference::Index>{0, 4100, 1, 2300, 129}, {5000, 0}})
    EXPECT_TRUE(parity::grouped_linears_are_linears(
        {.device = at::kCUDA, .type = at::kBFloat16, .counts = counts, .in = 264, .out = 520, .seed = 11}))
        << counts.size() << " experts";
}
TEST(ExpertsCuda, GroupedLinearInFp8IsALinearAnExpert) {
  ASSAY_NEEDS_GPU();
  EXPECT_TRUE(rc::check(+[] { parity::grouped_fp8_linear_is_a_linear_an_expert(at::kCUDA); }));
}
/// As above, by both sets of kernels, sums of more than one tile's 128 products and of a part of one.
TEST(ExpertsCuda, GroupedLinearsInFp8OfManyRowsAreLinears) {
  ASSAY_NEEDS_GPU();
  for (const std::vector<reference::Index>& counts :
       {std::vector<reference::Index>{0, 4100, 1, 2300, 129}, {5000, 0}})
    EXPECT_TRUE(parity::grouped_fp8_linears_are_linears(
        {.device = at::kCUDA, .type = at::kBFloat16, .counts = counts, .in = 272, .out = 528, .seed = 11}))
        << counts.size() << " experts";
}
TEST(ExpertsCuda, WeightedGateIsAGateTimesWeights) {
  ASSAY_NEEDS_GPU();
  EXPECT_TRUE(rc::check(+[] { parity::weighted_gate_is_a_gate_times_weights(at::kCUDA); }));
}

TEST(ExpertsCuda, SameBitsTwice) {
  ASSAY_NEEDS_GPU();
  spec::Experts how;
  how.count = 64, how.active = 8;
  how.router_bias = true, how.scoring = spec::Scoring::sigmoid, how.groups = 8, how.active_groups = 4;
  const at::Tensor bias = tests::normal({64}, 5, at::kFloat, 0.1).to(at::kCUDA);
  const at::Tensor x = tests::normal({4096, 512}, 1, at::kBFloat16).to(at::kCUDA),
                   logits = tests::normal({4096, 64}, 2, at::kFloat).to(at::kCUDA),
                   gate_up = tests::normal({64 * 256, 512}, 3, at::kBFloat16).to(at::kCUDA),
                   down = tests::normal({64 * 512, 128}, 4, at::kBFloat16).to(at::kCUDA);
  EXPECT_TRUE(tests::repeatable([&] {
    const router::Choice choice =
        router::forward(logits.clone(), how, /*groups=*/4, /*keep_logits=*/true, bias);
    const permute::Order order = permute::limited(permute::order(choice.experts, how.count), choice.experts,
                                                  choice.counts, /*most=*/160);
    const swiglu::RowWeights weights{choice.weights, order.slots};
    const at::Tensor rows = permute::gather(x, order);
    const at::Tensor hidden = grouped_linear::forward(rows, gate_up, order.ends);
    const at::Tensor gated = swiglu::forward_weighted(hidden, swiglu::Activation::silu, weights);
    const at::Tensor y = permute::combine(x, grouped_linear::forward(gated, down, order.ends), order);
    const at::Tensor d_gated = grouped_linear::backward_input(permute::gather(y, order), down, order.ends);
    at::Tensor dweights = at::zeros_like(choice.weights), dw = at::zeros({64 * 256, 512}, logits.options());
    const at::Tensor d_hidden = swiglu::backward_weighted(
        d_gated.clone(), hidden.clone(), swiglu::Activation::silu, ForwardValue::again, weights, dweights);
    dweights.masked_fill_(order.rows.lt(0), 0);  // made of rows that are undefined
    grouped_linear::backward_weight(d_hidden, rows, order.ends, dw, linear::GradientSum::continues);
    return std::vector{
        y,
        dweights,
        dw,
        choice.counts,
        router::losses(choice, how, 4096, order.ends, /*probabilities=*/true),
        router::backward(dweights, choice, how, at::kBFloat16, {.balance = 0.01, .z = 1e-3, .tokens = 4096})};
  }));
}

}  // namespace
}  // namespace assay::impl::cuda_experts_test
