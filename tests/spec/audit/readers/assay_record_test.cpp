// labels: unit
// The fields of our own record that no other test's record holds.
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "spec/audit/invariants.hpp"
#include "spec/audit/readers/read_log.hpp"
#include "spec/config/keys.hpp"
#include "spec/record/write.hpp"
#include "tests/support/example_run.hpp"

namespace assay::spec::audit::assay_record_test {
namespace {

/// The record of one step with this MFU and HFU.
RunRecord record_of(double mfu, double hfu) {
  record::Step step = tests::example_step(1);
  step.mfu = mfu, step.hfu = hfu, step.executed_flops = 3e10;
  std::istringstream in(record::to_json(tests::example_start()) + "\n" + record::to_json(step) + "\n");
  return read_log(in, "run.jsonl");
}

TEST(AssayRecordSpec, StepsHaveTheirMfuAndHfu) {
  const RunRecord run = record_of(0.375, 0.4375);
  ASSERT_EQ(run.steps.size(), 1u);
  EXPECT_EQ(run.steps[0][Field::mfu]->value, 0.375);
  EXPECT_EQ(run.steps[0][Field::hfu]->value, 0.4375);
  EXPECT_EQ(run.unread_lines, 0);
  EXPECT_EQ(judge("hfu", run).verdict, Verdict::holds);
}

TEST(AssayRecordSpec, AnHfuBelowTheMfuContradicts) {
  EXPECT_EQ(judge("hfu", record_of(0.4375, 0.375)).verdict, Verdict::contradicts);
}

/// Records of earlier versions hold settings that are gone (removed_keys).
TEST(AssayRecordSpec, ARemovedSettingChangesNothing) {
  const auto read = [](const record::RunStart& start) {
    std::istringstream in(record::to_json(start) + "\n" + record::to_json(tests::example_step(1)) + "\n");
    return read_log(in, "run.jsonl");
  };
  record::RunStart earlier = tests::example_start();
  for (const RemovedKey& key : removed_keys())
    earlier.settings.insert(earlier.settings.begin(), {std::string(key.name), Value("copy_engines")});
  const RunRecord run = read(earlier), as_now = read(tests::example_start());
  EXPECT_EQ(run.unread_lines, 0);
  EXPECT_EQ(run.steps.size(), 1u);
  for (std::size_t i = 0; i < run.settings.size(); ++i) {
    ASSERT_EQ(run.settings[i].has_value(), as_now.settings[i].has_value()) << i;
    if (run.settings[i]) {
      EXPECT_EQ(run.settings[i]->value, as_now.settings[i]->value) << i;
    }
  }
}

/// Where a step was skipped none is missing; where its line is gone, too, one is.
TEST(AssayRecordSpec, ASkippedStepIsNoMissingStep) {
  record::RunStart start = tests::example_start();
  start.steps = 5;
  record::SkippedStep skipped;
  skipped.step = 3, skipped.reason = "rank 0: loss is nan", skipped.loss = std::nan(""), skipped.skipped = 1;
  record::RunEnd end;
  end.steps = 4, end.tokens = 4 * tests::example_step(1).tokens,
  end.seconds = 4 * tests::example_step(1).seconds;
  end.tokens_per_second = static_cast<double>(end.tokens) / end.seconds;
  for (const bool told : {true, false}) {
    std::string log = record::to_json(start) + "\n";
    for (const std::int64_t number : {1, 2, 3, 4, 5}) {
      if (number != 3) log += record::to_json(tests::example_step(number)) + "\n";
      if (number == 3 && told) log += record::to_json(skipped) + "\n";
    }
    std::istringstream in(log + record::to_json(end) + "\n");
    const RunRecord run = read_log(in, "run.jsonl");
    EXPECT_EQ(run.unread_lines, 0);
    EXPECT_EQ(run.steps.size(), 4u);
    for (const char* invariant : {"steps", "planned_steps"})
      EXPECT_EQ(judge(invariant, run).verdict == Verdict::contradicts, !told) << invariant;
  }
}

/// As another JSON writer leaves a loss that is no number.
TEST(AssayRecordSpec, ALossThatIsNullIsAStepsAndNotQuoted) {
  std::string log = record::to_json(tests::example_start()) + "\n";
  for (const std::int64_t number : {1, 2, 3, 4}) {
    std::string line = record::to_json(tests::example_step(number));
    if (number == 2 || number >= 4) {
      const std::size_t at = line.find("\"loss\":") + 7;
      line.replace(at, line.find(',', at) - at, "null");
    }
    log += line + "\n";
  }
  std::istringstream in(log);
  const RunRecord run = read_log(in, "run.jsonl");
  EXPECT_EQ(run.steps.size(), 4u);
  EXPECT_EQ(run.unread_lines, 0);
  EXPECT_EQ(run.null_losses.count, 2);
  EXPECT_FALSE(run.steps[1][Field::loss]);
  EXPECT_TRUE(run.steps[1][Field::seconds]);
}

/// record.md: readers refuse a value of another type, in any line.
TEST(AssayRecordSpec, AValueOfAnotherTypeIsNoStepsWhereverItStands) {
  const auto unread = [](const std::string& key, const std::string& value, bool null_loss) {
    std::string log = record::to_json(tests::example_start()) + "\n";
    for (const std::int64_t number : {1, 2, 3, 4}) {
      std::string line = record::to_json(tests::example_step(number));
      const auto put = [&](const std::string& name, const std::string& by) {
        const std::size_t at = line.find("\"" + name + "\":") + name.size() + 3;
        line.replace(at, line.find_first_of(",}", at) - at, by);
      };
      if (number == 3) put(key, value);
      if (number == 3 && null_loss) put("loss", "null");
      log += line + "\n";
    }
    std::istringstream in(log);
    return read_log(in, "run.jsonl").unread_lines;
  };
  for (const bool null_loss : {false, true}) {
    EXPECT_EQ(unread("clip_coefficient", "0.5", null_loss), 0);
    EXPECT_EQ(unread("clip_coefficient", "true", null_loss), 1);
    EXPECT_EQ(unread("clip_coefficient", "null", null_loss), 1);
    EXPECT_EQ(unread("clip_coefficient", "\"half\"", null_loss), 1);
  }
}

}  // namespace
}  // namespace assay::spec::audit::assay_record_test
