// labels: cli gpu multigpu scaling
// What further GPUs bring a whole model, from measured steps: all GPUs of this machine against one of them,
// weak scaling in the recipe's layout. The other layouts and one micro-batch: `ci/bench gpu scaling
// scaling-1`; losses across layouts: tests/impl/parallel/cuda/layouts_test.cpp and `ci/gpu multigpu`.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <iostream>

#include "spec/metrics/scaling.hpp"
#include "spec/record/read.hpp"
#include "spec/record/run.hpp"
#include "tests/cli/built_program.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/scratch.hpp"

namespace assay::scaling_gpu_test {
namespace {

namespace fs = std::filesystem;

/// Of a GPU's tokens/s alone: the 98.5 % that are wanted of GPUs that are alike, less 2.5 for ones that are
/// not. This test runs the first alone, and a step on all waits for the slowest. The 2.5 are chosen, not
/// derived: 97.3 and 99.2 % were seen on pairs of H200s (docs/measurements/h200-scaling.md).
constexpr double least_efficiency = 0.985 - 0.025;
/// Of a step of 4 micro-batches; 0.05 to 0.19 % were seen. Of one micro-batch 3 % are allowed (not run here).
constexpr double most_exposed = 0.01;

std::int64_t gpus() {
  const auto listed = tests::shell("nvidia-smi -L 2>/dev/null | grep -c '^GPU '");
  return std::atoll(listed.output.c_str());
}

/// The largest power of two: a batch divides by it.
std::int64_t ranks_of(std::int64_t gpus) {
  std::int64_t ranks = 1;
  while (2 * ranks <= std::min<std::int64_t>(gpus, 8)) ranks *= 2;
  return ranks;
}

void expect_honest(const spec::record::Run& run, std::int64_t ranks) {
  ASSERT_EQ(run.start.batch.ranks, ranks);
  ASSERT_EQ(run.start.gpus.size(), static_cast<std::size_t>(ranks));
  ASSERT_TRUE(run.start.peak_flops);
  const double flops = static_cast<double>(run.start.flops_per_token);
  for (const auto& step : run.steps) {
    const double tokens = static_cast<double>(step.tokens);
    EXPECT_EQ(step.tokens, run.start.batch.sequences * run.start.batch.sequence_length);
    EXPECT_NEAR(step.tokens_per_second * step.seconds, tokens, 1e-9 * tokens);
    ASSERT_TRUE(step.mfu);
    // Of all GPUs over the peak of all: a GPU's share of the rate over a GPU's peak is the same.
    EXPECT_NEAR(*step.mfu, step.tokens_per_second * flops / *run.start.peak_flops, 1e-9);
    EXPECT_LT(*step.mfu, 1);
  }
}

TEST(ScalingGpu, AllGpusTogetherDoNearlyAsMuchEachAsOneAlone) {
  if (!fs::exists(tests::binary_dir() + "/bin/assay-train"))
    GTEST_SKIP() << "this build has no assay-train (it needs libtorch)";
  if (gpus() < 2) GTEST_SKIP() << "needs 2 GPUs or more, there are " << gpus();
  const std::int64_t ranks = ranks_of(gpus());
  const tests::Scratch scratch;
  const std::string folder = (scratch.path() / "weak").string();
  const auto outcome = tests::shell(tests::assay_path() + " bench scaling " + tests::source_dir() +
                                        "/recipes/h200/llama-1.36b.toml --ranks 1," + std::to_string(ranks) +
                                        " --steps 9 --json --run " + folder,
                                    480);
  ASSERT_EQ(outcome.code, 0) << outcome.output << outcome.messages;
  EXPECT_NE(outcome.output.find("\"audit_accepts\":true"), std::string::npos) << outcome.output;
  std::vector<spec::record::Run> runs;
  for (const std::int64_t n : {std::int64_t{1}, ranks}) {
    runs.push_back(spec::record::assemble(spec::record::read_events(folder + "/ranks-" + std::to_string(n))));
    expect_honest(runs.back(), n);
  }
  constexpr std::int64_t still_warming = 3;
  const auto rows = spec::metrics::scaling_table(runs, still_warming);
  ASSERT_EQ(rows.size(), 2u);
  for (const auto& row : rows)
    std::cout << "heads " << row.ranks << " GPUs: " << row.tokens_per_second_of_rank << " tokens/s each, "
              << 100 * row.efficiency << " %, MFU " << 100 * row.mfu.value_or(0) << " %, exposed "
              << 100 * row.exposed << " %" << std::endl;
  EXPECT_GE(rows[1].efficiency, least_efficiency);
  EXPECT_GE(*rows[1].mfu, least_efficiency * *rows[0].mfu);
  EXPECT_LE(rows[1].exposed, most_exposed);
  EXPECT_NEAR(rows[1].tokens_per_second, static_cast<double>(ranks) * rows[1].tokens_per_second_of_rank,
              1e-9 * rows[1].tokens_per_second);
}

}  // namespace
}  // namespace assay::scaling_gpu_test
