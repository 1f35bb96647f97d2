// labels: unit
// Tables that hold rows of validations among those of the steps.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "spec/audit/evidence.hpp"
#include "spec/audit/invariants.hpp"
#include "tests/support/read_text.hpp"
#include "tests/support/refusal.hpp"

namespace assay::spec::audit::validations_of_tables_test {
namespace {

using tests::read_mapped;

/// Forty rows of `row(n)`, and behind every `every`-th of them `other(n)`.
std::string rows(const std::string& head, int every, const std::function<std::string(int)>& row,
                 const std::function<std::string(int)>& other) {
  std::string out = head;
  for (int n = 1; n <= 40; ++n) {
    out += row(n) + "\n";
    if (n % every == 0) out += other(n) + "\n";
  }
  return out;
}

std::string csv(const std::string& column, const std::string& word) {
  const auto of = [](int n, const std::string& kind, const std::string& rest) {
    return std::to_string(n) + "," + kind + "," + rest;
  };
  return rows(
      "step," + column + ",loss,tokens_per_second\n", 10,
      [&](int n) { return of(n, "train", std::to_string(5 - 0.05 * n) + ",1000"); },
      [&](int n) { return of(n, word, "3.5,9000"); });
}

std::string json(const std::string& column, const std::string& word) {
  const auto of = [&](int n, const std::string& kind, double loss) {
    return R"({"step": )" + std::to_string(n) + ", \"" + column + R"(": ")" + kind + R"(", "loss": )" +
           std::to_string(loss) + "}";
  };
  return rows(
      "", 10, [&](int n) { return of(n, "train", 5 - 0.05 * n); }, [&](int n) { return of(n, word, 3.5); });
}

void expect_no_steps(const std::string& column, const std::string& word) {
  for (const std::string& log : {csv(column, word), json(column, word)}) {
    const RunRecord run = read_mapped(log);
    EXPECT_EQ(run.steps_seen, 40) << log;
    EXPECT_EQ(run.unread_lines, 0) << log;
    EXPECT_EQ(run.pauses.size(), 4u) << log;
    EXPECT_EQ(judge("steps", run).verdict, Verdict::holds) << log;
  }
}

TEST(ValidationsOfTablesSpec, RowsThatSayTheyAreOfOneAreNoSteps) {
  for (const char* const column : {"split", "Subset", "set", "dataset", "partition", "phase", "MODE"})
    for (const char* const word : {"val", "TEST", "testing", "test_en"}) expect_no_steps(column, word);
  for (const char* const column : {"stage", "kind", "type", "event"})
    for (const char* const word : {"val", "valid", "validate", "Validation", "validating", "eval", "evaluate",
                                   "evaluation", "evaluating", "holdout", " val ", "val/loss"})
      expect_no_steps(column, word);
  EXPECT_EQ(read_mapped(csv("split", "dev_clean")).steps_seen, 40);
  EXPECT_EQ(read_mapped(json("subset", "dev")).steps_seen, 40);
}

TEST(ValidationsOfTablesSpec, ALogMayBeginWithOne) {
  const std::string first = R"({"step": 0, "split": "val", "loss": 11.5})";
  EXPECT_EQ(read_mapped(first + "\n" + json("split", "val")).steps_seen, 40);
  EXPECT_EQ(
      read_mapped("step,split,loss,tokens_per_second\n0,val,11.5,9000\n" + csv("split", "val").substr(34))
          .steps_seen,
      40);
}

/// Where a program runs, or what else it writes, is no validation.
TEST(ValidationsOfTablesSpec, OtherWordsAndOtherColumnsSayNothing) {
  for (const std::string& log : {csv("stage", "dev"), csv("split", "train_test"), csv("name", "val"),
                                 json("stage", "dev"), json("split", "valley"), json("name", "val")})
    EXPECT_EQ(read_mapped(log).steps_seen, 44) << log;
}

/// A word on every row tells no row from another.
TEST(ValidationsOfTablesSpec, ATableOfNothingElseIsRefusedByItsColumn) {
  for (const std::string& log : {std::string("step,split,loss\n1,test,2.5\n2,test,2.4\n"),
                                 std::string(R"({"step": 1, "split": "test", "loss": 2.5})") + "\n" +
                                     R"({"step": 2, "split": "test", "loss": 2.4})" + "\n"})
    tests::expect_refused(log, ExitCode::bad_data, "says \"test\" under \"split\" on every row");
  EXPECT_EQ(read_mapped("step,stage,loss\n1,test,2.5\n2,test,2.4\n").steps_seen, 2);
}

/// Rows of `every`-th steps that repeat their number, with or without a loss.
RunRecord with_others(int every, const std::string& loss) {
  return read_mapped(rows(
      "step,loss,tokens_per_second\n", every,
      [](int n) { return std::to_string(n) + "," + std::to_string(5 - 0.05 * n) + ",1000"; },
      [&](int n) { return std::to_string(n) + "," + loss + ",58000"; }));
}

TEST(ValidationsOfTablesSpec, ARowThatRepeatsAStepWithoutItsLossIsNoStep) {
  const auto steps = [](const RunRecord& run) { return Evidence(run).steps.size(); };
  for (const int every : {3, 5, 10, 40}) {
    EXPECT_EQ(steps(with_others(every, "")), 40u) << every;
    EXPECT_EQ(judge("steps", with_others(every, "")).judged, 40) << every;
    EXPECT_EQ(judge("rate_steady", with_others(every, "")).verdict, Verdict::holds) << every;
    EXPECT_EQ(steps(with_others(every, "3.5")), 40u + 40u / static_cast<unsigned>(every)) << every;
  }
  EXPECT_EQ(judge("rate_steady", with_others(10, "3.5")).verdict, Verdict::contradicts);
  EXPECT_EQ(steps(with_others(2, "")), 60u) << "a third of the rows";
  EXPECT_EQ(steps(with_others(1, "")), 80u) << "every step";
}

/// The time of a validation is none of its steps'.
TEST(ValidationsOfTablesSpec, RowsThatAreNoStepsPause) {
  const Evidence evidence(with_others(10, ""));
  EXPECT_EQ(evidence.pauses, std::vector<std::int64_t>({12, 23, 34, 45}));
}

/// A row that fills what its step lacks is the step's other half.
TEST(ValidationsOfTablesSpec, ARateOnARowOfItsOwnIsNotLost) {
  const RunRecord run = read_mapped(rows(
      "step,loss,tokens_per_second\n", 5, [](int n) { return std::to_string(n) + ",2.5,"; },
      [](int n) { return std::to_string(n) + ",,1000"; }));
  EXPECT_EQ(Evidence(run).steps.size(), 48u);
}

/// Some write the validation first.
TEST(ValidationsOfTablesSpec, ARowBeforeTheStepOfItsNumberIsNoStep) {
  std::string log = "step,loss,tokens_per_second\n";
  for (int n = 1; n <= 40; ++n) {
    if (n % 10 == 0) log += std::to_string(n) + ",,58000\n";
    log += std::to_string(n) + "," + std::to_string(5 - 0.05 * n) + ",1000\n";
  }
  EXPECT_EQ(Evidence(read_mapped(log)).steps.size(), 40u);
  EXPECT_EQ(judge("rate_steady", read_mapped(log)).verdict, Verdict::holds);
  // Of the next step, which the last one has not.
  EXPECT_EQ(Evidence(read_mapped(log + "41,,58000\n")).steps.size(), 40u);
  EXPECT_EQ(Evidence(with_others(10, "")).steps.size(), 40u);
  EXPECT_EQ(Evidence(read_mapped("step,loss,tokens_per_second\n1,3,1000\n2,3,1000\n3,,1000\n")).steps.size(),
            3u);
}

/// Of a table without losses no row lacks its own.
TEST(ValidationsOfTablesSpec, WithoutLossesEveryRowIsAStep) {
  const RunRecord run = read_mapped(rows(
      "step,tokens_per_second\n", 10, [](int n) { return std::to_string(n) + ",1000"; },
      [](int n) { return std::to_string(n) + ",1003"; }));
  EXPECT_EQ(Evidence(run).steps.size(), 44u);
}

/// Another step that has no loss is a step.
TEST(ValidationsOfTablesSpec, AStepMayLackItsLoss) {
  std::string log = "step,loss,tokens_per_second\n";
  for (int n = 1; n <= 40; ++n) log += std::to_string(n) + (n % 10 == 0 ? "," : ",2.5") + ",1000\n";
  const Evidence evidence(read_mapped(log));
  EXPECT_EQ(evidence.steps.size(), 40u);
}

}  // namespace
}  // namespace assay::spec::audit::validations_of_tables_test
