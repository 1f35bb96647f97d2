// labels: gpu
// `assay bench step` and `assay bench ops` on a GPU, timed by events.
#include "impl/bench/step.hpp"

#include <gtest/gtest.h>

#include <iostream>

#include "impl/bench/measure.hpp"
#include "spec/config/load.hpp"
#include "tests/support/gpu.hpp"

namespace assay::impl::bench::cuda_step_test {
namespace {

TEST(BenchStepCuda, PartsAddUpToTheStepWithinOnePercentInBothPrecisions) {
  ASSAY_NEEDS_GPU();
  for (const char* dtype : {"compute.dtype=f32", "compute.dtype=bf16"}) {
    // Eight micro-batches: the clocks of the step and of its ops are read some 50 microseconds apart.
    const auto config =
        spec::load("", {"compute.device=cuda", dtype, "batch.sequences=512", "batch.micro=64"});
    const StepTimes times = measure_step(config, 3, [](const std::string&) {});
    double sum = times.step.between;
    for (const auto& part : times.step.parts) sum += part.seconds;
    EXPECT_NEAR(sum, times.step.seconds, spec::time::waterfall_tolerance * times.step.seconds);
    std::cout << "bench step, " << dtype << ": a step of " << times.step.seconds * 1e3 << " ms taken apart, "
              << times.plain_seconds * 1e3 << " ms not" << std::endl;
    double bars = 0;
    for (const auto& bar : times.waterfall.bars) bars += bar.seconds;
    EXPECT_NEAR(bars, times.step.seconds, 1e-9);
    if (times.subject.ceiling.peak > 0) {
      ASSERT_TRUE(times.waterfall.mfu);
      EXPECT_NEAR(*times.waterfall.mfu, times.exact_flops / times.subject.ceiling.peak / times.step.seconds,
                  1e-12);
    }
  }
}

TEST(BenchStepCuda, EveryOpIsTimedAndNoneBeatsItsRoofline) {
  ASSAY_NEEDS_GPU();
  Plan plan;
  plan.setting.model = spec::find_model("llama-1.36b");
  plan.setting.micro = 2, plan.setting.sequence_length = 2048, plan.setting.dtype = Dtype::bf16;
  plan.device = at::Device(at::kCUDA, 0);
  plan.patience = {.repeats = 5};
  int rows = 0;
  measure_ops(plan, [&](const Row& row) {
    ++rows;
    EXPECT_GT(row.seconds, 0) << row.name;
    // Tensors of a few MB may stay in the cache of 50 MB, which is faster than the memory.
    if (row.roofline && row.flops > 1e11) {
      EXPECT_GE(row.fastest, *row.roofline) << row.name;
    }
  });
  EXPECT_GT(rows, 25);
}

}  // namespace
}  // namespace assay::impl::bench::cuda_step_test
