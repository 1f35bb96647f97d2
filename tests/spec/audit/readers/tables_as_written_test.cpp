// labels: unit
// Tables and JSON lines as people keep them: keys of their own, times as clocks write them, rows left out.
#include <gtest/gtest.h>

#include <string>

#include "spec/audit/invariants.hpp"
#include "tests/support/read_text.hpp"

namespace assay::spec::audit::tables_as_written_test {
namespace {

using tests::read_mapped;

/// Twenty lines of `line(n)`, those from 9 to 11 left out and "..." in their place where `elision` is given.
template <class Line>
std::string lines(Line&& line, const std::string& elision = "") {
  std::string out;
  for (int n = 1; n <= 20; ++n) {
    if (elision.empty() || n < 9 || n > 11) out += line(n) + "\n";
    if (!elision.empty() && n == 9) out += elision + "\n";
  }
  return out;
}

std::string counted(int n, const std::string& rest) {
  return "{\"current_steps\": " + std::to_string(n) + ", " + rest + "}";
}

TEST(TablesAsWrittenSpec, StepsNeedNoKeyCalledLossWhereTheCommandLineMapsOthers) {
  const std::string other_loss = lines([](int n) { return counted(n, R"("train_loss": 2.98, "lr": 1e-5)"); });
  EXPECT_EQ(read_mapped(other_loss, "step=current_steps,loss=train_loss").steps.size(), 20u);
  const std::string no_loss = lines([](int n) { return counted(n, R"("seconds": 1.5, "tokens": 2000)"); });
  EXPECT_EQ(read_mapped(no_loss, "step=current_steps,seconds=seconds,tokens=tokens").steps.size(), 20u);
}

TEST(TablesAsWrittenSpec, LlamaFactorysEvaluationsAreNoStepsWhateverIsMapped) {
  const std::string log = lines([](int n) {
    const std::string step =
        counted(n, R"("loss": 2.98, "elapsed_time": "0:00:0)" + std::to_string(n / 3) + "\"");
    return n % 5 == 0 ? step + "\n" + counted(n, R"("eval_loss": 2.9, "elapsed_time": "0:00:07")") : step;
  });
  EXPECT_EQ(read_mapped(log).steps.size(), 20u);
  EXPECT_EQ(read_mapped(log, "step=current_steps,elapsed=elapsed_time").steps.size(), 20u);
}

TEST(TablesAsWrittenSpec, ClockTimesMayHaveFractions) {
  const RunRecord run = read_mapped(
      "n,loss,t\n1,1.7,0:00:01.512000\n2,1.6,0:00:03.02\n3,1.6,\"1 day, 0:00:04\"\n4,1.6,0:00:0x.5\n",
      "step=n,loss=loss,elapsed=t");
  ASSERT_EQ(run.steps.size(), 3u);
  const Printed first = run.steps[0][Field::elapsed].value(), second = run.steps[1][Field::elapsed].value();
  EXPECT_DOUBLE_EQ(first.value, 1.512);
  EXPECT_NEAR(first.high - first.low, 1.5e-6, 1e-9);
  EXPECT_NEAR(second.low, 3.015, 1e-9);
  EXPECT_NEAR(second.high, 3.03, 1e-9);
  EXPECT_EQ(run.steps[2][Field::elapsed]->high, 86405);
  EXPECT_EQ(run.unread_lines, 1);
}

TEST(TablesAsWrittenSpec, RowsThatAreLeftOutAreNotLost) {
  const auto json = [](int n) {
    return R"({"step": )" + std::to_string(n) + R"(, "loss": )" + std::to_string(5 - 0.01 * n) + "}";
  };
  const auto row = [](int n) { return std::to_string(n) + "," + std::to_string(5 - 0.01 * n); };
  for (const std::string& log :
       {lines(json, "..."), lines(json, "{...}"), "step,loss\n" + lines(row, "..."),
        "step,loss\n" + lines(row, "...,..."), "step,loss\n" + lines(row, "# ...")}) {
    const RunRecord run = read_mapped(log);
    ASSERT_EQ(run.steps.size(), 17u) << log;
    EXPECT_EQ(run.unread_lines, 0) << log;
    EXPECT_EQ(judge("steps", run).verdict, Verdict::holds) << log;
  }
  EXPECT_EQ(judge("steps", read_mapped("step,loss\n" + lines(row, "# a note"))).verdict,
            Verdict::contradicts);
}

/// W&B's history: a validation has a row of its own, of the step's number and the time.
TEST(TablesAsWrittenSpec, ARowOfNumberAndStampAloneIsNoStep) {
  std::string json, csv = "step,time,loss,val\n";
  for (int n = 1; n <= 20; ++n) {
    const std::string step = std::to_string(n), time = std::to_string(10 * n);
    json += R"({"step": )" + step + R"(, "time": )" + time + R"(, "loss": 2.5})" + "\n";
    csv += step + "," + time + ",2.5,\n";
    if (n % 5 != 0) continue;
    json += R"({"step": )" + step + R"(, "time": )" + time + R"(.5, "val": {"loss": 2.4}})" + "\n";
    csv += step + "," + time + ".5,,2.4\n";
  }
  for (const std::string& log : {json, csv}) {
    const RunRecord run = read_mapped(log, "step=step,elapsed=time,loss=loss");
    EXPECT_EQ(run.steps_seen, 20) << log;
    EXPECT_EQ(judge("steps", run).verdict, Verdict::holds) << log;
  }
}

}  // namespace
}  // namespace assay::spec::audit::tables_as_written_test
