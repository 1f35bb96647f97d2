// labels: cli
// The report of a long run takes time in proportion to its steps, and shows its spikes.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <fstream>

#include "spec/record/chain.hpp"
#include "spec/record/write.hpp"
#include "tests/cli/built_program.hpp"
#include "tests/support/example_run.hpp"
#include "tests/support/scratch.hpp"

namespace assay::long_report_test {
namespace {

/// Of the processes that have ended [s].
double processor_time() {
  rusage used{};
  getrusage(RUSAGE_CHILDREN, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

/// A million steps take 2 s at the most (docs/output.md), a tenth of them a quarter of that here: quadratic
/// work would be ten times too long.
TEST(LongReportCli, AHundredThousandStepsTakeAMoment) {
  constexpr std::int64_t count = 100'000, spike = 77'777;
  const tests::Scratch scratch;
  {
    std::ofstream record(scratch.path() / "run.jsonl", std::ios::binary);
    spec::record::Chain chain;
    record << chain.line_of(to_json(spec::record::Event(tests::example_start()))) << "\n";
    for (std::int64_t i = 1; i <= count; ++i) {
      spec::record::Step step = tests::example_step(i);
      step.loss = i == spike ? 98.7654
                             : 5 - 3e-5 * static_cast<double>(i) + 1e-3 * static_cast<double>(i * 7919 % 101);
      step.mfu = step.hfu = 0.5;
      step.phases.clip = 1e-4 * static_cast<double>(i % 17);
      record << chain.line_of(to_json(spec::record::Event(step))) << "\n";
    }
  }
  const double before = processor_time();
  const auto outcome = tests::assay({"report", scratch.path().string()});
  const double seconds = processor_time() - before;
  ASSERT_EQ(outcome.code, 0) << outcome.messages;
  EXPECT_EQ(outcome.messages, "");
  EXPECT_LT(seconds, 0.5);
  std::ifstream html(scratch.path() / "report.html");
  const std::string page{std::istreambuf_iterator<char>(html), {}};
  EXPECT_NE(page.find("98.7654"), std::string::npos) << "the spike is under the pointer";
  EXPECT_NE(page.find("100,000 of 250"), std::string::npos);
}

}  // namespace
}  // namespace assay::long_report_test
