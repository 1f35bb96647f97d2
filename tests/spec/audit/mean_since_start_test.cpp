// labels: unit
// Tokens/s of which nobody says whose they are, beside a clock and the tokens since the start.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <sstream>
#include <string>

#include "spec/audit/hypotheses.hpp"
#include "spec/audit/invariants.hpp"
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
  int from = 0;            ///< the lines behind this step are `times` what they should be
};

/// trainer_log.jsonl as LLaMA-Factory writes it: every tenth step of about 2.4 s and 32,768 tokens.
std::string lines(const Written& run) {
  std::string log;
  double clock = 4, tokens = run.seen_before;
  for (int k = 1; k <= 400; ++k) {
    const double seconds = 2.4 * (1 + 0.02 * std::sin(2.7 * k));
    clock += seconds, tokens += 32768;
    if (k % 10 != 0) continue;
    clock += run.pause;
    const double rate = (k > run.from ? run.times : 1) * (run.of_steps ? 32768 / seconds : tokens / clock);
    const int second = static_cast<int>(clock);
    char line[300];
    std::snprintf(line, sizeof line,
                  "{\"current_steps\": %d, \"total_steps\": 400, \"loss\": %.4f, \"elapsed_time\": "
                  "\"%d:%02d:%02d\", \"throughput\": %.2f, \"total_tokens\": %.0f}\n",
                  k, 2 - 0.002 * k, second / 3600, second / 60 % 60, second % 60, rate, tokens);
    log += line;
    if (k % 100 == 0) clock += run.evaluation;
  }
  return log;
}

/// As a table of whose columns nobody knows more than what they are.
RunRecord read(const Written& run, const std::string& set = "") {
  return read_text(lines(run), set, columns);
}

std::string first_text(const Audit& all) { return all.readings.front().changes.at(0).text; }

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
  for (const double times : {0.5, 2.0, 1000.0})
    EXPECT_EQ(judged({times, 0, 0, false, 0, 390}, "gpus=8"), Verdict::contradicts) << "one line of forty";
  EXPECT_EQ(judged({1, 0, 300}), Verdict::holds) << "evaluations are in the clock and in the rate";
  EXPECT_EQ(judged({1, 60}), Verdict::holds);
  EXPECT_EQ(judged({1, 0, 0, false, 9e7}), Verdict::holds)
      << "tokens of the run before, over this one's time";
  EXPECT_EQ(judged({0.125}, "gpus=8"), Verdict::holds) << "one GPU's";
  EXPECT_NE(judged({0.125}), Verdict::contradicts) << "one GPU's, of as many as nobody says";
}

/// Without a mapping the file is LLaMA-Factory's, whose tokens/s are a mean by its source.
TEST(MeanSinceStartSpec, OfLlamaFactorysEveryLineIsHeldToIt) {
  const auto of_file = [](const Written& run) { return judge("rate_wall_clock", read_text(lines(run))); };
  for (const Written& honest : {Written{}, {1, 0, 300}, {1, 60}, {1, 0, 0, false, 9e7}}) {
    EXPECT_EQ(of_file(honest).verdict, Verdict::holds);
    EXPECT_EQ(of_file(honest).judged, 40);
  }
  for (const double times : {0.125, 0.5, 1.5, 2.0, 1000.0}) {
    EXPECT_EQ(of_file({times}).contradicted, 40) << times;
    EXPECT_EQ(of_file({times, 0, 0, false, 0, 200}).contradicted, 20) << times;
    EXPECT_EQ(of_file({times, 0, 0, false, 0, 390}).contradicted, 1) << times;
  }
  EXPECT_EQ(first_cause(audit(read_text(lines({8})))), "rate_multiple");
  // Of a part of the lines, and of one, the factor and the number are told.
  const std::string part = first_text(audit(read_text(lines({2, 0, 0, false, 0, 200}))));
  EXPECT_NE(part.find("1.000 times, on other lines 2.00 times"), std::string::npos) << part;
  const std::string all = first_text(audit(read_text(lines({1.5}))));
  EXPECT_NE(all.find("tokens/s is 1.50 times what tokens and time"), std::string::npos) << all;
  const Audit one = audit(read_text(lines({2, 0, 0, false, 0, 390})));
  EXPECT_EQ(result_of(one, "rate_wall_clock").causes.front().id, "line_tokens_per_second");
  const RunRecord run = read_text(lines({}));
  EXPECT_EQ(run.steps.back()[Field::planned_steps]->value, 400);
  EXPECT_EQ(judge("rate_steady", run).verdict, Verdict::cannot_be_judged);
}

