// labels: unit
#include "spec/audit/unnamed_ranks.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "spec/audit/invariants.hpp"
#include "tests/support/read_text.hpp"

namespace assay::spec::audit::unnamed_ranks_test {
namespace {

struct Printed3 {
  double step, loss, rate;
};

/// How many lines are left of these, in their order, where so many ranks may print.
std::size_t left(const std::vector<Printed3>& lines, double may_print = 1) {
  std::vector<Step> steps(lines.size());
  std::vector<const Step*> all;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    steps[i][Field::step] = exactly(lines[i].step, 1);
    steps[i][Field::loss] = exactly(lines[i].loss, 1);
    steps[i][Field::tokens_per_second] = exactly(lines[i].rate, 1);
    all.push_back(&steps[i]);
  }
  return without_unnamed_ranks(all, may_print).lines.size();
}

TEST(UnnamedRanksSpec, OneLineOfEachStepIsLeft) {
  EXPECT_EQ(left({{1, 9, 100}, {1, 9, 101}, {2, 8, 102}, {2, 8, 100}, {3, 7, 101}, {3, 7, 100}}), 3u);
}

TEST(UnnamedRanksSpec, OneStepOfSeveralRanksIsEnough) {
  EXPECT_EQ(left({{100, 2.3, 42332}, {100, 2.3, 42332}, {100, 2.3, 42333}, {100, 2.3, 42331}}), 1u);
  EXPECT_EQ(left({{100, 2.3, 42332}, {100, 2.3, 42332}, {100, 2.3, 42332}}), 3u);  // one line, three times
  EXPECT_EQ(left({{100, 2.3, 42332}, {100, 2.4, 42333}}), 2u);
}

TEST(UnnamedRanksSpec, RanksOfOneStepHaveOneLoss) {
  EXPECT_EQ(left({{1, 9, 100}, {1, 9, 101}, {2, 8, 102}, {2, 8.5, 100}, {3, 7, 101}, {3, 7, 100}}), 6u);
}

TEST(UnnamedRanksSpec, ALogThatIsThereTwiceIsNoLogOfTwoRanks) {
  // As a run that was started again from its first step, or a file that was appended to itself.
  EXPECT_EQ(left({{1, 9, 100},
                  {2, 8, 102},
                  {3, 7, 101},
                  {4, 6, 101},
                  {5, 5, 101},
                  {1, 9, 101},
                  {2, 8, 100},
                  {3, 7, 100},
                  {4, 6, 102},
                  {5, 5, 100}}),
            10u);
}

TEST(UnnamedRanksSpec, EveryLineTwiceIsNoLogOfTwoRanks) {
  EXPECT_EQ(left({{1, 9, 100}, {1, 9, 100}, {2, 8, 102}, {2, 8, 102}, {3, 7, 101}, {3, 7, 101}}), 6u);
}

TEST(UnnamedRanksSpec, LinesThatRoundAlikeAreRanksWhereSoManyMayPrint) {
  const std::vector<Printed3> twice{{1, 9, 100}, {1, 9, 100}, {2, 8, 102},
                                    {2, 8, 102}, {3, 7, 101}, {3, 7, 101}};
  EXPECT_EQ(left(twice, 2), 3u);
  EXPECT_EQ(left(twice, 8), 3u);  // of the ranks of a mesh, two are kept
  EXPECT_EQ(left(twice, 1), 6u);
  EXPECT_EQ(left(twice, std::numeric_limits<double>::infinity()), 3u);
}

TEST(UnnamedRanksSpec, ALineThatIsLostOrTheBeginningOfALogLeavesRanksBehind) {
  // 12 steps of 4 ranks, but for line `lost`, from line `first` on.
  const auto of = [](std::size_t lost, std::size_t first, std::size_t others = 0) {
    std::vector<Printed3> lines;
    for (std::size_t i = 0; i < 48; ++i) {
      const std::size_t number = i / 4 + 1;
      const auto step = static_cast<double>(number);
      if (i >= first && i != lost && (others == 0 || i % others != 0))
        lines.push_back({step, 9 - step / 10, 100 + static_cast<double>(i % 3)});
    }
    return left(lines);
  };
  EXPECT_EQ(of(100, 0), 12u);
  EXPECT_EQ(of(22, 0), 12u);
  EXPECT_EQ(of(100, 3), 12u);
  EXPECT_EQ(of(22, 3), 12u);
  EXPECT_EQ(of(22, 0, 5), 37u);  // every fifth line: no rule is seen
}

/// torchtitan on `gpus` GPUs, each of whose `copies` ranks prints the same numbers, each a millisecond behind
/// the other where they are `apart`; no mesh where gpus is 0.
RunRecord alike(int gpus, int copies, int steps, bool apart = false) {
  std::string log;
  if (gpus > 0)
    log +=
        "[titan] 2026-01-09 00:00:00,037 - root - INFO - Building device mesh with parallelism: pp=1, "
        "dp_replicate=1, dp_shard=" +
        std::to_string(gpus) + ", cp=1, tp=1, ep=1\n";
  for (int step = 1; step <= steps; ++step)
    for (int copy = 0; copy < copies; ++copy)
      log += "[titan] 2026-01-09 00:00:0" + std::to_string(step) + ",03" + std::to_string(apart ? copy : 7) +
             " - root - INFO - step:  " + std::to_string(step) + "  loss:  9." + std::to_string(900 - step) +
             "0  grad_norm:  2.1000  memory: 20.00GiB(25.28%)  tps: 352  tflops: 165.31  mfu: 16.71%\n";
  return tests::read_text(log);
}

TEST(UnnamedRanksSpec, RanksOfAMeshWhoseLinesRoundAlikeAreNotLoggedTwice) {
  for (const int gpus : {0, 8, 16}) {
    const RunRecord run = alike(gpus, 8, 6);
    EXPECT_EQ(run.ranks, 8) << gpus;
    EXPECT_EQ(run.steps_of_rank, 6) << gpus;
    // As many as the mesh has print so; of fewer, or of a mesh that is lost, nothing says how many do.
    const Result steps = judge("steps", run);
    EXPECT_EQ(steps.verdict, gpus == 8 ? Verdict::holds : Verdict::cannot_be_judged) << gpus;
    for (const char* const reading : {"8 times", "ranks", "one line"})
      EXPECT_NE(steps.note.find(reading), std::string::npos) << gpus << ": " << steps.note;
  }
  EXPECT_EQ(judge("steps", alike(8, 8, 1)).verdict, Verdict::holds);
  EXPECT_EQ(judge("steps", alike(2, 2, 6)).verdict, Verdict::holds);
  EXPECT_NE(judge("steps", alike(2, 2, 6)).note, "");
  EXPECT_EQ(judge("steps", alike(8, 2, 6)).verdict, Verdict::cannot_be_judged);
  // Lines that differ are ranks', and there is nothing to tell.
  EXPECT_EQ(judge("steps", alike(8, 2, 6, true)).verdict, Verdict::holds);
  EXPECT_EQ(judge("steps", alike(8, 2, 6, true)).note, "");
  // More than the mesh has: copies; each line twice, two handlers of one rank's log.
  EXPECT_EQ(judge("steps", alike(1, 3, 6)).verdict, Verdict::contradicts);
  EXPECT_EQ(judge("steps", alike(1, 2, 6)).verdict, Verdict::holds);
  EXPECT_TRUE(alike(1, 2, 6).printed_twice);
  EXPECT_EQ(judge("steps", alike(4, 8, 6)).verdict, Verdict::contradicts);
}

}  // namespace
}  // namespace assay::spec::audit::unnamed_ranks_test
