// labels: unit property
#include "spec/model/initial_loss.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <numeric>

#include "spec/error.hpp"
#include "spec/model/residual_overlap.hpp"
#include "spec/random/philox.hpp"
#include "tests/support/draw_model.hpp"
#include "tests/support/label_of.hpp"

namespace assay::spec::initial_loss_test {
namespace {

TEST(InitialLoss, IsTheKnownOneForLlama136b) {
  // The loss printed by the public runs of this model is 10.8422 at the first step.
  const InitialLoss loss = expected_initial_loss(find_model("llama-1.36b"), 24 * 64 * 2 * 2048);
  EXPECT_NEAR(loss.mean, 10.834, 5e-4);
  EXPECT_LT(loss.standard_deviation, 0.01);
}

TEST(InitialLoss, FollowsTheClosedFormWhenUntied) {
  const ModelSpec model = find_model("tiny-llama");
  const double s = 0.02, variance = 128 * s * s;
  // Two terms take from it: eps, which has at most this share of a mean square of at least s^2 (the
  // embedding's own), and the expansion's second, (e^S - 1) / (2V).
  const double eps_share = model.norm_eps / (s * s + model.norm_eps);
  const double taken = variance / 2 * eps_share + std::expm1(variance) / (2 * 256);
  EXPECT_LT(expected_initial_loss(model, 4096).mean, std::log(256) + variance / 2);
  EXPECT_GT(expected_initial_loss(model, 4096).mean, std::log(256) + variance / 2 - taken);
}

TEST(InitialLoss, RepetitionWidensTheSpread) {
  const ModelSpec model = find_model("tiny-llama");
  TokenStatistics text = uniform_tokens(256, 4096, 128);
  const double uniform = expected_initial_loss(model, text).standard_deviation;
  text.input_collision = text.target_collision = 0.078;  // short English sentences, in bytes
  text.pair_collision = 0.027;
  const double repeated = expected_initial_loss(model, text).standard_deviation;
  EXPECT_GT(repeated, 5 * uniform);
  EXPECT_LT(repeated, 0.1);  // still far from hiding an error of a few tenths
}

TEST(InitialLoss, TiedTargetsThatRepeatTheirInputAreCheap) {
  const ModelSpec model = find_model("tiny-qwen3");
  TokenStatistics batch = uniform_tokens(256, 4096, 128);
  const double without = expected_initial_loss(model, batch).mean;
  batch.repeat_share = 0.5;
  batch.pair_collision = batch.repeat_collision = batch.reverse_collision = 0.01;
  EXPECT_LT(expected_initial_loss(model, batch).mean, without - 0.3);
}

/// Standard deviation, over draws of V normal logits of the given variance, of log-sum-exp minus their mean.
double drawn_spread(std::int64_t V, double variance) {
  constexpr int draws = 4000;
  const random::Stream stream(1, random::Site::test, 0);
  double sum = 0, squares = 0;
  for (int draw = 0; draw < draws; ++draw) {
    double powers = 0, mean = 0;
    for (std::int64_t v = 0; v < V; ++v) {
      const double logit = std::sqrt(variance) * stream.normal(static_cast<std::uint64_t>(draw * V + v));
      powers += std::exp(logit);
      mean += logit / static_cast<double>(V);
    }
    const double loss = std::log(powers) - mean;
    sum += loss, squares += loss * loss;
  }
  return std::sqrt(squares / draws - std::pow(sum / draws, 2));
}

TEST(InitialLoss, OneInputWithEveryTargetSpreadsAsItsPartitionFunction) {
  // One id in, every id wanted equally often: the targets' logits average to all logits' mean, and what is
  // left of the loss's spread is the log-sum-exp's beyond that mean.
  ModelSpec model = find_model("tiny-llama");
  model.init_std = std::sqrt(1.0 / static_cast<double>(model.width));  // logits of variance 1
  std::vector<std::int64_t> inputs(256, 7), targets(256);
  std::iota(targets.begin(), targets.end(), 0);
  const auto loss = expected_initial_loss(model, token_statistics(inputs, targets, 256, -100));
  const double drawn = drawn_spread(256, 1);
  EXPECT_NEAR(loss.standard_deviation, drawn,
              0.06 * drawn);  // 4000 draws know it to 1.1 %, first order in 1/V
}

TEST(InitialLoss, TiedRepetitionSpreadsAsTheLengthsOfTheEmbeddings) {
  // Every id follows itself: its logit is sqrt(D) times the length of its embedding, of variance D std^2 / 2,
  // and the mean over the ids has a 256th of that. Weights are so small that the branches (`branches` of the
  // residual stream at most) and the id's own probability (1/256) are left out here.
  ModelSpec model = find_model("tiny-qwen3");
  model.init_std = 1e-3, model.norm_eps = 1e-12;
  std::vector<std::int64_t> ids(256);
  std::iota(ids.begin(), ids.end(), 0);
  const auto loss = expected_initial_loss(model, token_statistics(ids, ids, 128, -100));
  const double variance = static_cast<double>(model.width) * model.init_std * model.init_std / 2 / 256;
  const double branches = 0.02;
  EXPECT_NEAR(loss.standard_deviation, std::sqrt(variance), (branches + 1.0 / 256) * std::sqrt(variance));
}

TEST(InitialLoss, C1RejectsAnEmptyBatch) {
  TokenStatistics batch = uniform_tokens(256, 1, 1);
  batch.tokens = 0;
  EXPECT_EQ(tests::label_of([&] { expected_initial_loss(find_model("tiny-llama"), batch); }),
            "initial_loss_c1");
  EXPECT_EQ(tests::label_of([&] { expected_initial_loss(find_model("tiny-llama"), 0); }),
            "token_statistics_c3");
}

TEST(InitialLoss, C2RejectsSharesOutOfRange) {
  for (double share : {-0.1, 1.1, std::nan("")}) {
    TokenStatistics batch = uniform_tokens(256, 100, 10);
    batch.pair_collision = share;
    EXPECT_EQ(tests::label_of([&] { expected_initial_loss(find_model("tiny-llama"), batch); }),
              "initial_loss_c2");
  }
}

TEST(InitialLoss, C3RejectsModelsWithOtherBlocks) {
  for (const char* name : {"gpt2", "mixtral-8x7b", "deepseek-v3"})
    EXPECT_EQ(tests::label_of([&] { expected_initial_loss(find_model(name), 1024); }), "initial_loss_c3")
        << name;
}

TEST(InitialLoss, C3RejectsLatentAttentionOfADenseModel) {
  ModelSpec model = find_model("deepseek-v3");
  model.multi_token_layers = 0, model.experts.reset();
  EXPECT_EQ(without_initial_loss(model), "latent attention");
  EXPECT_EQ(tests::label_of([&] { expected_initial_loss(model, 1024); }), "initial_loss_c3");
}

/// Turned queries and keys that are longer by c make scores of c^4 the variance: attention weights gather on
/// fewer tokens, as with initial weights whose scores vary so.
TEST(InitialLoss, YarnsFactorSharpensAttention) {
  ModelSpec model = find_model("tiny-llama");
  model.init_std = 0.1;
  const auto self = [&](double factor) {
    model.rope_scaling = RopeScaling{
        .factor = 2, .original_context = 4096, .kind = RopeScalingKind::yarn, .attention_factor = factor};
    return residual_overlap(model, uniform_tokens(model.vocab, 4096, 128)).positions.back().mean_square;
  };
  const double with_one = self(1);
  EXPECT_GT(self(1.5), with_one);
  model.rope_scaling.reset();
  EXPECT_EQ(residual_overlap(model, uniform_tokens(model.vocab, 4096, 128)).positions.back().mean_square,
            with_one);
}

RC_GTEST_PROP(InitialLoss, IsFiniteAndPositiveForEveryModel, ()) {
  const ModelSpec model = tests::draw_model();
  const auto tokens = *rc::gen::inRange<std::int64_t>(1, 5000);
  const InitialLoss loss = expected_initial_loss(model, tokens);
  RC_ASSERT(std::isfinite(loss.mean) && loss.mean > -1e-3);
  RC_ASSERT(std::isfinite(loss.standard_deviation) && loss.standard_deviation >= 0);
}

RC_GTEST_PROP(ResidualOverlap, KeepsOverlapsInOrder, ()) {
  const ModelSpec model = tests::draw_model();
  const auto tokens = *rc::gen::inRange<std::int64_t>(1, 5000);
  const ResidualOverlap overlap = residual_overlap(model, uniform_tokens(model.vocab, tokens, model.context));
  RC_ASSERT(overlap.different >= 0 && overlap.different <= overlap.same && overlap.same <= overlap.self);
  RC_ASSERT(overlap.self <= 1);
  double shares = 0;
  for (const auto& group : overlap.positions) {
    shares += group.share;
    RC_ASSERT(group.mean_square >= model.init_std * model.init_std);
  }
  RC_ASSERT(std::abs(shares - 1) < 1e-12);
}

}  // namespace
}  // namespace assay::spec::initial_loss_test
