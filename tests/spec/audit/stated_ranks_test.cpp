// labels: unit
// Data-parallel ranks that a header states otherwise than its GPUs make.
#include <gtest/gtest.h>

#include <string>

#include "spec/audit/hypotheses.hpp"
#include "tests/spec/audit/result_of.hpp"
#include "tests/support/read_text.hpp"
#include "tests/support/simulated/run.hpp"

namespace assay::spec::audit::stated_ranks_test {
namespace {

using tests::first_cause;
using tests::result_of;

/// KempnerForge on so many GPUs, of which a mesh says how many read data of their own; each GPU does two
/// passes of four sequences of 4,096 tokens in 36 s: 910 tokens/s.
RunRecord kempnerforge(int gpus, int mesh, int counted) {
  std::string log =
      "[rank 0] INFO     DeviceMesh: dims=['dp_shard'], sizes=[" + std::to_string(mesh) +
      "], world_size=" + std::to_string(gpus) +
      "\n[rank 0] INFO     Starting training: step=0, max_steps=2000, batch_size=4, grad_accum=2, "
      "world_size=" +
      std::to_string(gpus) +
      "\n[rank 0] INFO     Training config: JobConfig(train=TrainConfig(batch_size=4, seq_len=4096, "
      "max_steps=2000, grad_accum_steps=2, mixed_precision='bf16'))\n";
  for (int step = 1; step <= 12; ++step)
    log += "[rank 0] INFO     [step " + std::to_string(step) +
           "] loss=11.7500 | lr=3.00e-04 | grad_norm=0.112 | tok/s=" +
           std::to_string(counted * 4 * 2 * 4096 / 36) + " | mem=45.0/140GB | step_time=36.00s\n";
  return tests::read_text(log);
}

TEST(StatedRanksSpec, OneWrongNumberOfRanksIsOneMistake) {
  EXPECT_FALSE(audit(kempnerforge(32, 32, 32)).contradicts);
  for (const int mesh : {16, 8, 64}) {
    const Audit told = audit(kempnerforge(32, mesh, 32));
    EXPECT_EQ(result_of(told, "ranks").verdict, Verdict::contradicts) << mesh;
    EXPECT_EQ(result_of(told, "rate_time").verdict, Verdict::contradicts) << mesh;
    EXPECT_EQ(first_cause(told), "ranks_other") << mesh;
    EXPECT_EQ(told.readings.front().changes.size(), 1u) << mesh;
    EXPECT_NEAR(told.readings.front().corrected.tokens_per_second->middle(), 32.0 * 4 * 2 * 4096 / 36, 1)
        << mesh;
  }
}

/// Where the rate is that of the mesh, the GPUs are too many.
TEST(StatedRanksSpec, TheRateSaysWhichOfRanksAndGpusIsWrong) {
  const Audit gpus = audit(kempnerforge(32, 16, 16));
  EXPECT_EQ(result_of(gpus, "rate_time").verdict, Verdict::holds);
  EXPECT_EQ(first_cause(gpus), "gpus_other");
}

/// Our own record: sequences and tokens say that the ranks are as many as the GPUs.
TEST(StatedRanksSpec, OfOurOwnRecordTheSequencesSaySo) {
  int tried = 0;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    std::string log = tests::render(tests::simulate(tests::LogFormat::assay, seed));
    const std::size_t batch = log.find("\"batch\""), name = log.find("\"ranks\":", batch),
                      number = log.find_first_of("0123456789", name), end = log.find_first_of(",}", number);
    ASSERT_NE(end, std::string::npos);
    const int ranks = std::stoi(log.substr(number, end - number));
    if (ranks == 1) continue;
    ASSERT_EQ(judge("ranks", tests::read_text(log)).verdict, Verdict::holds);
    log.replace(number, end - number, std::to_string(2 * ranks));
    const Audit told = audit(tests::read_text(log));
    EXPECT_EQ(first_cause(told), "ranks_other") << seed;
    EXPECT_EQ(told.readings.front().changes.size(), 1u) << seed;
    ++tried;
  }
  EXPECT_GE(tried, 3);
}

}  // namespace
}  // namespace assay::spec::audit::stated_ranks_test
