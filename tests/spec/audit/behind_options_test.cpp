// labels: unit
// Which options a contradiction rests on.
#include <gtest/gtest.h>

#include <string>

#include "spec/audit/behind_options.hpp"
#include "tests/support/read_text.hpp"

namespace assay::spec::audit::behind_options_test {
namespace {

using Options = std::vector<std::string>;

/// Steps of 65,536 tokens in 2 s; `rate` and `counted` times what is true.
Options behind(const std::string& set, double rate, double counted) {
  std::string log = "step,loss,seconds,rate,seen\n";
  for (int i = 1; i <= 20; ++i)
    log += std::to_string(i) + ",2.5,2.0," + std::to_string(rate * 32768) + "," +
           std::to_string(static_cast<long long>(counted * 65536 * i)) + "\n";
  const RunRecord run = tests::read_text(
      log, set, "step=step,loss=loss,seconds=seconds,tokens_per_second=rate,tokens_total=seen");
  return options_behind(run, judge(run));
}

TEST(BehindOptionsSpec, AnOptionIsToldThatAContradictionRestsOn) {
  EXPECT_EQ(behind("tokens_per_step=65536,gpu=NVIDIA H100 SXM", 1, 2),
            Options{"--set tokens_per_step=65536"});
  EXPECT_EQ(behind("tokens_per_step=131072,gpu=NVIDIA H100 SXM", 1, 1),
            Options{"--set tokens_per_step=131072"});
}

TEST(BehindOptionsSpec, NoneIsToldWhereNothingRestsOnIt) {
  EXPECT_EQ(behind("tokens_per_step=65536,gpu=NVIDIA H100 SXM", 1, 1), Options());
  // The tokens since the start say as much of a step's as the option does.
  EXPECT_EQ(behind("tokens_per_step=65536,gpu=NVIDIA H100 SXM", 3, 1), Options());
  // A step that stands twice does so whatever the GPU is.
  const RunRecord run =
      tests::read_text("step,loss\n1,2.5\n2,2.5\n2,2.5\n3,2.5\n4,2.5\n", "gpu=NVIDIA H100 SXM,gpus=8");
  ASSERT_EQ(judge("steps", run).verdict, Verdict::contradicts);
  EXPECT_EQ(options_behind(run, judge(run)), Options());
}

}  // namespace
}  // namespace assay::spec::audit::behind_options_test
