// labels: unit
// Tokens/s of which nobody says whose they are, beside a clock and the tokens since the start.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

#include "spec/audit/hypotheses.hpp"
#include "spec/audit/mean_since_start.hpp"
#include "tests/spec/audit/result_of.hpp"
#include "tests/support/read_text.hpp"

namespace assay::spec::audit::mean_since_start_test {
namespace {

using tests::first_cause;
using tests::read_text;
using tests::result_of;

constexpr char columns[] =
    "step=current_steps,loss=loss,elapsed=elapsed_time,tokens_per_second=throughput,tokens_total=total_"
    "tokens";

struct Written {
  double times = 1;        ///< what the rate is of what it should be
  double pause = 0;        ///< before every line [s]
  double evaluation = 0;   ///< every hundredth step, behind its line [s]
  bool of_steps = false;   ///< the rate is that of the last step, not the mean since the start
  double seen_before = 0;  ///< tokens of a run that this one resumes
};

/// trainer_log.jsonl as LLaMA-Factory writes it: every tenth step of about 2.4 s and 32,768 tokens.
RunRecord read(const Written& run, const std::string& set = "") {
  std::string log;
  double clock = 4, tokens = run.seen_before;
  for (int k = 1; k <= 400; ++k) {
    const double seconds = 2.4 * (1 + 0.02 * std::sin(2.7 * k));
    clock += seconds, tokens += 32768;
    if (k % 10 != 0) continue;
    clock += run.pause;
    const double rate = run.times * (run.of_steps ? 32768 / seconds : tokens / clock);
    const int second = static_cast<int>(clock);
    char line[300];
    std::snprintf(line, sizeof line,
                  "{\"current_steps\": %d, \"total_steps\": 400, \"loss\": %.4f, \"elapsed_time\": "
                  "\"%d:%02d:%02d\", \"throughput\": %.2f, \"total_tokens\": %.0f}\n",
                  k, 2 - 0.002 * k, second / 3600, second / 60 % 60, second % 60, rate, tokens);
    log += line;
    if (k % 100 == 0) clock += run.evaluation;
  }
  return read_text(log, set, columns);
}

Verdict judged(const Written& run, const std::string& set = "") {
  return result_of(audit(read(run, set)), "rate_wall_clock").verdict;
}

TEST(MeanSinceStartSpec, NoRateIsMoreThanAllGpusDid) {
  for (const double times : {2.0, 4.0, 8.0, 100.0}) {
    const Audit all = audit(read({times}));
    EXPECT_EQ(result_of(all, "rate_wall_clock").verdict, Verdict::contradicts) << times;
    if (times < 64) {
      EXPECT_EQ(first_cause(all), "rate_multiple") << times;
      EXPECT_NEAR(all.readings.front().corrected.tokens_per_second->middle(), 32768 / 2.4, 200) << times;
    }
  }
  EXPECT_EQ(first_cause(audit(read({4}, "gpus=4"))), "rate_times_ranks");
}

TEST(MeanSinceStartSpec, AMeanSinceTheStartHolds) {
  for (const double times : {0.125, 1.0, 3.0})
    EXPECT_EQ(multiple_of_mean_since_start(Evidence(read({times}))), times);
  EXPECT_EQ(multiple_of_mean_since_start(Evidence(read({1, 0, 300, true}))), std::nullopt) << "of steps";
  EXPECT_EQ(judged({}), Verdict::holds);
  EXPECT_EQ(judged({}, "gpus=8"), Verdict::holds);
  EXPECT_EQ(judged({1, 0, 300}), Verdict::holds) << "evaluations are in the clock and in the rate";
  EXPECT_EQ(judged({1, 60}), Verdict::holds);
  EXPECT_EQ(judged({1, 0, 0, false, 9e7}), Verdict::holds)
      << "tokens of the run before, over this one's time";
  EXPECT_EQ(judged({0.125}, "gpus=8"), Verdict::holds) << "one GPU's";
  EXPECT_NE(judged({0.125}), Verdict::contradicts) << "one GPU's, of as many as nobody says";
}

/// A rate of single steps leaves out what lies between them: as much as where the GPUs are known.
TEST(MeanSinceStartSpec, ARateOfStepsMayPauseBetweenThem) {
  EXPECT_EQ(judged({1, 0, 0, true}), Verdict::holds);
  EXPECT_EQ(judged({1, 0, 300, true}), Verdict::holds);
  EXPECT_EQ(judged({1, 24, 0, true}), Verdict::holds) << "as long as the steps, between all lines";
  EXPECT_EQ(judged({16, 0, 0, true}), Verdict::contradicts);
  EXPECT_EQ(judged({16, 0, 300, true}), Verdict::contradicts) << "evaluations are rare";
  EXPECT_EQ(judged({0.125, 0, 0, true}), Verdict::cannot_be_judged) << "one GPU's";
}

TEST(MeanSinceStartSpec, NoReadingIsToldTwice) {
  for (const Reading& reading : audit(read({8}, "gpus=8")).readings)
    for (const Change& change : reading.changes)
      for (const std::string& other : change.alternatives) {
        EXPECT_EQ(std::count(change.alternatives.begin(), change.alternatives.end(), other), 1) << other;
        EXPECT_NE(other, change.text);
      }
}

}  // namespace
}  // namespace assay::spec::audit::mean_since_start_test
