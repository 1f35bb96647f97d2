// labels: unit property
#include "spec/model/initial_loss.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "spec/error.hpp"
#include "spec/model/residual_overlap.hpp"
#include "tests/support/draw_model.hpp"

namespace assay::spec {
namespace {

template <class Call>
std::string label_of(Call&& call) {
  try {
    call();
  } catch (const SpecError& error) {
    return error.label();
  }
  return "accepted";
}

TEST(InitialLoss, IsTheKnownOneForLlama136b) {
  // The loss printed by the public runs of this model is 10.8422 at the first step.
  const InitialLoss loss = expected_initial_loss(find_model("llama-1.36b"), 24 * 64 * 2 * 2048);
  EXPECT_NEAR(loss.mean, 10.834, 5e-4);
  EXPECT_LT(loss.standard_deviation, 0.01);
}

TEST(InitialLoss, FollowsTheClosedFormWhenUntied) {
  const ModelSpec model = find_model("tiny-llama");
  const double variance = 128 * 0.02 * 0.02;  // eps takes 2 % of it
  EXPECT_NEAR(expected_initial_loss(model, 4096).mean, std::log(256) + variance / 2, 0.03 * variance);
  EXPECT_LT(expected_initial_loss(model, 4096).mean, std::log(256) + variance / 2);
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

TEST(InitialLoss, C1RejectsAnEmptyBatch) {
  TokenStatistics batch = uniform_tokens(256, 1, 1);
  batch.tokens = 0;
  EXPECT_EQ(label_of([&] { expected_initial_loss(find_model("tiny-llama"), batch); }), "initial_loss_c1");
  EXPECT_EQ(label_of([&] { expected_initial_loss(find_model("tiny-llama"), 0); }), "token_statistics_c3");
}

TEST(InitialLoss, C2RejectsSharesOutOfRange) {
  for (double share : {-0.1, 1.1, std::nan("")}) {
    TokenStatistics batch = uniform_tokens(256, 100, 10);
    batch.pair_collision = share;
    EXPECT_EQ(label_of([&] { expected_initial_loss(find_model("tiny-llama"), batch); }), "initial_loss_c2");
  }
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
}  // namespace assay::spec
