// labels: property
#include "spec/model/initial_loss.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "reference/model/model.hpp"
#include "tests/support/tiny_models.hpp"

namespace assay::reference::initial_loss_test {
namespace {

/// Deviations of the first loss of `seeds` models from the spec's expectation, each with weights and batch of
/// its own.
std::vector<double> deviations(const spec::ModelSpec& model, int seeds) {
  std::vector<double> all;
  for (int seed = 0; seed < seeds; ++seed) {
    const auto number = static_cast<std::uint64_t>(seed);
    const auto batch = tests::tiny_batch(model, 4, 16, tests::Documents::whole, tests::Ignored::some, number);
    const auto statistics = spec::token_statistics(batch.ids, batch.targets, batch.T, Batch::ignored);
    const auto forward =
        model::forward(initial_parameters(model, 1000 + number), model, batch,
                       {.normalizer = static_cast<double>(batch.valid_tokens()), .z_loss = 0});
    all.push_back(spec::expected_initial_loss(model, statistics).deviations(forward.loss.loss));
  }
  return all;
}

/// With mean 0 and standard deviation 1, the mean of n has a standard error of 1/sqrt(n) and their standard
/// deviation one of 1/sqrt(2n): four of each, as the first loss of a run is itself held to four.
void expect_standardised(const std::vector<double>& z) {
  const auto n = static_cast<double>(z.size());
  double sum = 0, square = 0;
  for (const double deviation : z) {
    EXPECT_LT(std::abs(deviation), 4);
    sum += deviation;
    square += deviation * deviation;
  }
  EXPECT_LT(std::abs(sum / n), 4 / std::sqrt(n));
  EXPECT_NEAR(std::sqrt((square - sum * sum / n) / (n - 1)), 1, 4 / std::sqrt(2 * n));
}

/// Wide enough for the expectation's limit of many dimensions; the batches repeat one id in a third of their
/// positions.
const spec::ModelSpec untied{.name = "first-loss",
                             .vocab = 128,
                             .width = 64,
                             .layers = 2,
                             .heads = 2,
                             .kv_heads = 1,
                             .head_dim = 16,
                             .ffn = 96,
                             .context = 32,
                             .rope_scaling = {}};

TEST(InitialLossReference, FirstLossesOfUntiedModelsSpreadAsExpected) {
  expect_standardised(deviations(untied, 48));
}

TEST(InitialLossReference, FirstLossesOfTiedModelsSpreadAsExpected) {
  auto tied = untied;
  tied.tied_embeddings = true;
  expect_standardised(deviations(tied, 48));
}

TEST(InitialLossReference, FirstLossesWithQkNormSpreadAsExpected) {
  auto qwen3 = untied;
  qwen3.family = spec::Family::qwen3;
  qwen3.qk_norm = true;
  expect_standardised(deviations(qwen3, 48));
}

TEST(InitialLossReference, FirstLossesWithGegluSpreadAsExpected) {
  auto geglu = untied;
  geglu.mlp = spec::Mlp::geglu;
  expect_standardised(deviations(geglu, 48));
}

}  // namespace
}  // namespace assay::reference::initial_loss_test
