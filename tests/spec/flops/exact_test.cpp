// labels: unit property
#include "spec/flops/exact.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "spec/error.hpp"
#include "spec/ops/attention.hpp"
#include "spec/ops/linear.hpp"
#include "tests/support/draw_model.hpp"

namespace assay::spec {
namespace {

TEST(ExactFlops, FollowsTheSpecExample) {
  const ModelSpec model = find_model("tiny-llama");
  EXPECT_EQ(matmul_parameters(model), Count(819'200));
  EXPECT_EQ(exact_flops(model, 128).per_token(), Count(5'311'488));
}

TEST(ExactFlops, GivesTheKnownFiguresOfPublishedModels) {
  // Independent arithmetic: blocks' matrices + head, then 6 P + 6 L H E (T + 1), by hand.
  EXPECT_EQ(exact_flops(find_model("llama-1.36b"), 2048).per_token(),
            6 * Count(18LL * (4 * 2304 * 2304 + 3 * 2304 * 6144) + 32000LL * 2304) + 6LL * 18 * 2304 * 2049);
  EXPECT_EQ(exact_flops(find_model("llama3-8b"), 8192).per_token().to_string(), "51471187968");
}

TEST(ExactFlops, C1RejectsAnEmptySequence) {
  try {
    exact_flops(find_model("tiny-llama"), 0);
    FAIL() << "accepted";
  } catch (const SpecError& error) {
    EXPECT_EQ(error.label(), "flops_c1");
  }
  EXPECT_THROW(exact_flops_per_token(find_model("tiny-llama"), -1), SpecError);
}

TEST(ExactFlops, TheLookupIsFreeAndATiedHeadIsNot) {
  ModelSpec model = find_model("tiny-llama");
  const FlopBreakdown untied = exact_flops(model, 128);
  EXPECT_EQ(untied.of(FlopComponent::embedding), Count(0));
  model.tied_embeddings = true;
  EXPECT_EQ(exact_flops(model, 128).per_sequence(), untied.per_sequence());
}

RC_GTEST_PROP(ExactFlops, ComponentsSumToTheHeadlineFormula, ()) {
  const ModelSpec model = tests::draw_model();
  const auto T = *rc::gen::inRange<std::int64_t>(1, 300);
  const FlopBreakdown flops = exact_flops(model, T);
  RC_ASSERT((flops.per_token() == exact_flops_per_token(model, T)));
  RC_ASSERT((flops.per_step(7) == 7 * T * exact_flops_per_token(model, T)));
  RC_ASSERT((flops.of(Pass::backward) == 2 * flops.of(Pass::forward)));
}

/// The step, op by op, from the counts that the reference's loops are held to.
RC_GTEST_PROP(ExactFlops, EqualsTheSumOverTheOps, ()) {
  const ModelSpec m = tests::draw_model();
  const auto B = *rc::gen::inRange<std::int64_t>(1, 4), T = *rc::gen::inRange<std::int64_t>(1, 40);
  const std::int64_t N = B * T, H = m.heads * m.head_dim, K = m.kv_heads * m.head_dim;
  const FlopBreakdown flops = exact_flops(m, T);
  const auto expect = [&](FlopComponent component, std::int64_t times, std::int64_t in, std::int64_t out) {
    const linear::Shape shape{.N = N, .in = in, .out = out};
    RC_ASSERT((B * flops.at(component, Pass::forward) == times * linear::forward_flops(shape).matmul));
    RC_ASSERT((B * flops.at(component, Pass::backward) == times * linear::backward_flops(shape).matmul));
  };
  expect(FlopComponent::qkv, m.layers, m.width, H + 2 * K);
  expect(FlopComponent::attention_output, m.layers, H, m.width);
  expect(FlopComponent::gate_up, m.layers, m.width, 2 * m.ffn);
  expect(FlopComponent::down, m.layers, m.ffn, m.width);
  expect(FlopComponent::head, 1, m.width, m.vocab);
  const attention::Shape shape{.B = B, .T = T, .H = m.heads, .K = m.kv_heads, .E = m.head_dim};
  for (Pass pass : {Pass::forward, Pass::backward}) {
    const Flops op =
        pass == Pass::forward ? attention::forward_flops(shape, {}) : attention::backward_flops(shape, {});
    RC_ASSERT((B * (flops.at(FlopComponent::attention_scores, pass) +
                    flops.at(FlopComponent::attention_values, pass)) ==
               m.layers * op.matmul));
  }
}

}  // namespace
}  // namespace assay::spec
