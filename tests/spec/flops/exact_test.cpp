// labels: unit property
#include "spec/flops/exact.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "spec/error.hpp"
#include "spec/model/inventory.hpp"
#include "spec/ops/attention/attention.hpp"
#include "spec/ops/linear/linear.hpp"
#include "tests/support/draw_model.hpp"

namespace assay::spec::exact_test {
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

TEST(ExactFlops, CountsMixtralByHand) {
  const Count D = 4096, T = 4096, L = 32;
  const FlopBreakdown flops = exact_flops(find_model("mixtral-8x7b"), 4096);
  EXPECT_EQ(flops.at(FlopComponent::qkv, Pass::forward), L * 2 * T * D * (4096 + 2 * Count(1024)));
  EXPECT_EQ(flops.at(FlopComponent::router, Pass::forward), L * 2 * T * D * 8);
  EXPECT_EQ(flops.at(FlopComponent::routed_experts, Pass::backward), L * 4 * T * 2 * 3 * D * 14336);
  EXPECT_EQ(flops.of(FlopComponent::gate_up), Count(0));
  EXPECT_EQ(flops.of(FlopComponent::shared_experts), Count(0));
  // Active parameters 12,879,925,248 without the lookup 32000 D and the gains (2 L + 1) D.
  EXPECT_EQ(matmul_parameters(find_model("mixtral-8x7b")), Count(12'879'925'248) - Count(32000 + 65) * D);
}

TEST(ExactFlops, CountsDeepSeekByHand) {
  const ModelSpec model = find_model("deepseek-v3");
  const Count D = 7168, T = 4096;
  const FlopBreakdown flops = exact_flops(model, 4096);
  const Count latent = D * 1536 + Count(1536) * 128 * 192 + D * 576 + Count(512) * 128 * 256;
  EXPECT_EQ(flops.at(FlopComponent::latent_projections, Pass::forward), 61 * (2 * T * latent));
  EXPECT_EQ(flops.of(FlopComponent::qkv), Count(0));
  // Scores over 192 entries, values over 128.
  EXPECT_EQ(flops.at(FlopComponent::attention_scores, Pass::forward), 61 * (T * (T + 1) * 128 * 192));
  EXPECT_EQ(flops.at(FlopComponent::attention_values, Pass::forward), 61 * (T * (T + 1) * 128 * 128));
  EXPECT_EQ(flops.at(FlopComponent::gate_up, Pass::forward), 3 * (2 * T * 2 * D * 18432));
  EXPECT_EQ(flops.at(FlopComponent::routed_experts, Pass::forward), 58 * (2 * T * 8 * 3 * D * 2048));
  EXPECT_EQ(flops.at(FlopComponent::shared_experts, Pass::forward), 58 * (2 * T * 3 * D * 2048));
  EXPECT_EQ(flops.at(FlopComponent::router, Pass::forward), 58 * (2 * T * D * 256));
  const FlopBreakdown extra = multi_token_flops(model, 4096);
  EXPECT_EQ(extra.at(FlopComponent::multi_token_projection, Pass::forward), 2 * T * 2 * D * D);
  EXPECT_EQ(extra.at(FlopComponent::head, Pass::forward), flops.at(FlopComponent::head, Pass::forward));
  EXPECT_EQ(61 * extra.of(FlopComponent::attention_scores), flops.of(FlopComponent::attention_scores));
  EXPECT_EQ(58 * extra.of(FlopComponent::routed_experts), flops.of(FlopComponent::routed_experts));
}

TEST(ExactFlops, AWindowCountsOnlyThePairsInsideIt) {
  ModelSpec model = find_model("tiny-llama");  // 6 L H E = 3,072 FLOPs a pair
  const Count all = exact_flops(model, 5).per_sequence();
  model.window = 3;  // 12 pairs of 15
  EXPECT_EQ(all - exact_flops(model, 5).per_sequence(), Count(3 * 2 * 3072));
  EXPECT_EQ(exact_flops(model, 5).per_token(), Count(6 * 819200 + 14746));  // 12 * 6144 / 5 = 14,745.6
  EXPECT_EQ(exact_flops(model, 3).per_sequence(), exact_flops(find_model("tiny-llama"), 3).per_sequence());
  // Mistral 7B: sum over its 32,768 tokens of min(t, 4096) pairs.
  const ModelSpec mistral = find_model("mistral-7b");
  EXPECT_EQ(exact_flops(mistral, 32768).at(FlopComponent::attention_scores, Pass::forward),
            Count(std::int64_t{32} * 2 * 32 * 128) * Count(4096 * 4097 / 2 + std::int64_t{28672} * 4096));
}

TEST(ExactFlops, WithoutMultiTokenBlocksTheyCostNothing) {
  EXPECT_EQ(multi_token_flops(find_model("llama3-8b"), 8).per_sequence(), Count(0));
}

/// P from the list of parameters: matrices but lookups; of routed experts the share that is visited.
RC_GTEST_PROP(ExactFlops, TakesMatmulParametersFromTheInventory, ()) {
  const ModelSpec model = tests::draw_described_model();
  Count always, routed;
  for (const Parameter& parameter : inventory(model).parameters) {
    if (!parameter.matrix() || parameter.role == Role::positions) continue;
    if (parameter.role == Role::embedding && !model.tied_embeddings) continue;
    (parameter.name.find(".experts.") == std::string::npos ? always : routed) += parameter.size;
  }
  if (model.experts) routed = (routed * model.experts->active).divided_exactly_by(model.experts->count);
  RC_ASSERT((matmul_parameters(model) == always + routed));
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
  const ModelSpec model = tests::draw_described_model();
  const auto T = *rc::gen::inRange<std::int64_t>(1, 300);
  const FlopBreakdown flops = exact_flops(model, T);
  RC_ASSERT((flops.per_token() == exact_flops_per_token(model, T)));
  // A window's pairs need not be a multiple of T: what is rounded lies within half of the number of tokens.
  const Count sequence = flops.per_sequence(), rounded = T * exact_flops_per_token(model, T);
  RC_ASSERT((2 * (sequence > rounded ? sequence - rounded : rounded - sequence) <= Count(T)));
  if (model.window == 0 || model.window >= T) RC_ASSERT((sequence == rounded));
  RC_ASSERT((flops.per_step(7) == 7 * sequence));
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
  const attention::Mask mask{.window = m.window};
  for (Pass pass : {Pass::forward, Pass::backward}) {
    const Flops op = pass == Pass::forward ? attention::forward_flops(shape, mask)
                                           : attention::backward_flops(shape, mask);
    RC_ASSERT((B * (flops.at(FlopComponent::attention_scores, pass) +
                    flops.at(FlopComponent::attention_values, pass)) ==
               m.layers * op.matmul));
  }
}

}  // namespace
}  // namespace assay::spec::exact_test
