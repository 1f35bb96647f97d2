// labels: unit
// `assay bench step` on the CPU: the parts of a real step, and that they are held to add up to it.
#include "impl/bench/step.hpp"

#include <c10/cuda/CUDAFunctions.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "spec/config/load.hpp"
#include "spec/error.hpp"
#include "spec/flops/exact.hpp"
#include "spec/model/model_spec.hpp"

namespace assay::impl::bench::step_test {
namespace {

using spec::time::StepClass;
using spec::time::StepOp;
using spec::time::StepPass;

/// Two micro-batches of two sequences of the demo's model.
StepTimes measured(const std::vector<std::string>& more = {}) {
  std::vector<std::string> settings = {"compute.device=cpu", "compute.threads=1", "batch.sequences=4",
                                       "batch.micro=2"};
  settings.insert(settings.end(), more.begin(), more.end());
  return measure_step(spec::load("", settings), 2, [](const std::string&) {});
}

double sum_of(const StepTimes& times) {
  double sum = times.step.between;
  for (const auto& part : times.step.parts) sum += part.seconds;
  return sum;
}

TEST(BenchStepImpl, PartsAddUpToTheStepWithinOnePercent) {
  const StepTimes times = measured();
  EXPECT_GT(times.step.seconds, 0);
  EXPECT_NEAR(sum_of(times), times.step.seconds, spec::time::waterfall_tolerance * times.step.seconds);
  double bars = 0;
  for (const auto& bar : times.waterfall.bars) bars += bar.seconds;
  EXPECT_NEAR(bars, times.step.seconds, 1e-9);
  EXPECT_FALSE(times.waterfall.mfu) << "a CPU has no peak here";
  EXPECT_EQ(times.exact_flops,
            4 * spec::exact_flops(spec::find_model("tiny-llama"), 128).per_sequence().to_double());
  EXPECT_GT(times.executed_flops, times.exact_flops);
}

TEST(BenchStepImpl, APlantedWrongPartFails) {
  const StepTimes times = measured();
  const spec::time::NeededFlops needed{};
  ASSERT_NO_THROW(spec::time::waterfall(times.step, needed));
  std::size_t large = 0;
  for (std::size_t i = 0; i < times.step.parts.size(); ++i) {
    if (times.step.parts[i].seconds < 0.03 * times.step.seconds) continue;
    ++large;
    auto missing = times.step, twice = times.step;
    missing.parts.erase(missing.parts.begin() + static_cast<std::ptrdiff_t>(i));
    twice.parts.push_back(twice.parts[i]);
    EXPECT_THROW(spec::time::waterfall(missing, needed), SpecError) << i;
    EXPECT_THROW(spec::time::waterfall(twice, needed), SpecError) << i;
  }
  EXPECT_GE(large, 3u);
}

TEST(BenchStepImpl, EveryOpOfTheSpecIsSeenAsOftenAsItIsCalled) {
  for (const auto& [model, recompute] : {std::pair{"model.name=tiny-llama", "memory.recompute=norms_swiglu"},
                                         std::pair{"model.name=tiny-qwen3", "memory.recompute=none"},
                                         std::pair{"model.name=tiny-llama", "memory.recompute=attention"},
                                         std::pair{"model.name=tiny-qwen3", "memory.recompute=block"}}) {
    const StepTimes times = measured({model, recompute});
    // Calls of several sizes (the first micro-batch's, the final norm's) stand in entries of their own.
    std::map<std::pair<StepOp, StepPass>, double> stated;
    for (const auto& count : times.counts) stated[{count.op, count.pass}] += count.calls;
    EXPECT_EQ(times.step.parts.size(), stated.size()) << recompute;
    for (const auto& part : times.step.parts) {
      // The optimizer's calls are by ranges of the buffers, the norm's are two.
      if (class_of(part.op) == StepClass::optimizer) continue;
      EXPECT_EQ(part.calls, (stated[{part.op, part.pass}])) << name_of(part.op, part.pass);
    }
    for (const auto& part : times.step.parts) EXPECT_NE(part.op, StepOp::other_gemm);
  }
}

TEST(BenchStepImpl, WhatCannotFitIsRefusedBeforeItIsAllocated) {
  const auto config = spec::load("", {"compute.device=cpu", "batch.sequences=100000000", "data.prefetch=0"});
  try {
    measure_step(config, 1, [](const std::string& line) { FAIL() << line; });
    FAIL() << "taken";
  } catch (const UserError& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_NE(std::string(error.what()).find("this machine has"), std::string::npos) << error.what();
  }
}

TEST(BenchStepImpl, AGpuThatIsNotThereIsRefusedBeforeAnythingIsTrained) {
  if (c10::cuda::device_count() > 0) GTEST_SKIP() << "this machine has a GPU";
  const auto config = spec::load("", {"compute.device=cuda"});
  try {
    measure_step(config, 1, [](const std::string& line) { FAIL() << line; });
  } catch (const UserError& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
  }
}

}  // namespace
}  // namespace assay::impl::bench::step_test
