// labels: unit
// Pieces of logs of torchtitan, Megatron-LM and GPT-NeoX as people have them (as_printed_test.cpp: of the
// others).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <sstream>

#include "tests/spec/audit/readers/as_printed.hpp"

namespace assay::spec::audit::as_printed_clusters_test {
namespace {

using as_printed::lines;
using as_printed::read;
using as_printed::setting;
using as_printed::values;

const std::string torchrun =
    "nohup: ignoring input\n+ NGPU=8\n+ torchrun --nproc_per_node=8 -m torchtitan.train\n"
    "W0822 07:52:30.276310 1957 site-packages/torch/distributed/run.py:792] *********************\n";
TEST(AsPrintedClustersSpec, TorchtitanWithItsHeaderColoursAndValidation) {
  const std::string line = "[rank0]:[titan] 2025-08-22 07:52:38,100 - root - INFO - ";
  const RunRecord run = read(
      torchrun + line + "Building 1-D device mesh with ['dp_shard'], [8]\n" + line +
      "Building llama3 8B with TransformerModelArgs(dim=4096, n_layers=32, n_heads=32, n_kv_heads=8, "
      "vocab_size=128256, multiple_of=1024, max_seq_len=8192, eos_id=0)\n" +
      line + "CUDA capacity: NVIDIA H100 with 94.99GiB memory\n" + line +
      "\x1b[34mModel llama3 8B \x1b[31msize: 8,030,261,248 total parameters\x1b[39m\n" + line +
      "Peak FLOPS used for computing MFU: 9.890e+14\n" + line +
      "Trainer is initialized with local batch size 1, global batch size 8, gradient accumulation steps 1, "
      "sequence length 8192, total steps 1000 (warmup 200)\n" +
      line + "Training starts at step 1\n" + line +
      "\x1b[31mstep:  1  \x1b[32mloss: 12.2465  \x1b[38;2;180;60;0mgrad_norm:  4.5253  "
      "\x1b[38;2;54;234;195mmemory: 33.21GiB(34.95%)  \x1b[34mtps: 870  \x1b[36mtflops: 50.41  "
      "\x1b[35mmfu: 5.10%\x1b[39m\n" +
      line +
      "\x1b[31mstep: 10  \x1b[32mloss: 10.2391  \x1b[38;2;180;60;0mgrad_norm: 16.1413  "
      "\x1b[38;2;54;234;195mmemory: 44.84GiB(47.19%)  \x1b[34mtps: 5,615  \x1b[36mtflops: 325.20  "
      "\x1b[35mmfu: 32.88%\x1b[39m\n" +
      line + "validate step: 10  loss:  8.9  memory: 40.00GiB(42.10%)  tps: 9,000\n" + line +
      "Saving the checkpoint (or staging if async is enabled).\n");
  EXPECT_EQ(values(run, Field::loss), (std::vector<double>{12.2465, 10.2391}));
  EXPECT_EQ(values(run, Field::tokens_per_second), (std::vector<double>{870.0, 5615.0}));
  EXPECT_EQ(setting(run, Setting::data_parallel), 8);  // of the mesh, not of "[titan]"
  EXPECT_EQ(setting(run, Setting::gpus), 8);
  EXPECT_EQ(setting(run, Setting::sequences), 8);
  EXPECT_EQ(setting(run, Setting::accumulation), 1);
  EXPECT_EQ(setting(run, Setting::parameters), 8030261248);
  EXPECT_EQ(run.gpu, "NVIDIA H100");
}

TEST(AsPrintedClustersSpec, TorchtitanOfSeveralRanksThatDoNotSayWhichTheyAre) {
  std::string log;
  for (int step = 1; step <= 5; ++step)
    for (int rank = 0; rank < 8; ++rank)
      log += "[titan] 2026-02-24 19:46:17,508 - root - INFO - step:  " + std::to_string(step) +
             "  loss:  7.6" + std::to_string(step) +
             "  grad_norm: 26.6250  memory: 66.91GiB(37.51%)  tps: 10,0" + std::to_string(50 - rank % 2) +
             "  tflops: 314.69  mfu: 13.99%\n";
  EXPECT_EQ(read(log).steps_seen, 5);
  EXPECT_EQ(read(log).ranks, 8);
  EXPECT_EQ(judge("steps", read(log)).judged, 5);  // of one rank
  // Some ranks are a line ahead of others.
  const std::size_t of_step_4 = log.find("step:  4"), line = log.rfind('\n', of_step_4) + 1,
                    end = log.find('\n', line) + 1, before = log.rfind('\n', line - 2) + 1;
  const std::string ahead = log.substr(0, before) + log.substr(line, end - line) +
                            log.substr(before, line - before) + log.substr(end);
  EXPECT_EQ(judge("steps", read(ahead)).judged, 5);
  // One line twice is not a rank.
  const std::string one = lines(1, 5, "[titan] step:  @  loss:  7.6@  grad_norm: 26.6250  tps: 10,050\n"),
                    doubled = one + one.substr(one.find("[titan] step:  5"));
  std::istringstream in(doubled);
  EXPECT_NE(contradictions(read_log(in, "log")).find("steps: "), std::string::npos);
}

TEST(AsPrintedClustersSpec, TorchtitanUnderSrunAndOfOldVersions) {
  const RunRecord srun = read(lines(1, 4,
                                    "0: [titan] step:  @  loss:  7.6@  grad_norm: 26.6250  tps: 10,050\n"
                                    "1: [titan] step:  @  loss:  7.6@  grad_norm: 26.6250  tps: 10,049\n"));
  EXPECT_EQ(values(srun, Field::rank), (std::vector<double>{0.0, 1, 0, 1, 0, 1, 0, 1}));
  const RunRecord wps =
      read(lines(1, 4,
                 "[rank0]:2024-06-10 07:37:01,276 - root - INFO - \x1b[36mstep:  @  \x1b[32mloss:  9.@000  "
                 "\x1b[33mmemory: 34.21GiB(43.22%)  \x1b[34mwps: 5,9@5  \x1b[35mmfu: 34.6@%\x1b[39m\n"));
  EXPECT_EQ(values(wps, Field::tokens_per_second), (std::vector<double>{5915.0, 5925, 5935, 5945}));
}

TEST(AsPrintedClustersSpec, TorchtitansPipelineRanksHaveNoLoss) {
  const RunRecord run =
      read(lines(1, 4,
                 "[rank0]:2025-03-05 07:37:01,276 - root - INFO - step:  @  loss: -1.0000  memory: "
                 "21.15GiB(22.27%)  tps: 3,215  mfu: 18.52%\n"));
  EXPECT_EQ(run.steps_seen, 4);
  EXPECT_TRUE(values(run, Field::loss).empty());
}

TEST(AsPrintedClustersSpec, MegatronOldAndNew) {
  const RunRecord old = read(
      "time (ms) | forward-backward: 1000\n" +
      lines(
          1, 5,
          " iteration      12@/  250000 | consumed samples:       12@000 | elapsed time per iteration (ms): "
          "8654@.2 | learning rate: 9.150E-06 | global batch size:  1000 | lm loss: 2.50422@E+00 | loss "
          "scale: 1.0 | grad norm: 0.23@ | number of skipped iterations:   0 | number of nan iterations:   "
          "0 |\ntime (ms)\n    forward-backward ...............................: (86000.10, 86010.20)\n"));
  EXPECT_EQ(values(old, Field::step), (std::vector<double>{121.0, 122, 123, 124, 125}));
  EXPECT_NEAR(values(old, Field::seconds)[0], 86.5412, 1e-9);
  EXPECT_EQ(values(old, Field::sequences_total)[4], 125000);

  const RunRecord fresh = read(
      "using world size: 8, data-parallel size: 8, context-parallel size: 1, hierarchical context-parallel "
      "sizes: None, tensor-model-parallel size: 1, pipeline-model-parallel size: 1\n"
      "------------------------ arguments ------------------------\n"
      "  seq_length ...................................... 4096\n"
      "  micro_batch_size ................................ 1\n"
      "-------------------- end of arguments ---------------------\n"
      "[Rank 0] (after 1 iterations) memory (MB) | allocated: 13000.1 | max allocated: 50000.2 | reserved: "
      "52000.0 | max reserved: 52000.0\n" +
      lines(1, 5,
            " [2025-03-01 10:11:1@.123456] iteration        @/    2000 | consumed samples:          @00 | "
            "elapsed time per iteration (ms): 99@.1 | throughput per GPU (TFLOP/s/GPU): 380.5 | learning "
            "rate: 3.000000E-07 | global batch size:   100 | lm loss: 1.09@000E+01 | mtp_1 loss: 1.1E+01 | "
            "loss scale: 1.0 | grad norm: 5.500 | num zeros: 0 | number of skipped iterations:   0 | number "
            "of nan iterations:   0 |\n") +
      " validation loss at iteration 5 | lm loss value: 1.0E+01 | lm loss PPL: 3.0E+04 |\n");
  EXPECT_EQ(setting(fresh, Setting::gpus), 8);
  EXPECT_EQ(setting(fresh, Setting::sequence_length), 4096);
  EXPECT_NEAR(values(fresh, Field::flops_rate)[0], 380.5e12, 1);
  EXPECT_NEAR(values(fresh, Field::loss)[1], 10.92, 1e-9);
}

TEST(AsPrintedClustersSpec, GptNeoxBetweenDeepSpeedsLines) {
  const RunRecord run = read(
      lines(1, 5,
            " samples/sec: 7.799 | iteration       3@/   10000 | elapsed time per iteration (ms): 4103.@ | "
            "learning "
            "rate: 2.111E-06 | approx flops per GPU: 112.9TFLOPS | lm_loss: 1.11866@E+01 | number of skipped "
            "iterations:   0 | number of nan iterations:   0 |\n"
            "[2023-07-25 21:03:21,037] [INFO] [logging.py:96:log_dist] [Rank 0] step=3@, skipped=0, "
            "lr=[2.17e-06, 2.17e-06], mom=[[0.9, 0.95], [0.9, 0.95]]\n"
            "[2023-07-25 21:03:17,269] [INFO] [timer.py:215:stop] epoch=0/micro_step=3@/global_step=3@, "
            "RunningAvgSamplesPerSec=7.86, CurrSamplesPerSec=8.0, MemAllocated=59.65GB, "
            "MaxMemAllocated=63.31GB\n"));
  EXPECT_EQ(values(run, Field::step), (std::vector<double>{31.0, 32, 33, 34, 35}));
  EXPECT_NEAR(values(run, Field::flops_rate)[0], 112.9e12, 1);
}

TEST(AsPrintedClustersSpec, MegatronsStampsAreItsClock) {
  const auto log = [](double each, const std::string& fraction) {
    std::string out;
    for (int i = 1; i <= 30; ++i) {
      const int second = static_cast<int>(i * each);
      char line[300];
      std::snprintf(
          line, sizeof line,
          " [2025-11-15 %02d:%02d:%02d%s] iteration %8d/     100 | consumed samples: %8d | elapsed time per "
          "iteration (ms): 4000.0 | learning rate: 1.0E-04 | global batch size:   128 | lm loss: %.6E | "
          "number of skipped iterations:   0 |\n",
          12 + second / 3600, second / 60 % 60, second % 60, fraction.c_str(), i, 128 * i, 7 - 0.01 * i);
      out += line;
    }
    return out;
  };
  const RunRecord run = read(log(4, ""));
  ASSERT_TRUE(run.steps[1][Field::elapsed] && run.steps[2][Field::elapsed]);
  EXPECT_EQ(run.steps[2][Field::elapsed]->value - run.steps[1][Field::elapsed]->value, 4);
  EXPECT_EQ(run.steps[1][Field::elapsed]->high - run.steps[1][Field::elapsed]->low, 0.5)
      << "cut off behind the second";
  EXPECT_EQ(judge("wall_clock", run).verdict, Verdict::holds);
  const RunRecord exact = read(log(4, ".789"));
  EXPECT_DOUBLE_EQ(exact.steps[2][Field::elapsed]->value, run.steps[2][Field::elapsed]->value + 0.789);
  EXPECT_NEAR(exact.steps[1][Field::elapsed]->high - exact.steps[1][Field::elapsed]->low, 5e-4, 1e-6);
  EXPECT_EQ(judge("wall_clock", exact).verdict, Verdict::holds);
  std::istringstream slow(log(8, ""));
  EXPECT_EQ(judge("wall_clock", read_log(slow, "log")).verdict, Verdict::contradicts);
}

/// 8 ranks x 11 steps, and as long a log as is thinned: a step that every rank prints is one step.
TEST(AsPrintedClustersSpec, StepsOfSeveralRanksAreCountedOnce) {
  const auto log = [](int steps, const std::string& prefix, bool in_turn) {
    std::string out;
    const auto add = [&](int step, int rank) {
      out += (prefix.empty() ? "" : prefix + std::to_string(rank) + "]:") + "step:  " + std::to_string(step) +
             "  loss:  7." + std::to_string(600 + step % 300) +
             "  grad_norm: 26.6250  memory: 66.91GiB(37.51%)  tps: 10,0" + std::to_string(50 - rank % 2) +
             "  tflops: 314.69  mfu: 13.99%\n";
    };
    // The last rank is a line ahead, but for the first.
    for (int step = 1; step <= steps; ++step)
      for (int rank = 0; rank < 8; ++rank)
        if (in_turn || rank < 7)
          add(step, rank);
        else
          for (int ahead = step == 1 ? 1 : step + 1; ahead <= std::min(step + 1, steps); ++ahead)
            add(ahead, rank);
    return out;
  };
  for (const char* prefix : {"", "[rank"})
    for (const bool in_turn : {true, false})
      for (const int steps : {11, 2000}) {
        const RunRecord run = read(log(steps, prefix, in_turn));
        EXPECT_EQ(run.steps_of_rank, steps) << prefix << in_turn;
        EXPECT_EQ(run.ranks, 8) << prefix << in_turn << steps;
        EXPECT_EQ(run.steps_seen, *prefix ? 8 * steps : steps) << in_turn;
      }
  EXPECT_EQ(read(lines(1, 9, "step:  @  loss:  7.6@  grad_norm: 26.6250  tps: 10,050\n")).ranks, 1);
}

}  // namespace
}  // namespace assay::spec::audit::as_printed_clusters_test
