// labels: unit golden
// Lines that trainers truthfully print and that an audit must not accuse: peaks as they round them.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "spec/audit/evidence.hpp"
#include "spec/audit/hypotheses.hpp"
#include "spec/audit/readers/read_log.hpp"
#include "tests/support/paths.hpp"

namespace assay::spec::audit {
namespace {

RunRecord read_text(const std::string& log, const std::string& set = "") {
  std::istringstream in(log);
  ReadOptions options;
  options.set = set;
  return read_log(in, "log", options);
}

std::string torchtitan_line(int step, const char* tps, const char* tflops, const char* mfu) {
  return "[rank0]:[titan] 2025-10-16 10:00:00,000 - root - INFO - step: " + std::to_string(step) +
         "  loss:  5.4321  grad_norm:  1.2345  memory: 60.10GiB(75.90%)  tps: " + tps +
         "  tflops: " + tflops + "  mfu: " + mfu + "%\n";
}

TEST(HonestLogsSpec, TheLineOfTorchtitan1884HoldsWithItsGpuNamed) {
  // torchtitan#1884, llama3 8B at 8192 on 8 H100 SXM; torchtitan divides by 989, the whitepaper prints 989.4.
  const RunRecord record = read_text(torchtitan_line(10, "5,615", "325.20", "32.88"),
                                     "model=llama3-8b,gpu=H100 SXM,gpus=8,sequence_length=8192");
  const Audit found = audit(record);
  EXPECT_FALSE(found.contradicts) << contradictions(record);
  EXPECT_EQ(judge("mfu_of_flops_rate", record).verdict, Verdict::holds);
  EXPECT_EQ(judge("mfu", record).verdict, Verdict::holds);
}

TEST(HonestLogsSpec, StepsOnH200AreNotBlamedOnAnotherPrecisionsPeak) {
  // 989e12 of 5,615 .. 6,800 tokens/s at 57.913 GFLOP per token; the data sheet's sparse tf32 peak is 989
  // too.
  std::string log;
  const double flop = 57.9182e9;
  for (int step = 1; step <= 30; ++step) {
    const double tps = 5000 + 61 * step, rate = tps * flop;
    char tflops[32], mfu[32], whole[32];
    std::snprintf(tflops, sizeof tflops, "%.2f", rate / 1e12);
    std::snprintf(mfu, sizeof mfu, "%.2f", 100 * rate / 989e12);
    std::snprintf(whole, sizeof whole, "%d,%03d", static_cast<int>(tps) / 1000, static_cast<int>(tps) % 1000);
    log += torchtitan_line(step * 10, whole, tflops, mfu);
  }
  for (const char* gpu : {"H200", "H100 SXM", "NVIDIA H200", "GH200 96GB"}) {
    const RunRecord record = read_text(log, "gpus=8,gpu=" + std::string(gpu));
    const Audit found = audit(record);
    EXPECT_FALSE(found.contradicts) << gpu << "\n" << contradictions(record);
    EXPECT_TRUE(found.readings.front().changes.empty()) << gpu;
  }
  // Against a peak that is none of H200's roundings it still contradicts.
  EXPECT_TRUE(audit(read_text(log, "gpus=8,gpu=B200")).contradicts);
}

TEST(HonestLogsSpec, KempnerForgesLogHoldsWithoutTheLineOfItsPeak) {
  std::ifstream file(tests::source_dir() + "/golden/logs/kempnerforge_13b_8_gpus.log");
  std::string log;
  for (std::string line; std::getline(file, line);)
    if (line.find("Detected GPU") == std::string::npos) log += line + "\n";
  ASSERT_GT(log.size(), 1000u);
  for (const char* set : {"", "gpu=H200", "gpu=NVIDIA H200"}) {
    const RunRecord record = read_text(log, set);
    EXPECT_TRUE(consistent(record)) << set << "\n" << contradictions(record);
  }
}

TEST(HonestLogsSpec, EveryPeakOfTrainersTablesIsARoundingOfTheDataSheets) {
  // pytorch/torchtitan@0258167 torchtitan/tools/utils.py, KempnerInstitute/KempnerForge@0549d2b
  // metrics/mfu.py, karpathy/llm.c@00247dc llmc/mfu.h; the entries that are of the GPU they name.
  struct Row {
    const char* gpu;
    double written;
  };
  for (const Row& row : {Row{"A100-SXM4-80GB", 312},
                         {"A100-PCIE-40GB", 312},
                         {"H100 SXM", 989},
                         {"H100 NVL", 835},
                         {"H100 PCIe", 756},
                         {"NVIDIA H200", 989},
                         {"B200", 2250},
                         {"GB200", 2500},
                         {"MI300X", 1300},
                         {"MI325X", 1300},
                         {"L40S", 362},
                         {"H100 SXM", 989.4},
                         {"H200", 989.5},
                         {"H100 SXM", 990},
                         {"MI300X", 1307.4},
                         {"GH200 96GB", 989}}) {
    const Interval written = as_written(*named_gpu(row.gpu).peak(Precision::bf16));
    EXPECT_TRUE(written.holds(row.written * 1e12)) << row.gpu << " " << row.written;
    EXPECT_LT(written.high / written.low, 1.01) << row.gpu;
  }
  // Other peaks are no roundings: the sparse one, that of the PCIe card, fp8's.
  const Interval h100 = as_written(*named_gpu("H100 SXM").peak(Precision::bf16));
  for (const double other : {1979e12, 835e12, 756e12, 988e12, 991e12}) EXPECT_FALSE(h100.holds(other));
}

}  // namespace
}  // namespace assay::spec::audit
