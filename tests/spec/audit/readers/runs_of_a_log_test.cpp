// labels: unit
// Ranks, runs and restarts of one file, and the steps that are kept of a long one.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "spec/audit/readers/read_log.hpp"
#include "spec/error.hpp"
#include "tests/support/simulated/run.hpp"

namespace assay::spec::audit::runs_of_a_log_test {
namespace {

using tests::LogFormat;

std::vector<RunRecord> read_all(const std::string& log, const ReadOptions& options = {}) {
  std::istringstream in(log);
  return read_logs(in, "log", options);
}

RunRecord read_one(const std::string& log, const ReadOptions& options = {}) {
  std::istringstream in(log);
  return read_log(in, "log", options);
}

TEST(RunsOfALogSpec, RanksAreToldApart) {
  std::string log;
  for (int step = 1; step <= 3; ++step)
    for (int rank = 0; rank < 4; ++rank)
      log += "[rank" + std::to_string(rank) + "]:[titan] step:  " + std::to_string(step) +
             "  loss:  6.4567  grad_norm:  1.2345  memory: 33.10GiB(41.80%)  tps: 7,012  tflops: 406.07  "
             "mfu: 41.06%\n";
  const std::vector<RunRecord> runs = read_all(log);
  ASSERT_EQ(runs.size(), 1u);
  ASSERT_EQ(runs[0].steps.size(), 12u);
  EXPECT_EQ(runs[0].steps[5][Field::rank]->value, 1);
}

/// The place is told of once per run, before most of it is written, and holds all steps that are kept.
TEST(RunsOfALogSpec, TheReaderIsToldWhereTheStepsOfALongLogWillStand) {
  static std::vector<std::pair<void*, std::size_t>> told;
  told.clear();
  ReadOptions options;
  options.written_soon = [](void* start, std::size_t bytes) { told.emplace_back(start, bytes); };
  const auto log = [](int steps) {
    std::string out;
    for (int step = 1; step <= steps; ++step)
      out += "iter " + std::to_string(step) + ": loss 2.5000, time 250.00ms, mfu 40.00%\n";
    return out;
  };
  read_one(log(1000), options);
  EXPECT_TRUE(told.empty());
  const RunRecord run = read_one(log(20'000), options);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(run.steps.data(), told[0].first);
  EXPECT_GE(told[0].second, run.steps.size() * sizeof(Step));
}

TEST(RunsOfALogSpec, ASecondRunInTheFileIsASecondRecord) {
  tests::SimulatedRun one = tests::simulate(LogFormat::llmc, 1), two = tests::simulate(LogFormat::llmc, 2);
  const std::vector<RunRecord> runs = read_all(tests::render(one) + tests::render(two));
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0].steps_seen, static_cast<std::int64_t>(one.steps.size()));
  EXPECT_EQ(runs[1].steps_seen, static_cast<std::int64_t>(two.steps.size()));
  EXPECT_EQ(runs[1].origin, "log (run 2 of 2)");
  EXPECT_THROW(read_one(tests::render(one) + tests::render(two)), UserError);
}

TEST(RunsOfALogSpec, ARestartIsSeenAsARestart) {
  const tests::SimulatedRun run = tests::simulate(LogFormat::torchtitan, 4);
  const tests::Report whole = tests::report(run);
  tests::Report first = whole, second = whole;
  const auto half = static_cast<std::ptrdiff_t>(whole.steps.size() / 2);
  ASSERT_GE(half, 2);
  first.steps.resize(static_cast<std::size_t>(half));
  second.steps.erase(second.steps.begin(), second.steps.begin() + half - 1);  // one step done again
  std::string again = tests::render(run, second);
  const double done = *second.steps[0][Field::step] - 1;
  again.replace(again.find("Training starts at step 1"), 25,
                "Training starts at step " + std::to_string(static_cast<int>(done) + 1));
  const RunRecord record = read_one(tests::render(run, first) + again);
  EXPECT_EQ(record.steps_seen, static_cast<std::int64_t>(whole.steps.size() + 1));
  ASSERT_EQ(record.restarts.size(), 1u);
  EXPECT_EQ(record.restarts[0].step.value_or(-1), static_cast<std::int64_t>(done));
}

TEST(RunsOfALogSpec, LongLogsAreThinnedByTheStatedRule) {
  std::string log;
  const std::int64_t count = 5 * static_cast<std::int64_t>(RunRecord::kept_steps);
  for (std::int64_t i = 0; i < count; ++i)
    log += "iter " + std::to_string(i) + ": loss 2.5000, time 100.00ms, mfu 30.00%\n";
  std::int64_t seen = 0;
  ReadOptions options;
  options.step_check = [&](const RunRecord& so_far, const Step& step) {
    EXPECT_EQ(so_far.format.name, "nanogpt");
    ++seen;
    return std::llround(step[Field::step]->value) % 9973 == 5000;
  };
  const RunRecord run = read_one(log, options);
  EXPECT_EQ(seen, count);
  EXPECT_EQ(run.steps_seen, count);
  EXPECT_LE(run.steps.size(), RunRecord::kept_steps + 1000);
  EXPECT_GT(run.steps.size(), RunRecord::kept_steps * 3 / 4 - 10);
  const auto number = [&](std::size_t i) { return std::llround(run.steps[i][Field::step]->value); };
  const std::size_t quarter = RunRecord::kept_steps / 4;
  for (std::size_t i = 0; i < quarter; ++i) ASSERT_EQ(number(i), static_cast<std::int64_t>(i));
  for (std::size_t i = 0; i < quarter; ++i)
    ASSERT_EQ(number(run.steps.size() - 1 - i), count - 1 - static_cast<std::int64_t>(i));
  std::int64_t kept = 0;
  for (std::size_t i = 0; i < run.steps.size(); ++i) {
    if (i > 0) {
      ASSERT_LT(number(i - 1), number(i));
    }
    kept += number(i) % 9973 == 5000;
  }
  EXPECT_EQ(kept, (count - 5000 + 9972) / 9973) << "every step that contradicts is kept";
}

/// Lines behind the first 2,048 are kept as text: what tells runs apart is seen in them too.
constexpr int late = 3000;

TEST(RunsOfALogSpec, AStampThatFallsBackFarDownALogIsAnotherRuns) {
  const auto line = [](int month, int step) {
    char out[200];
    std::snprintf(
        out, sizeof out,
        "[titan] 2025-%02d-%02d %02d:%02d:00,123 - root - INFO - step: %2d  loss:  2.5000  grad_norm:  "
        "1.2345  memory: 33.10GiB(41.80%%)  tps: 7,012  tflops: 406.07  mfu: 41.06%%\n",
        month, 9 + step / 1440, step / 60 % 24, step % 60, step);
    return std::string(out);
  };
  std::string log;
  for (int step = 1; step <= late; ++step) log += line(3, step);
  for (int step = late + 1; step <= late + 20; ++step) log += line(2, step);
  const std::vector<RunRecord> runs = read_all(log);
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0].steps_seen, late);
  EXPECT_EQ(runs[1].steps_seen, 20);
}

