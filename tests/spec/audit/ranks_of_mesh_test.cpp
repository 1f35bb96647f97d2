// labels: unit
// torchtitan's logs of other ranks than their mesh has, and of passes that were configured and not performed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <sstream>

#include "spec/audit/hypotheses.hpp"
#include "spec/audit/readers/read_log.hpp"

namespace assay::spec::audit::ranks_of_mesh_test {
namespace {

constexpr double length = 8192, rate = 7800;  // of one H100 with Llama 3 8B, an MFU of 45.7 %

struct Mesh {
  int mesh = 8;
  double micro = 2, sequences = 64, passes = 4;
  double gpus = 8;       ///< that ran
  double performed = 4;  ///< passes
  double counted = 1;    ///< tokens/s over those of one GPU
  int printing = 1;      ///< ranks that print, each with its number before the line; 1: none says it
};

/// A line of every tenth step, stamped when the ten are done.
std::string log_of(const Mesh& run) {
  double now = 0;
  char text[400];
  std::string out;
  const auto line = [&](const std::string& said) {
    const std::int64_t ms = std::llround(1e3 * now);
    std::snprintf(text, sizeof text, "[titan] 2026-01-09 1%d:%02d:%02d,%03d - root - INFO - ",
                  static_cast<int>(ms / 3600000), static_cast<int>(ms / 60000 % 60),
                  static_cast<int>(ms / 1000 % 60), static_cast<int>(ms % 1000));
    for (int rank = 0; rank < run.printing; ++rank)
      out += (run.printing > 1 ? "[rank" + std::to_string(rank) + "]:" : std::string()) + text + said + "\n";
  };
  line("Starting job: Llama 3 8B training");
  line("Building device mesh with parallelism: pp=1, dp_replicate=1, dp_shard=" + std::to_string(run.mesh) +
       ", cp=1, tp=1, ep=1");
  line("CUDA capacity: NVIDIA H100 80GB HBM3 with 79.11GiB memory");
  line("Model llama3 8B size: 8,030,261,248 total parameters");
  line("Peak FLOPS used for computing MFU: 9.890e+14");
  char said[300];
  std::snprintf(said, sizeof said,
                "Trainer is initialized with local batch size %.0f, global batch size %.0f, gradient "
                "accumulation steps %.0f, sequence length 8192, total steps 1000 (warmup 200)",
                run.micro, run.sequences, run.passes);
  line(said);
  const double step_seconds = run.micro * run.performed * length / rate;
  for (int i = 0; i < 12; ++i) {
    const int step = i == 0 ? 1 : 10 * i;
    now += step_seconds * (i == 0 ? 1 : i == 1 ? 9 : 10);
    const double tps = run.counted * rate * (1 + 0.002 * (i % 3));
    std::snprintf(said, sizeof said,
                  "step: %2d  loss: %7.4f  grad_norm:  2.1000  memory: 60.12GiB(75.99%%)  tps: %d,%03d  "
                  "tflops: %.2f  mfu: %.2f%%",
                  step, 12.1 - 0.1 * i, static_cast<int>(std::lround(tps)) / 1000,
                  static_cast<int>(std::lround(tps)) % 1000, 57.91477e-3 * tps, 57.91477e-3 * tps / 9.89);
    line(said);
  }
  return out;
}

RunRecord read(const Mesh& run) {
  std::istringstream in(log_of(run));
  return read_log(in, "torchtitan");
}

/// The readings that are told as likely, each by its first change, with what it makes of the rate of all
/// GPUs.
std::vector<std::pair<std::string, double>> told(const Audit& audit) {
  std::vector<std::pair<std::string, double>> out;
  for (const Reading& reading : audit.readings)
    if (reading.cost < audit.readings.front().cost + 1 && !reading.changes.empty() &&
        reading.corrected.tokens_per_second)
      out.emplace_back(reading.changes.front().id, reading.corrected.tokens_per_second->middle());
  return out;
}

bool tells(const Audit& audit, const std::string& id, double tokens_per_second) {
  const auto all = told(audit);
  return std::any_of(all.begin(), all.end(), [&](const auto& one) {
    return one.first == id && std::abs(one.second / tokens_per_second - 1) < 0.005;
  });
}

TEST(RanksOfMeshSpec, WhatTorchtitanMeansHolds) {
  for (const int printing : {1, 2, 8}) {
    Mesh run;
    run.printing = printing;
    EXPECT_TRUE(consistent(read(run))) << printing << contradictions(read(run));
  }
}

// 64 sequences are 2 x 1 x 32 ranks; the mesh has 8. 32 GPUs or 16 sequences: the clock agrees with either.
TEST(RanksOfMeshSpec, ABatchOfMoreRanksThanTheMeshHasIsToldAsBoth) {
  Mesh run;
  run.passes = run.performed = 1;
  run.gpus = 32;
  const RunRecord record = read(run);
  const Audit audit = spec::audit::audit(record);
  ASSERT_TRUE(audit.contradicts);
  EXPECT_TRUE(tells(audit, "gpus_other", 32 * rate)) << told(audit).size();
  EXPECT_TRUE(tells(audit, "batch_stated_other", 8 * rate));
}

TEST(RanksOfMeshSpec, AMeshOfMoreRanksThanTheBatchHasIsToldAsBoth) {
  Mesh run;
  run.mesh = 16;
  const RunRecord record = read(run);
  const Audit audit = spec::audit::audit(record);
  ASSERT_TRUE(audit.contradicts);
  EXPECT_TRUE(tells(audit, "gpus_other", 8 * rate)) << told(audit).size();
  EXPECT_TRUE(tells(audit, "batch_stated_other", 16 * rate));
}

// torchtitan's mesh is of every rank: sixteen that print do not fit on a mesh of eight.
TEST(RanksOfMeshSpec, MoreRanksPrintThanTheMeshHas) {
  Mesh run;
  run.gpus = run.printing = 16;
  run.sequences = 128;
  const RunRecord record = read(run);
  EXPECT_EQ(judge("ranks", record).verdict, Verdict::contradicts);
  const Audit audit = spec::audit::audit(record);
  EXPECT_EQ(told(audit).front().first, "gpus_other");
  EXPECT_TRUE(tells(audit, "gpus_other", 16 * rate));
}

TEST(RanksOfMeshSpec, PassesThatWereNotPerformedShowInTheClock) {
  Mesh run;
  run.performed = 1;
  const RunRecord record = read(run);
  const Audit audit = spec::audit::audit(record);
  ASSERT_TRUE(audit.contradicts);
  EXPECT_EQ(audit.readings.front().changes.front().id, "accumulation_performed");
  EXPECT_TRUE(tells(audit, "accumulation_performed", 8 * rate));
}

// Where tokens/s count the passes that were left out, clock and batch agree, and the MFU alone is impossible:
// 182.7 % are at most 2 passes of 4.
TEST(RanksOfMeshSpec, PassesThatAreCountedAndNotPerformedAreNamedWhereTheMfuIsImpossible) {
  Mesh run;
  run.performed = 1;
  run.counted = 4;
  const RunRecord record = read(run);
  const Audit audit = spec::audit::audit(record);
  ASSERT_TRUE(audit.contradicts);
  const auto result = std::find_if(audit.results.begin(), audit.results.end(),
                                   [](const Result& r) { return r.id == "mfu_possible"; });
  ASSERT_FALSE(result->causes.empty());
  EXPECT_NE(result->causes.front().text.find("at most 2 of the 4 passes"), std::string::npos)
      << result->causes.front().text;
}

}  // namespace
}  // namespace assay::spec::audit::ranks_of_mesh_test
