// labels: unit
// The recipes of the repository are settings that the trainer takes, and batches that divide.
#include <gtest/gtest.h>

#include <filesystem>

#include "spec/batch/batch.hpp"
#include "spec/config/check.hpp"
#include "spec/config/load.hpp"
#include "spec/hardware/hardware.hpp"
#include "spec/model/trainable.hpp"
#include "spec/plan/plan.hpp"
#include "tests/support/paths.hpp"

namespace assay::spec::recipes_test {
namespace {

namespace fs = std::filesystem;

/// A folder of recipes, and the GPUs that they are for.
struct Folder {
  const char* name;
  const char* gpu;
  std::int64_t ranks;
};

TEST(RecipesSpec, EveryRecipeIsTakenAndFitsTheGpuThatItIsFor) {
  int seen = 0;
  for (const auto& [folder, gpu, ranks] :
       {Folder{"h200", "H200", 1}, Folder{"h200x4", "H200", 4}, Folder{"b200", "B200", 1}}) {
    const double capacity = named_gpu(gpu).memory->value;
    for (const auto& file : fs::directory_iterator(tests::source_dir() + "/recipes/" + folder)) {
      if (file.path().extension() != ".toml") continue;
      const RunConfig config = load(file.path().string(), {});
      const ModelSpec model = find_model(config.model);
      check(config, model);
      require_trainable(model);
      const Batch batch = batch_of(config.sequences, config.micro, ranks);
      EXPECT_EQ(config.device, Device::cuda) << file.path();
      EXPECT_EQ(config.dtype, Dtype::bf16) << file.path();
      const double needed =
          memory::plan(memory::setting_of(config, model, batch, memory::Machine::cuda)).peak.to_double();
      EXPECT_LT(needed, 0.95 * capacity) << file.path() << ": " << needed;
      EXPECT_GT(needed, capacity / 3) << file.path() << ": " << needed << ", which leaves most of it unused";
      ++seen;
    }
  }
  EXPECT_EQ(seen, 9);
}

TEST(RecipesSpec, TheDemoIsTheRunWithoutARecipe) {
  const RunConfig demo = load(tests::source_dir() + "/recipes/demo.toml", {});
  EXPECT_EQ(demo, load("", {}));
  EXPECT_EQ(demo, RunConfig());
}

}  // namespace
}  // namespace assay::spec::recipes_test
