// labels: unit
// Forks of nanoGPT, whose source divides by an A100's peak whatever the GPU, divide by another one.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <sstream>
#include <utility>

#include "spec/audit/hypotheses.hpp"
#include "spec/audit/invariants.hpp"
#include "spec/audit/readers/read_log.hpp"
#include "tests/support/read_text.hpp"
#include "tests/support/simulated/run.hpp"

namespace assay::spec::audit::constant_peak_test {
namespace {

struct Fork {
  tests::SimulatedRun run;
  RunRecord record;
};

/// Runs on other GPUs than an A100, of which `peak` makes the peak that MFU divides by.
template <class Peak>
std::vector<Fork> forks(Peak peak) {
  std::vector<Fork> out;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    tests::SimulatedRun run = tests::simulate(tests::LogFormat::nanogpt, seed);
    if (run.peak_dense == 312e12) continue;
    run.accounting.peak = peak(run);
    std::istringstream in(render(run));
    RunRecord record = read_log(in, "fork.log");
    if (usable(record.steps.back()[Field::mfu])) out.push_back({run, record});
  }
  EXPECT_GT(out.size(), 20u);
  return out;
}

std::string first_change(const Audit& audit) {
  return audit.readings.empty() || audit.readings.front().changes.empty()
             ? ""
             : audit.readings.front().changes.front().id;
}

TEST(ConstantPeakSpec, ThePeakOfAnotherGpuIsNamedWithTheGpu) {
  int named = 0, all = 0;
  for (const Fork& fork : forks([](const auto& run) { return run.peak_dense; })) {
    const Audit told = audit(fork.record);
    EXPECT_TRUE(told.contradicts);
    ++all;
    if (first_change(told) != "peak_other_gpu") continue;
    const Change& change = told.readings.front().changes.front();
    std::string text = change.text;
    for (const std::string& other : change.alternatives) text += other;
    named += text.find(fork.run.peak_dense == 989e12 ? "H100 SXM" : "B200") != std::string::npos;
  }
  EXPECT_GE(named, 0.95 * all);
}

TEST(ConstantPeakSpec, ThePeakOfTheGpuThatIsStatedIsNoContradiction) {
  for (const bool constant : {false, true})
    for (Fork& fork : forks([&](const auto& run) { return constant ? 312e12 : run.peak_dense; })) {
      fork.record.state("gpu", &RunRecord::gpu, fork.run.gpu, "--gpu");
      EXPECT_TRUE(consistent(fork.record)) << contradictions(fork.record);
      const Result mfu = judge("mfu_of_batch", fork.record);
      EXPECT_EQ(mfu.verdict, Verdict::holds);
      EXPECT_EQ(mfu.note.find("the GPU's own peak") != std::string::npos, !constant) << mfu.note;
    }
}

/// Lines of nanoGPT with that MFU, of a step time that makes it of an A100's peak.
RunRecord printing(double percent, const std::string& set) {
  std::string log = "number of parameters: 123.59M\n";
  for (int step = 0; step < 100; step += 10) {
    char line[100];
    std::snprintf(line, sizeof line, "iter %d: loss %.4f, time 134.20ms, mfu %.2f%%\n", step,
                  10.9 - 0.02 * step, step == 0 ? -100.0 : percent);
    log += line;
  }
  return tests::read_text(log, set);
}

/// The source of the trainer divides by an A100's peak: above it the number is no MFU, of whatever GPU.
TEST(ConstantPeakSpec, AnMfuAboveThePeakContradictsAndIsExplained) {
  EXPECT_EQ(judge("mfu_possible", printing(99.99, "")).verdict, Verdict::holds);
  EXPECT_EQ(judge("mfu_possible", printing(100, "")).verdict, Verdict::holds);
  const auto told = [](double percent, const std::string& set) {
    const Audit all = audit(printing(percent, set));
    const auto result = std::find_if(all.results.begin(), all.results.end(),
                                     [](const Result& one) { return one.id == "mfu_possible"; });
    EXPECT_EQ(result->verdict, Verdict::contradicts) << percent << " " << set;
    EXPECT_EQ(result->recomputed, (Interval{0, 1})) << percent << " " << set;
    return result->causes.empty() ? "" : result->causes.front().text;
  };
  const std::string source = "nanoGPT divides by the peak of an A100, whatever the GPU: ";
  EXPECT_EQ(told(104, ""), source +
                               "a faster one ran, of 324.5 TFLOP/s at the least (--gpu says which), or "
                               "the time is too short");
  EXPECT_EQ(told(104, "gpu=B200"), source + "104.00 % of that is 14.42 % of the GPU's own, 2250.0 TFLOP/s");
  // More than the GPU's own peak, and than any GPU's.
  for (const auto& [percent, set] :
       {std::pair{104.0, "gpu=A100-SXM4-80GB"}, {400.0, "gpu=H100 SXM"}, {9000.0, ""}})
    EXPECT_EQ(told(percent, set).find(source), std::string::npos) << percent << " " << set;
}

/// Half the MFU is twice the ranks', where their number is not known.
TEST(ConstantPeakSpec, ItsSparsePeakIsOne) {
  int named = 0, all = 0;
  for (Fork& fork : forks([](const auto& run) { return run.peak_sparse; })) {
    fork.record.state("gpu", &RunRecord::gpu, fork.run.gpu, "--gpu");
    fork.record.state(Setting::gpus, exactly(static_cast<double>(fork.run.gpus)), "--gpus");
    const Audit told = audit(fork.record);
    EXPECT_TRUE(told.contradicts);
    ++all, named += first_change(told) == "peak_sparse";
  }
  EXPECT_GE(named, 0.95 * all);
}

}  // namespace
}  // namespace assay::spec::audit::constant_peak_test
