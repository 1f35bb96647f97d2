// labels: unit
// Lines that stand in a log a second time, and restarts, which do their steps at another time.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "spec/audit/invariants.hpp"
#include "tests/spec/audit/lines_without_settings.hpp"
#include "tests/support/read_text.hpp"

namespace assay::spec::audit::copied_lines_test {
namespace {

using lines_without_settings::text;

/// One line of Megatron-LM at a time, stamped; `again`: the step is done a second time.
std::string line_of(int step, double clock, bool again) {
  const double ms = 5400 * (1 + 0.01 * std::sin(3.1 * step + (again ? 1 : 0)));
  return text(
      " [2024-04-06 03:%02d:%02d] iteration %8d/    9999 | consumed samples: %12d | elapsed time per "
      "iteration "
      "(ms): %.1f | learning rate: 1.420000E-05 | global batch size:   128 | lm loss: 1.8%05dE+00 | loss "
      "scale: 1.0 | grad norm: 1.300 |\n",
      static_cast<int>(clock) / 60, static_cast<int>(clock) % 60, step, 128 * step, ms, 100 * step);
}

std::string joined(const std::vector<std::string>& lines, std::size_t from, std::size_t to) {
  std::string out;
  for (std::size_t i = from; i < to; ++i) out += lines[i];
  return out;
}

std::vector<std::string> written(int steps) {
  std::vector<std::string> out;
  for (int step = 1; step <= steps; ++step) out.push_back(line_of(step, 5.4 * step, false));
  return out;
}

TEST(CopiedLinesSpec, ABlockThatStandsTwiceIsNoRestart) {
  const std::vector<std::string> lines = written(40);
  // Behind the block itself, and behind lines that follow it.
  for (const std::size_t behind : {24U, 30U}) {
    const Result told = judge("steps", tests::read_text(joined(lines, 0, behind) + joined(lines, 19, 24) +
                                                        joined(lines, behind, 40)));
    ASSERT_EQ(told.verdict, Verdict::contradicts) << behind;
    const auto number = [&](std::size_t n) { return std::to_string(n); };
    EXPECT_EQ(told.note,
              "lines " + number(behind + 1) + " to " + number(behind + 5) + " are copies of lines 20 to 24");
    ASSERT_EQ(told.causes.size(), 1U);
    EXPECT_EQ(told.causes.front().id, "steps_copied");
    EXPECT_EQ(told.causes.front().text.find(told.note), 0U);
    EXPECT_EQ(told.contradicted, 5);
  }
}

TEST(CopiedLinesSpec, ARestartHoldsThatDoesItsStepsAtAnotherTime) {
  const std::vector<std::string> lines = written(24);
  std::string log = joined(lines, 0, 24);
  for (int step = 20; step <= 40; ++step) log += line_of(step, 5.4 * step + 300, true);
  const Result restarted = judge("steps", tests::read_text(log));
  EXPECT_EQ(restarted.verdict, Verdict::holds);
  EXPECT_EQ(restarted.note, "1 restart from an earlier step");
}

/// Without stamps, times tell; losses of a run that does its steps again bit for bit are the same.
TEST(CopiedLinesSpec, LossesAloneAreNoCopies) {
  const auto judged = [](const char* form, bool again_alike) {
    std::string log = "step,loss,ms\n";
    for (const auto& [from, to] : {std::pair(1, 30), std::pair(21, 60)})
      for (int step = from; step <= to; ++step)
        log += text(form, step, 4 - 0.01 * step, 900 + (step * (from == 1 || again_alike ? 37 : 53)) % 71);
    const bool times = std::string(form).find("%d,%.4f,%d") == 0;
    return judge("steps", tests::read_mapped(
                              log, times ? "step=step,loss=loss,seconds=ms:ms" : "step=step,loss=loss"));
  };
  EXPECT_EQ(judged("%d,%.4f,%d\n", true).verdict, Verdict::contradicts);
  EXPECT_EQ(judged("%d,%.4f,%d\n", false).verdict, Verdict::holds);
  EXPECT_EQ(judged("%d,%.4f,\n", true).verdict, Verdict::holds);
}

/// As simulated logs do that draw the same numbers again: the log's own word stands.
TEST(CopiedLinesSpec, WithoutStampsALogThatSaysThatItRestartedIsBelieved) {
  std::string log = "step,loss,ms\n";
  for (const auto& [from, to] : {std::pair(1, 30), std::pair(21, 60)})
    for (int step = from; step <= to; ++step)
      log += text("%d,%.4f,%d\n", step, 4 - 0.01 * step, 900 + step * 37 % 71);
  RunRecord run = tests::read_mapped(log, "step=step,loss=loss,seconds=ms:ms");
  EXPECT_EQ(judge("steps", run).verdict, Verdict::contradicts);
  run.restarts.push_back({32, std::nullopt});
  EXPECT_EQ(judge("steps", run).verdict, Verdict::holds);
}

}  // namespace
}  // namespace assay::spec::audit::copied_lines_test
