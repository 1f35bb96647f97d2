// labels: unit
#include "spec/ops/latent_attention/latent_attention.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "spec/error.hpp"
#include "spec/flops/exact.hpp"

namespace assay::spec::latent_attention_test {
namespace {

const latent_attention::Shape shape{
    .B = 2, .T = 3, .D = 7, .H = 4, .Cq = 5, .Ckv = 6, .E = 8, .R = 2, .W = 3};

std::string refusal(const latent_attention::Shape& changed, double eps = 1e-6) {
  try {
    latent_attention::check(changed, eps);
    return "accepted";
  } catch (const SpecError& error) {
    return error.what();
  }
}

TEST(LatentAttentionSpec, C1RejectsAnotherShape) {
  EXPECT_NO_THROW(latent_attention::check_extents("query_up", {32, 5}, {32, 5}));
  try {
    latent_attention::check_extents("query_up", {32, 7}, {32, 5});
    FAIL() << "accepted";
  } catch (const SpecError& error) {
    EXPECT_STREQ(error.what(), "latent_attention_c1: query_up is [32, 7], expected [32, 5]");
  }
}

TEST(LatentAttentionSpec, C2RejectsExtentsThatAreNotPossible) {
  EXPECT_EQ(refusal(shape), "accepted");
  using Shape = latent_attention::Shape;
  for (std::int64_t Shape::*empty : {&Shape::D, &Shape::H, &Shape::Ckv, &Shape::W}) {
    Shape changed = shape;
    changed.*empty = 0;
    EXPECT_EQ(refusal(changed).substr(0, 20), "latent_attention_c2:");
  }
  for (std::int64_t Shape::*maybe : {&Shape::B, &Shape::T, &Shape::Cq}) {
    Shape changed = shape;
    changed.*maybe = 0;
    EXPECT_EQ(refusal(changed), "accepted");
    changed.*maybe = -1;
    EXPECT_EQ(refusal(changed).substr(0, 20), "latent_attention_c2:");
  }
}

TEST(LatentAttentionSpec, C3RejectsTurnedEntriesThatAreNoPairsOrTheWholeHead) {
  for (std::int64_t R : {0, 3, 8, 10}) {
    auto changed = shape;
    changed.R = R;
    EXPECT_EQ(refusal(changed),
              "latent_attention_c3: R=" + std::to_string(R) + " is not even and in [2, E) with E=8");
  }
}

TEST(LatentAttentionSpec, C4RejectsAnEpsThatIsNotPositive) {
  for (double eps :
       {0.0, -1e-5, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()})
    EXPECT_EQ(refusal(shape, eps).substr(0, 20), "latent_attention_c4:") << eps;
}

TEST(LatentAttentionSpec, ScoresGrowWithTheSquareOfYarnsScale) {
  RopeScaling scaling{.factor = 40, .original_context = 4096, .kind = RopeScalingKind::yarn, .mscale = 1};
  EXPECT_EQ(latent_attention::score_factor({}), 1);
  EXPECT_EQ(latent_attention::score_factor(scaling), 1);  // mscale_all_dim is not stated
  scaling.mscale_all_dim = 1;
  EXPECT_NEAR(latent_attention::score_factor(scaling), 1.8739, 5e-5);  // DeepSeek-V3
  EXPECT_DOUBLE_EQ(latent_attention::score_factor(scaling), std::pow(1 + 0.1 * std::log(40), 2));
  scaling.kind = RopeScalingKind::llama3;
  EXPECT_EQ(latent_attention::score_factor(scaling), 1);
}

TEST(LatentAttentionSpec, CountsEveryStep) {
  // 6 tokens, 12 pairs a head. Linears 7*5 + 5*32 + 7*8 + 6*36, scores and values 2*4*(8 + 3)*12.
  const Count linears = Count(6) * (35 + 160 + 56 + 216), pairs = 2 * 4 * 11 * 12;
  EXPECT_EQ(latent_attention::forward_flops(shape, {}).matmul, 2 * linears + pairs);
  EXPECT_EQ(latent_attention::backward_flops(shape, {}).matmul, 4 * linears + 2 * pairs);
  // Turned: 4 heads and the shared key, 2 entries each.
  EXPECT_EQ(latent_attention::expand_forward_flops(shape), (Flops{0, 3 * 6 * 5 * 2}));
  EXPECT_EQ(latent_attention::expand_backward_flops(shape), (Flops{0, 3 * 6 * 5 * 2 + 6 * 4 * 2}));
  // Norms of 5 and 6 entries, 4n + 4 and 11n + 1 a token; softmax 4 a pair and W + 2 a row.
  EXPECT_EQ(latent_attention::forward_flops(shape, {}).vector, Count(6 * (24 + 28) + 180 + 4 * 48 + 24 * 5));
  EXPECT_EQ(latent_attention::backward_flops(shape, {}).vector,
            Count(6 * (56 + 67) + 228 + 3 * 48 + 2 * 24 * 3 + 6 * 7));
  EXPECT_EQ(latent_attention::up_flops(shape), (Flops{2 * 6 * (160 + 216), 180}));

  auto direct = shape;
  direct.Cq = 0;
  EXPECT_EQ(latent_attention::forward_flops(direct, {}).matmul, 2 * Count(6) * (7 * 32 + 56 + 216) + pairs);
  EXPECT_EQ(latent_attention::up_flops(direct).matmul, Count(2 * 6 * (7 * 32 + 216)));
}

TEST(LatentAttentionSpec, CountsBytesOfEveryTensorOnce) {
  // A token: q 2*4*8, k 4*6 + 2 + 4*8, v 2*4*3 in bf16; 2 cosines and sines in fp32.
  EXPECT_EQ(latent_attention::expand_forward_bytes(shape, 2, 4), Count(6 * (146 * 2 + 8)));
  EXPECT_EQ(latent_attention::expand_backward_bytes(shape, 2, 4), Count(6 * (146 * 2 + 8)));
  EXPECT_EQ(latent_attention::split_bytes(shape, 2), Count(6 * 2 * (6 + 2) * 2));
}

TEST(LatentAttentionSpec, OfDeepSeekV3ATokenKeepsWhatThePageSays) {
  const auto of_model = latent_attention::shape_of(find_model("deepseek-v3"), 1, 1);
  EXPECT_EQ(latent_attention::expanded_bytes(of_model, 2), Count(131072));
  EXPECT_EQ(latent_attention::compressed_bytes(of_model, 2), Count(4224));
}

TEST(LatentAttentionSpec, CountsWhatExactFlopsCount) {
  const ModelSpec model = find_model("deepseek-v3");
  const auto exact = exact_flops(model, 16);
  const Flops flops = latent_attention::forward_flops(latent_attention::shape_of(model, 1, 16), {});
  Count sum;
  for (const FlopComponent component :
       {FlopComponent::latent_projections, FlopComponent::attention_scores, FlopComponent::attention_values})
    sum += exact.at(component, Pass::forward);
  EXPECT_EQ(model.layers * flops.matmul, sum);
}

}  // namespace
}  // namespace assay::spec::latent_attention_test