/// The key that tells whose the lines are may stand behind the others.
TEST(MeanSinceStartSpec, KeysOfLlamaFactorysStandInAnyOrder) {
  std::istringstream in(lines({2}));
  std::string log, line;
  while (std::getline(in, line)) {
    const std::size_t first = line.find(", ");
    log += "{" + line.substr(first + 2, line.size() - first - 3) + ", " + line.substr(1, first - 1) + "}\n";
  }
  EXPECT_EQ(log.find("{\"total_steps\""), 0u) << log;
  EXPECT_EQ(judge("rate_wall_clock", read_text(log)).contradicted, 40);
}

TEST(MeanSinceStartSpec, AStampThatIsWrongAloneIsTold) {
  std::string log = lines({});
  const std::size_t at = log.find("\"0:08:03\"");
  ASSERT_NE(at, std::string::npos) << log;
  log.replace(at, 9, "\"0:58:03\"");
  const Audit told = audit(read_text(log));
  const Result& clock = result_of(told, "rate_wall_clock");
  EXPECT_EQ(clock.contradicted, 1);
  ASSERT_EQ(clock.causes.size(), 1u);
  EXPECT_EQ(clock.causes.front().id, "line_elapsed") << clock.causes.front().text;
}

/// Means of the first lines hold what came before the first step, and grow from nothing.
TEST(MeanSinceStartSpec, AMeanIsNoRateThatJumps) {
  std::string log = "n,loss,t,rate,total\n";
  for (int k = 1; k <= 40; ++k) {
    const double clock = 600 + k;
    char line[100];
    std::snprintf(line, sizeof line, "%d,%.4f,%.1f,%.2f,%d\n", k, 2 - 0.01 * k, clock, 1e4 * k / clock,
                  10000 * k);
    log += line;
  }
  const RunRecord run =
      read_text(log, "", "step=n,loss=loss,elapsed=t,tokens_per_second=rate,tokens_total=total");
  EXPECT_EQ(judge("rate_steady", run).verdict, Verdict::cannot_be_judged);
  EXPECT_EQ(judge("rate_wall_clock", run).verdict, Verdict::holds);
}

/// A table of every tenth step, whose rate is `times` that of the ten: exactly, or but for what steps
/// scatter.
Result of_ten(double times, bool exactly, int gpus, double pause = 0, int evaluate = 0) {
  std::string log = "n,split,loss,t,rate,total\n";
  double clock = 5;
  for (int k = 1; k <= 20; ++k) {
    const double took = 24 * (1 + 0.02 * std::sin(2.7 * k)),
                 step = exactly ? took : 24 * (1 + 0.02 * std::sin(5.1 * k));
    clock += took + pause;
    char line[200];
    std::snprintf(line, sizeof line, "%d,train,%.4f,%.3f,%.2f,%d\n", 10 * k, 2 - 0.01 * k, clock,
                  times * 327680 / step, 327680 * k);
    log += line;
    if (evaluate == 0 || k % evaluate != 0) continue;
    clock += 9;
    log += std::to_string(10 * k) + ",val,1.9,,,\n";
  }
  return judge("rate_wall_clock",
               read_text(log, gpus > 0 ? "gpus=" + std::to_string(gpus) : "",
                         "step=n,loss=loss,elapsed=t,tokens_per_second=rate,tokens_total=total"));
}

TEST(MeanSinceStartSpec, ARateOfAllStepsSinceTheLineBeforeIsHeldToTheirClock) {
  for (const int gpus : {0, 8})
    for (const int evaluate : {0, 4}) {
      EXPECT_EQ(of_ten(1, true, gpus, 0, evaluate).verdict, Verdict::holds) << gpus << evaluate;
      EXPECT_EQ(of_ten(2, true, gpus, 0, evaluate).verdict, Verdict::contradicts) << gpus << evaluate;
      EXPECT_NE(of_ten(0.125, true, gpus, 0, evaluate).verdict, Verdict::contradicts) << "one GPU's";
    }
  // A rate of single steps may leave out as much again, between all lines.
  EXPECT_EQ(of_ten(1, false, 8, 24).verdict, Verdict::holds);
  EXPECT_EQ(of_ten(1, true, 8, 11).verdict, Verdict::holds);
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