TEST(RunsOfALogSpec, AnEpochThatBeginsAnewFarDownATableIsAnotherRuns) {
  std::string log = "epoch,loss,seconds\n";
  for (const int lines : {late, 20})
    for (int i = 1; i <= lines; ++i) log += std::to_string(i) + ".5,2.5000,0.100\n";
  const std::vector<RunRecord> runs = read_all(log);
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0].steps_seen, late);
}

TEST(RunsOfALogSpec, AnEarlierStepOfAnotherPlanFarDownATableIsAnotherRuns) {
  std::string log = "step,loss,planned_steps,step_sequences\n";
  for (int i = 1; i <= late; ++i) log += std::to_string(i) + ",2.5000,9000,64\n";
  std::string other;
  for (int i = late - 20; i <= late; ++i) other += std::to_string(i) + ",2.4000,5000,32\n";
  const std::vector<RunRecord> runs = read_all(log + other);
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0].steps_seen, late);
  // And where the plan changed far down the log, as of a run that is resumed for longer with more sequences.
  std::string resumed;
  for (int i = late + 1; i <= late + 9; ++i) resumed += std::to_string(i) + ",2.4000,5000,32\n";
  EXPECT_EQ(read_all(log + resumed).size(), 1u);
  EXPECT_EQ(read_all(log + resumed + other).size(), 1u);
}

}  // namespace
}  // namespace assay::spec::audit::runs_of_a_log_test
