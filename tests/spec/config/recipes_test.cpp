// labels: unit
// The recipes of the repository are settings that the trainer takes, and batches that divide.
#include <gtest/gtest.h>

#include <filesystem>

#include "spec/batch/batch.hpp"
#include "spec/config/check.hpp"
#include "spec/config/load.hpp"
#include "spec/hardware/hardware.hpp"
#include "spec/model/trainable.hpp"
#include "tests/support/paths.hpp"

namespace assay::spec::recipes_test {
namespace {

namespace fs = std::filesystem;

/// Weights, gradients, master weights and moments of one GPU [B].
double state_bytes(const RunConfig& config, const ModelSpec& model) {
  const double masters = config.states == Dtype::bf16 ? 0 : 4, moments = config.states == Dtype::bf16 ? 2 : 4;
  return parameter_count(model).to_double() * (2 + 4 + masters + 2 * moments);
}

/// What a token keeps in every block for backward: x, qkv, attention's y and lse, x_mid, gate and up
/// (docs/measurements/h200.md), and qkv once more before the norm of Qwen3 [B].
double kept_bytes(const ModelSpec& m) {
  const double qkv = static_cast<double>((m.heads + 2 * m.kv_heads) * m.head_dim) * (m.qk_norm ? 2 : 1);
  return static_cast<double>(m.layers) *
         (2 * (2.0 * static_cast<double>(m.width) + qkv + static_cast<double>(m.heads * m.head_dim) +
               2.0 * static_cast<double>(m.ffn)) +
          4.0 * static_cast<double>(m.heads));
}

TEST(RecipesSpec, EveryRecipeIsTakenAndFitsTheGpuThatItIsFor) {
  int seen = 0;
  for (const auto& [folder, gpu] : {std::pair{"h200", "H200"}, std::pair{"b200", "B200"}}) {
    const double memory = named_gpu(gpu).memory->value;
    for (const auto& file : fs::directory_iterator(tests::source_dir() + "/recipes/" + folder)) {
      const RunConfig config = load(file.path().string(), {});
      const ModelSpec model = find_model(config.model);
      check(config, model);
      require_trainable(model);
      const Batch batch = batch_of(config.sequences, config.micro, 1);
      EXPECT_EQ(config.device, Device::cuda) << file.path();
      EXPECT_EQ(config.dtype, Dtype::bf16) << file.path();
      const double needed =
          state_bytes(config, model) +
          static_cast<double>(batch.micro * config.sequence_length) * kept_bytes(model);
      EXPECT_LT(needed, 0.95 * memory) << file.path() << ": " << needed;
      EXPECT_GT(needed, 0.4 * memory) << file.path() << ": " << needed << ", which leaves most of it unused";
      ++seen;
    }
  }
  EXPECT_EQ(seen, 6);
}

}  // namespace
}  // namespace assay::spec::recipes_test
