// labels: unit
#include "impl/run/memory_limits.hpp"

#include <gtest/gtest.h>

#include <string>

namespace assay::impl::run::memory_limits_test {
namespace {

constexpr std::int64_t host = std::int64_t{8} << 30;

std::string refusal(std::int64_t sequences, std::int64_t micro, std::int64_t prefetch = 2) {
  spec::RunConfig config;
  config.sequences = sequences, config.micro = micro, config.prefetch = prefetch;
  try {
    refuse_what_cannot_fit(config, spec::find_model("tiny-llama"), spec::batch_of(sequences, micro, 1),
                           at::kCPU, host);
  } catch (const UserError& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.what();
  }
  return "fits";
}

TEST(MemoryLimitsImpl, TheDemoFitsAndAnEndlessBatchDoesNot) {
  EXPECT_EQ(refusal(32, 0), "fits");
  EXPECT_EQ(refusal(100'000, 8), "fits");
  // 1e9 x 128 tokens x 16 bytes x 3 steps
  EXPECT_NE(refusal(1'000'000'000, 1).find("5.59 TiB"), std::string::npos) << refusal(1'000'000'000, 1);
  EXPECT_NE(refusal(1'000'000'000, 0).find("batch.sequences"), std::string::npos);
  EXPECT_NE(refusal(32, 0, 1'000'000).find("data.prefetch"), std::string::npos);
  EXPECT_NE(refusal(100'000, 0).find("batch.micro"), std::string::npos) << refusal(100'000, 0);
}

TEST(MemoryLimitsImpl, NeedIsOfThisRankAndOfThisDevice) {
  spec::RunConfig config;
  config.sequences = 64, config.micro = 8, config.prefetch = 0;
  const auto model = spec::find_model("tiny-llama");
  const auto one = memory_need(config, model, spec::batch_of(64, 8, 1), at::kCPU);
  const auto of_four = memory_need(config, model, spec::batch_of(64, 8, 4), at::kCPU);
  EXPECT_EQ(one.samples, 64.0 * 128 * 16);
  EXPECT_EQ(of_four.samples, one.samples / 4);
  EXPECT_EQ(one.inputs, 8.0 * 128 * static_cast<double>(model.width * model.layers) * 4);
  EXPECT_GE(one.state, 853'120.0 * 16);
  const auto on_gpu = memory_need(config, model, spec::batch_of(64, 8, 1), at::Device(at::kCUDA, 0));
  EXPECT_EQ(on_gpu.state + on_gpu.inputs, 0);
}

}  // namespace
}  // namespace assay::impl::run::memory_limits_test
