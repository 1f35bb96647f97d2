// labels: golden
#include <gtest/gtest.h>

#include "reference/train_step.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/gradient_check.hpp"

namespace assay::reference::train_step_golden_test {
namespace {

using tests::Allowed;
using tests::GoldenFile;
using tests::Values;

/// As for one pass (model_golden_test.cpp): both sides sum in double, in different orders.
const Allowed allowed = Allowed::relative(1e-9);

Values step_of(const Values& all, std::int64_t step) {
  Values one{{all.shape.begin() + 1, all.shape.end()}, {}};
  const auto size = static_cast<std::int64_t>(all.data.size()) / all.shape.front();
  one.data.assign(all.data.begin() + step * size, all.data.begin() + (step + 1) * size);
  return one;
}

Batch batch_of(const GoldenFile& golden, std::int64_t step) {
  const auto shape = golden.shape("ids");
  const auto B = shape.at(1), T = shape.at(2);
  const auto rows = [&](const Ids& all) {
    return Ids(all.begin() + step * B * T, all.begin() + (step + 1) * B * T);
  };
  Batch batch{.B = B,
              .T = T,
              .ids = rows(golden.ids("ids")),
              .targets = rows(golden.ids("targets")),
              .documents = {},
              .positions = {}};
  for (std::int64_t n = 0; n < B * T; ++n) batch.positions.push_back(n % T);
  return batch;
}

TEST(TrainStepReferenceGolden, StepsFollowTransformersWithTorchsClipAndAdamW) {
  const auto golden = tests::load_golden("models/llama_training.safetensors");
  const auto model =
      spec::model_from_hugging_face(tests::golden_bytes("models/llama_training.json"), "llama_training.json");
  TrainState state{.parameters = {}, .moment1 = zeros(model), .moment2 = zeros(model)};
  for (const auto& [name, zero] : zeros(model)) {
    const auto stored = golden.tensor("initial/" + name);
    state.parameters.emplace(name, Tensor<double>(stored.shape, stored.data));
  }
  const Hyperparameters hyperparameters{.beta1 = golden.scalar("beta1"),
                                        .beta2 = golden.scalar("beta2"),
                                        .eps = golden.scalar("eps"),
                                        .weight_decay = golden.scalar("weight_decay"),
                                        .clip = golden.scalar("max_norm"),
                                        .z_loss = 0};
  const auto rates = golden.tensor("learning_rates"), losses = golden.tensor("losses"),
             norms = golden.tensor("gradient_norms");
  int clipped = 0;
  for (std::int64_t step = 0; step < static_cast<std::int64_t>(rates.data.size()); ++step) {
    SCOPED_TRACE("step " + std::to_string(step));
    const auto s = static_cast<std::size_t>(step);
    const auto result = train_step(state, model, {batch_of(golden, step)}, hyperparameters, rates.data[s]);
    ASSAY_EXPECT_CLOSE((Values{{2}, {result.cross_entropy, result.gradient_norm}}),
                       (Values{{2}, {losses.data[s], norms.data[s]}}), allowed);
    clipped += result.clip_coefficient < 1;
    for (const auto& [name, parameter] : state.parameters) {
      SCOPED_TRACE(name);
      ASSAY_EXPECT_CLOSE(tests::values(parameter), step_of(golden.tensor("after/" + name), step), allowed);
    }
  }
  EXPECT_GT(clipped, 0);
  EXPECT_LT(clipped, static_cast<int>(rates.data.size()));
}

}  // namespace
}  // namespace assay::reference::train_step_golden_test
