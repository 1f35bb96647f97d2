// labels: unit
#include "impl/bench/measure.hpp"

#include <gtest/gtest.h>

#include "impl/machine/host.hpp"
#include "spec/error.hpp"
#include "spec/model/model_spec.hpp"
#include "tests/support/tiny_models.hpp"

namespace assay::impl::bench::measure_test {
namespace {

TEST(MeasureImpl, WhatACpuDoesNotHoldIsRefusedBeforeItIsAllocated) {
  Plan plan{.setting = {.model = tests::tiny_model(1)}, .device = at::kCPU, .patience = {}};
  // Logits alone, in fp32.
  const std::int64_t row = plan.setting.model.vocab * 4;
  plan.setting.micro = run::host_memory() / row / 1000 + 1, plan.setting.sequence_length = 1000,
  plan.setting.dtype = Dtype::f32;
  bool ran = false;
  try {
    within_memory(plan, [&] { ran = true; });
    ADD_FAILURE() << "not refused";
  } catch (const UserError& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    for (const char* word : {"do not hold what", "of ", " x 1000 tokens; give a smaller --micro or --seq"})
      EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
  }
  EXPECT_FALSE(ran);
  plan.setting.micro = 1, plan.setting.sequence_length = 8;
  within_memory(plan, [&] { ran = true; });
  EXPECT_TRUE(ran);
}

}  // namespace
}  // namespace assay::impl::bench::measure_test
