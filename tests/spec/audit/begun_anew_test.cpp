// labels: unit
// A program that starts again and counts its steps anew: another run, or a restart, but no doubled steps.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <sstream>
#include <string>
#include <vector>

#include "spec/audit/hypotheses.hpp"
#include "spec/audit/invariants.hpp"
#include "tests/support/read_text.hpp"
#include "tests/support/simulated/run.hpp"

namespace assay::spec::audit::begun_anew_test {
namespace {

using tests::LogFormat;

std::vector<RunRecord> read_all(const std::string& log, const ReadOptions& options = {}) {
  std::istringstream in(log);
  return read_logs(in, "log", options);
}

/// The first `share` of the lines of the run done again, at least twelve, by other clocks and draws.
std::string begun(tests::SimulatedRun run, double share) {
  for (tests::SimulatedStep& step : run.steps) step.seconds *= 1.01, step.loss *= 1.001;
  tests::Report part = tests::report(run);
  const auto lines = static_cast<std::size_t>(share * static_cast<double>(part.steps.size()));
  part.steps.resize(std::min(part.steps.size(), std::max<std::size_t>(12, lines)));
  return tests::render(run, part);
}

constexpr LogFormat of_lines[] = {LogFormat::llm_tii,  LogFormat::torchtitan, LogFormat::kempnerforge,
                                  LogFormat::megatron, LogFormat::nanogpt,    LogFormat::llmc,
                                  LogFormat::llmq,     LogFormat::csv,        LogFormat::json_lines};

TEST(BegunAnewSpec, AProgramThatCountsItsStepsAnewIsAnotherRun) {
  for (const LogFormat format : of_lines)
    for (std::uint64_t seed = 1; seed <= 12; ++seed) {
      const tests::SimulatedRun one = tests::simulate(format, seed, 60);
      ReadOptions options;
      options.map = tests::read_arguments(one).map;
      const auto runs = read_all(tests::render(one) + begun(one, 0.6), options);
      ASSERT_EQ(runs.size(), 2u) << to_string(format) << " " << seed;
      for (const RunRecord& run : runs)
        EXPECT_EQ(contradictions(run), "") << to_string(format) << " " << seed;
    }
}

TEST(BegunAnewSpec, ALieInTheSecondRunIsFound) {
  for (const LogFormat format :
       {LogFormat::torchtitan, LogFormat::kempnerforge, LogFormat::llmc, LogFormat::nanogpt})
    for (std::uint64_t seed = 1; seed <= 12; ++seed) {
      const tests::SimulatedRun honest = tests::simulate(format, seed, 60);
      tests::SimulatedRun lying = honest;
      lying.accounting.mfu_factor = 1.3;
      const auto runs = read_all(tests::render(honest) + begun(lying, 0.6));
      ASSERT_EQ(runs.size(), 2u);
      EXPECT_EQ(contradictions(runs[0]), "") << to_string(format) << " " << seed;
      EXPECT_NE(contradictions(runs[1]), "") << to_string(format) << " " << seed;
    }
}

/// JSON lines of losses that fall as 1 / step^0.4, with their scatter; `luck` draws it.
std::string lines(int from, int to, int every, double luck) {
  std::string out;
  for (int step = from; step <= to; step += every) {
    char line[128];
    std::snprintf(line, sizeof line, "{\"step\": %d, \"loss\": %.4f, \"seconds\": %.4f}\n", step,
                  2 + 9 * std::pow(1 + step / 20.0, -0.4) * (1 + 0.004 * std::sin(luck * step)),
                  1 + 0.01 * std::sin(luck + step));
    out += line;
  }
  return out;
}

TEST(BegunAnewSpec, AFirstLineThatIsLostMakesNoRunGoOn) {
  // Its losses are those of other draws at the same steps, and as noisy as early losses are.
  for (const double luck : {1.3, 2.9, 4.1})
    for (const int every : {1, 10}) {
      const std::string first =
          every == 1 ? lines(1, 500, 1, 0.7) : lines(1, 1, 1, 0.7) + lines(10, 500, 10, 0.7);
      const std::string second = lines(every == 1 ? 2 : 10, 300, every, luck);
      for (const RunRecord& run : read_all(first + second)) EXPECT_EQ(contradictions(run), "") << luck;
    }
  // From the middle on it is a restart, and weights that were not restored are told.
  const std::string back = lines(1, 500, 1, 0.7);
  std::string late = lines(1, 100, 1, 1.3), numbered;
  for (int step = 1; step <= 100; ++step) {
    const std::string was = "\"step\": " + std::to_string(step) + ",";
    late.replace(late.find(was), was.size(), "\"step\": " + std::to_string(400 + step) + ",");
  }
  const auto runs = read_all(back + late);
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(judge("resume", runs[0]).verdict, Verdict::contradicts);
}

TEST(BegunAnewSpec, ARunWhoseFirstLineIsLostIsNotHeldToTheRatesOfTheOneBefore) {
  const auto rising = [](int from, double rate) {
    std::string out;
    for (int step = from; step <= 300; ++step) {
      char line[128];
      std::snprintf(line, sizeof line, "{\"step\": %d, \"loss\": %.4f, \"learning_rate\": %.6e}\n", step,
                    2 + 9 * std::pow(1 + step / 20.0, -0.4), rate * step);
      out += line;
    }
    return out;
  };
  const auto verdict = [&](int from) {
    const auto runs = read_all(rising(1, 1e-6) + rising(from, 5e-7));
    return judge("resume", runs.back()).verdict;
  };
  EXPECT_NE(verdict(2), Verdict::contradicts);
  EXPECT_EQ(verdict(200), Verdict::contradicts) << "a restart goes on with the rate";
}

TEST(BegunAnewSpec, AHeaderThatSaysNewWeightsBeginsARun) {
  const auto log = [](int from, int to, double luck) {
    std::string out = "max_iters = 500\nInitializing a new model from scratch\n";
    for (int i = from; i <= to; ++i) {
      char line[96];
      std::snprintf(line, sizeof line, "iter %d: loss %.4f, time 100.00ms, mfu -100.00%%\n", i,
                    2 + 9 * std::pow(1 + i / 20.0, -0.4) * (1 + 0.003 * std::sin(luck * i)));
      out += line;
    }
    return out;
  };
  // Its first lines are lost.
  const auto runs = read_all(log(0, 499, 0.7) + log(40, 299, 1.3));
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0].steps_seen, 500);
  EXPECT_EQ(runs[1].steps_seen, 260);
  for (const RunRecord& run : runs) EXPECT_EQ(contradictions(run), "");
  std::string resumed = log(450, 499, 1.3);
  resumed.replace(resumed.find("Initializing a new model from scratch"), 37, "Resuming training from out");
  EXPECT_EQ(read_all(log(0, 499, 0.7) + resumed).size(), 1u);
}

