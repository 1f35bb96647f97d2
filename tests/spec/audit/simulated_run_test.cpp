// labels: unit property
#include "tests/support/simulated/run.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace assay::tests::simulated_run_test {
namespace {

using spec::audit::Field;
using spec::audit::Setting;

RC_GTEST_PROP(SimulatedRunSupport, NumbersOfATruthfulRunAgree, ()) {
  const auto format = static_cast<LogFormat>(*rc::gen::inRange(0, static_cast<int>(log_formats)));
  const SimulatedRun run = simulate(format, *rc::gen::arbitrary<std::uint64_t>());
  const Report log = report(run);
  RC_ASSERT(run.gpus == run.data_parallel * run.tensor_parallel * run.pipeline_parallel);
  RC_ASSERT(*log[Setting::tokens_per_step] == run.tokens());
  RC_ASSERT(!log.steps.empty() || run.log_every > 1);
  const bool smoothed = format == LogFormat::llmc || format == LogFormat::nanogpt;
  for (const ReportedStep& step : log.steps) {
    if (!step[Field::mfu] || smoothed) continue;
    const double tokens = *step[Field::tokens_per_second] * *step[Field::seconds];
    const double share = run.accounting.rate == Whose::gpu ? 1.0 / static_cast<double>(run.gpus) : 1;
    RC_ASSERT(std::abs(tokens / (run.tokens() * share) - 1) < 1e-9);
    const double mfu = *step[Field::flops_rate] / *step[Field::peak_flops];
    RC_ASSERT(std::abs(mfu / *step[Field::mfu] - 1) < 1e-9);
    RC_ASSERT(*step[Field::mfu] > 0.01 && *step[Field::mfu] < 0.7);
  }
}

TEST(SimulatedRunSupport, IsAFunctionOfItsSeed) {
  for (std::size_t i = 0; i < log_formats; ++i) {
    const auto format = static_cast<LogFormat>(i);
    const std::string log = render(simulate(format, 7));
    EXPECT_EQ(log, render(simulate(format, 7)));
    EXPECT_NE(log, render(simulate(format, 8)));
    EXPECT_GT(log.size(), 500u) << to_string(format);
  }
}

TEST(SimulatedRunSupport, AFaultChangesWhatIsPrinted) {
  SimulatedRun run = simulate(LogFormat::torchtitan, 3);
  const std::string honest = render(run);
  run.accounting.peak = run.peak_sparse;
  EXPECT_NE(render(run), honest);
  run = simulate(LogFormat::torchtitan, 3);
  EXPECT_EQ(render(run), honest);
}

}  // namespace
}  // namespace assay::tests::simulated_run_test
