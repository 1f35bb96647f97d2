// labels: unit
// Memory in use against the device's, and the share of it that a line prints.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "spec/audit/invariants.hpp"
#include "tests/support/read_text.hpp"

namespace assay::spec::audit::memory_test {
namespace {

/// A line of a GPU of 80 GB: memory in GB, and its share in percent.
RunRecord run(double reserved, double allocated, double share) {
  RunRecord r;
  r[Setting::gpu_memory] = exactly(80e9, 1);
  Step step;
  step.line = 2;
  step[Field::step] = exactly(1, 2);
  if (reserved > 0) step[Field::memory_reserved] = exactly(reserved * 1e9, 2);
  step[Field::memory_allocated] = exactly(allocated * 1e9, 2);
  step[Field::memory_share] = parse_printed(std::to_string(share), Kind::measured, 0.01, 2);
  r.steps.push_back(step);
  r.steps_seen = 1;
  return r;
}

TEST(MemorySpec, TheShareIsOfWhatIsReservedWhereThatIsPrinted) {
  EXPECT_EQ(judge("memory_share", run(60, 40, 75)).verdict, Verdict::holds);
  EXPECT_EQ(judge("memory_share", run(60, 40, 50)).verdict, Verdict::contradicts);
  EXPECT_EQ(judge("memory_share", run(0, 40, 50)).verdict, Verdict::holds);
  EXPECT_EQ(judge("memory_share", run(0, 40, 75)).verdict, Verdict::contradicts);
}

TEST(MemorySpec, AShareTellsOfAnotherDevice) {
  const auto titan = [](const char* share) {
    RunRecord r = tests::read_text(
        std::string(
            "[rank0]:2024-08-19 11:10:37,109 - root - INFO - step: 10  loss: 12.1951  memory: 81.67GiB(") +
        share + "%)  wps: 111,770  mfu: 22.68%\n");
    r.gpu = "NVIDIA H100 80GB HBM3";
    return judge("memory", r);
  };
  const Result other = titan("85.93");  // of 95.04 GiB
  ASSERT_EQ(other.verdict, Verdict::contradicts);
  ASSERT_EQ(other.causes.size(), 1U);
  EXPECT_EQ(other.causes[0].id, "memory_impossible");
  EXPECT_NE(other.causes[0].text.find("102.0"), std::string::npos) << other.causes[0].text;
  EXPECT_EQ(titan("103.25").causes.at(0).id, "memory_gib_as_gb");  // of 79.10 GiB
}

Verdict of_device(const char* gpu, const char* gib) {
  RunRecord r;
  r.gpu = gpu;
  r[Setting::gpu_memory] = parse_printed(gib, Kind::measured, 0x1p30, 1);
  return judge("device_memory", r).verdict;
}

TEST(MemorySpec, ADriverMayReportMoreThanTheSheetRounds) {
  for (const auto& [gpu, gib] :
       std::vector<std::pair<const char*, const char*>>{{"NVIDIA GB200", "187.28"},
                                                        {"NVIDIA GB200", "184.31"},
                                                        {"NVIDIA B200", "178.35"},
                                                        {"NVIDIA B300 SXM6 AC", "267.69"},
                                                        {"NVIDIA GB300", "276.62"},
                                                        {"NVIDIA H200", "139.83"},
                                                        {"NVIDIA H100 80GB HBM3", "79.10"},
                                                        {"AMD Instinct MI355X", "287.98"}})
    EXPECT_EQ(of_device(gpu, gib), Verdict::holds) << gpu << " " << gib;
  // GB that are called GiB, and more than is mounted.
  for (const auto& [gpu, gib] : std::vector<std::pair<const char*, const char*>>{
           {"NVIDIA GB200", "199.72"}, {"NVIDIA B200", "191.51"}, {"NVIDIA H200", "150.14"}})
    EXPECT_EQ(of_device(gpu, gib), Verdict::contradicts) << gpu << " " << gib;
}

TEST(MemorySpec, WhatIsHeldAgainstThePeakAloneIsShownSo) {
  RunRecord r = run(60, 40, 75);
  r[Setting::gpu_memory].reset();
  r.steps[0][Field::memory_peak] = exactly(50e9, 2);
  const Result result = judge("memory", r);
  EXPECT_EQ(result.verdict, Verdict::holds);
  EXPECT_EQ(result.printed, 40e9);
  EXPECT_EQ(result.recomputed.high, 50e9);
}

constexpr const char* llmq_lines =
    "[T] step     0 [ 19.9%] | time:  1800 ms | norm   4.300000 | loss   3.300000 | tps 72817 | sol 22.3%\n"
    "[T] step     1 [ 39.8%] | time:  1798 ms | norm   4.300000 | loss   3.290000 | tps 72898 | sol 22.3%\n";
constexpr const char* llmc_lines =
    "step    1/100 | loss 11.000000 (+nanz)| norm 15.3000 (+nanz)| lr 8.57e-07 | 3056.36 ms | 42.6% bf16 MFU "
    "| 171545 tok/s\n"
    "step    2/100 | loss 10.900000 (+nanz)| norm 15.3000 (+nanz)| lr 8.57e-07 | 3056.36 ms | 42.6% bf16 MFU "
    "| 171545 tok/s\n";

TEST(MemorySpec, LlmcSaysWhatIsInUseBeforeItsSteps) {
  const auto of = [](const std::string& in_use) {
    return judge("memory",
                 tests::read_text("device memory usage: " + in_use + " MiB / 81251 MiB\n" + llmc_lines));
  };
  EXPECT_EQ(of("62003").verdict, Verdict::holds);
  EXPECT_EQ(of("62003").printed, 62003 * 0x1p20);
  // Whole mebibytes, cut off: the same number is no more than the device has.
  EXPECT_EQ(of("81251").verdict, Verdict::holds);
  const Result beyond = of("96003");
  EXPECT_EQ(beyond.verdict, Verdict::contradicts);
  EXPECT_EQ(beyond.lines, std::vector<std::int64_t>{1});
}

TEST(MemorySpec, LlmqSaysItOfEachDevice) {
  const auto of = [](const std::string& first, const std::string& second) {
    std::string log;
    for (const std::string& in_use : {first, second})
      log += "[System 0]\n  Device 0: NVIDIA GeForce RTX 4090\n  Memory: " + in_use + " MiB / 24080 MiB\n\n";
    return judge("memory", tests::read_text(log + llmq_lines));
  };
  EXPECT_EQ(of("433", "433").verdict, Verdict::holds);
  EXPECT_EQ(of("433", "29906").verdict, Verdict::contradicts);
  EXPECT_EQ(of("29906", "433").verdict, Verdict::contradicts);
}

}  // namespace
}  // namespace assay::spec::audit::memory_test
