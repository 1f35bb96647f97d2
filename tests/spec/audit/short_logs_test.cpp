// labels: unit
// Logs of a few lines: one that is wrong is told from a mistake of all.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "spec/audit/hypotheses.hpp"
#include "tests/support/read_text.hpp"
#include "tests/support/simulated/run.hpp"

namespace assay::spec::audit::short_logs_test {
namespace {

/// The first causes of what contradicts in torchtitan's log of `lines` lines, one number of line `wrong`
/// (from 0; -1: of every line) 1.3 times as large.
std::set<std::string> causes(std::size_t lines, int wrong, Field field) {
  const tests::SimulatedRun run = tests::simulate(tests::LogFormat::torchtitan, 5000);
  tests::Report report = tests::report(run);
  report.steps.resize(lines);
  for (std::size_t i = 0; i < lines; ++i)
    if (wrong < 0 || i == static_cast<std::size_t>(wrong)) *report.steps[i][field] *= 1.3;
  const RunRecord record = tests::read_text(render(run, report));
  std::set<std::string> out;
  for (const Result& result : audit(record).results)
    if (result.verdict == Verdict::contradicts)
      out.insert(result.causes.empty() ? "nothing" : result.causes.front().id);
  return out;
}

TEST(ShortLogsSpec, OneOddLineIsNamed) {
  for (const std::size_t lines : {3u, 4u, 5u, 7u})
    for (int wrong = 0; wrong < static_cast<int>(lines); ++wrong) {
      EXPECT_EQ(causes(lines, wrong, Field::mfu), (std::set<std::string>{"line_mfu"})) << lines << wrong;
      EXPECT_EQ(causes(lines, wrong, Field::flops_rate), (std::set<std::string>{"line_flops_rate"}))
          << lines << wrong;
    }
}

TEST(ShortLogsSpec, OfTwoLinesNoneIsOddNorOfAMistakeOfAll) {
  EXPECT_EQ(causes(2, 1, Field::mfu), (std::set<std::string>{"unknown"}));
  for (const std::size_t lines : {3u, 5u})
    EXPECT_EQ(causes(lines, -1, Field::mfu), (std::set<std::string>{"unknown"})) << lines;
}

}  // namespace
}  // namespace assay::spec::audit::short_logs_test