TEST(BegunAnewSpec, ATrainingThatStartsAtItsFirstStepBeginsARun) {
  const auto log = [](int from, int to, double luck) {
    std::string out = "[titan] 2025-11-20 - root - INFO - Training starts at step 1\n";
    for (int i = from; i <= to; ++i) {
      char line[192];
      std::snprintf(line, sizeof line,
                    "[titan] 2025-11-20 - root - INFO - step: %2d  loss: %7.4f  grad_norm:  1.2345  memory: "
                    "33.10GiB(41.80%%)  tps: 7,012  tflops: 406.07  mfu: 41.06%%\n",
                    i, 2 + 9 * std::pow(1 + i / 20.0, -0.4) * (1 + 0.003 * std::sin(luck * i)));
      out += line;
    }
    return out;
  };
  const auto runs = read_all(log(1, 500, 0.7) + log(30, 300, 1.3));
  ASSERT_EQ(runs.size(), 2u);
  for (const RunRecord& run : runs) EXPECT_EQ(contradictions(run), "");
}

/// Hugging Face's lines name no step: its summary ends a run, and epochs that fall back to the first one show
/// another.
TEST(BegunAnewSpec, EpochsTellRunsApartThatNameNoStep) {
  const std::string first =
                        "{'loss': 0.1774, 'grad_norm': 0.059, 'learning_rate': 1.7e-05, 'epoch': 7.25}\n"
                        "{'loss': 0.1785, 'grad_norm': 0.065, 'learning_rate': 4.0e-06, 'epoch': 7.83}\n",
                    end =
                        "{'train_runtime': 312.4662, 'train_samples_per_second': 705.919, "
                        "'train_steps_per_second': 44.139, 'train_loss': 0.1797, 'epoch': 8.0}\n",
                    second =
                        "{'loss': 2.2788, 'grad_norm': 1.925, 'learning_rate': 0.00018, 'epoch': 7.5}\n"
                        "{'loss': 2.1, 'grad_norm': 1.925, 'learning_rate': 0.00017, 'epoch': 7.6}\n",
                    early = "{'loss': 3.2788, 'grad_norm': 1.925, 'learning_rate': 0.0002, 'epoch': 0.01}\n";
  EXPECT_EQ(read_all(first + end + second).size(), 2U);
  EXPECT_EQ(read_all(first + end + second)[1].steps.size(), 2U);
  EXPECT_FALSE(read_all(first + end + second)[1][Setting::total_seconds]);
  EXPECT_EQ(read_all(first + second).size(), 1U);  // resumed from a checkpoint
  EXPECT_EQ(read_all(first + early).size(), 2U);
  EXPECT_EQ(read_all(first + early + first).size(), 2U);
}

}  // namespace
}  // namespace assay::spec::audit::begun_anew_test
