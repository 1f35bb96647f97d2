// labels: unit
// Numbers that are off by a factor which no known mistake makes, and peaks that are printed wrong alone.
#include <gtest/gtest.h>

#include <algorithm>

#include "spec/audit/hypotheses.hpp"
#include "tests/support/read_text.hpp"
#include "tests/support/simulated/run.hpp"

namespace assay::spec::audit::unnamed_factor_test {
namespace {

using tests::LogFormat;
using tests::read_text;

/// The first run of several GPUs in this format, from a seed on.
tests::SimulatedRun run_of(LogFormat format, double least_gpus = 4) {
  for (std::uint64_t seed = 5000;; ++seed) {
    tests::SimulatedRun run = tests::simulate(format, seed);
    if (static_cast<double>(run.gpus) >= least_gpus && run.steps.size() >= 8) return run;
  }
}

/// Ids of the best reading's changes and what is told of the first.
struct Told {
  std::string ids, text;
  std::size_t equals = 0;
};
/// Of the run with every MFU that is printed from step `from` (from 0) on, and it alone, `share` times as
/// high.
Told told(const tests::SimulatedRun& run, double share, std::size_t from = 0) {
  tests::Report report = tests::report(run);
  for (std::size_t i = from; i < report.steps.size(); ++i)
    if (report.steps[i][Field::mfu]) *report.steps[i][Field::mfu] *= share;
  const RunRecord record = read_text(render(run, report));
  const Audit whole = audit(record);
  Told out;
  for (const Change& change : whole.readings.front().changes) {
    out.ids += (out.ids.empty() ? "" : " ") + change.id;
    if (out.text.empty()) out.text = change.text;
  }
  for (const Reading& reading : whole.readings) out.equals += equally(whole.readings.front(), reading);
  return out;
}

TEST(UnnamedFactorSpec, AnMfuThatNoKnownReadingMakesIsToldByItsFactor) {
  for (const double share : {0.8, 1.1, 1.23}) {
    const Told titan = told(run_of(LogFormat::torchtitan, 8), share);
    EXPECT_EQ(titan.ids, "unknown") << share;
    EXPECT_EQ(titan.equals, 1u) << share;
    const std::string factor = share == 0.8 ? "0.80" : share == 1.1 ? "1.10" : "1.23";
    EXPECT_EQ(titan.text, "MFU is " + factor +
                              " times what its own FLOP/s and peak give; no known reading gives "
                              "this factor");
  }
  // Without FLOP/s, it is held against what they are made of.
  EXPECT_EQ(told(run_of(LogFormat::llmc, 1), 0.9).text,
            "MFU is 0.90 times what model, batch, time and peak give; no known reading gives this factor");
  // FLOP/s and the MFU made of them are one number.
  tests::SimulatedRun run = run_of(LogFormat::torchtitan, 8);
  run.accounting.mfu_factor = 1.23;
  const Told both = told(run, 1);
  EXPECT_EQ(both.ids, "unknown");
  EXPECT_EQ(both.text,
            "FLOP/s and MFU are 1.23 times what model and tokens/s give; no known reading gives this factor");
}

TEST(UnnamedFactorSpec, AFactorOfSomeLinesAloneIsToldSo) {
  const tests::SimulatedRun run = run_of(LogFormat::torchtitan, 8);
  const Told half = told(run, 1.1, tests::report(run).steps.size() / 2);
  EXPECT_NE(half.text.find(" times, on other lines "), std::string::npos) << half.text;
  EXPECT_NE(half.text.find("1.10 times"), std::string::npos) << half.text;
  EXPECT_NE(half.text.find("1.000 times"), std::string::npos) << half.text;
}

TEST(UnnamedFactorSpec, APeakThatIsPrintedWrongAloneIsNamed) {
  tests::SimulatedRun run = run_of(LogFormat::torchtitan);
  run.accounting.peak = run.peak_sparse;
  const Told sparse = told(run, run.peak_sparse / run.peak_dense);
  EXPECT_EQ(sparse.ids, "peak_printed");
  EXPECT_EQ(sparse.text,
            "the printed peak is the sparse one of bf16; MFU is made with the dense one of the GPU");
  // A peak of no GPU.
  run.accounting.peak = 1.37 * run.peak_dense;
  const Told other = told(run, 1.37);
  EXPECT_EQ(other.ids, "peak_printed");
  EXPECT_NE(other.text.find("1.37 times"), std::string::npos) << other.text;
  // The MFU made of it as well: not it alone.
  run.accounting.peak = run.peak_sparse;
  EXPECT_EQ(told(run, 1).ids, "peak_sparse");
}

}  // namespace
}  // namespace assay::spec::audit::unnamed_factor_test
