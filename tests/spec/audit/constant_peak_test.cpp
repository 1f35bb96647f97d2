// labels: unit
// Forks of nanoGPT, whose source divides by an A100's peak whatever the GPU, divide by another one.
#include <gtest/gtest.h>

#include <sstream>

#include "spec/audit/hypotheses.hpp"
#include "spec/audit/invariants.hpp"
#include "spec/audit/readers/read_log.hpp"
#include "tests/support/simulated_run.hpp"

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
