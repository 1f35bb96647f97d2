// labels: unit
// A rate or a time of 0 on every line: no line says what is usual, but the other numbers of its line do.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "spec/audit/invariants.hpp"
#include "tests/support/read_text.hpp"

namespace assay::spec::audit::all_zeros_test {
namespace {

using tests::read_text;

/// torchtitan's, of a model that is not said.
std::string titan(const char* rate, const char* tflops, const char* mfu) {
  std::string log;
  for (int step = 1; step <= 8; ++step) {
    char text[256];
    std::snprintf(text, sizeof text,
                  "[titan] 2025-09-12 10:00:%02d,123 - root - INFO - step: %2d  loss: %7.4f  memory: "
                  "46.02GiB(58.18%%)  tps: %s  tflops: %s  mfu: %s%%\n",
                  step * 5, step, 9 - 0.2 * step, rate, tflops, mfu);
    log += text;
  }
  return log;
}

std::string table(const std::string& columns, const std::string& numbers) {
  std::string out = "step,loss," + columns + "\n";
  for (int i = 1; i <= 8; ++i) out += std::to_string(i) + ",5." + std::to_string(i) + "," + numbers + "\n";
  return out;
}

Result of(const std::string& log, const std::string& set = "") {
  return judge("values_possible", read_text(log, set));
}

TEST(AllZerosSpec, NoTokensInNoTimeContradictWhatTheOthersSay) {
  const Result told = of(titan("0", "408.85", "41.34"));
  ASSERT_EQ(told.verdict, Verdict::contradicts);
  EXPECT_EQ(told.contradicted, 7);  // the first line may not be measured yet
  EXPECT_EQ(told.causes.at(0).text,
            "tokens/s of 0 beside FLOP/s above 0: no work takes no time, and none is done at no speed");
  const std::string batch = "gpus=8,tokens_per_step=65536";
  EXPECT_EQ(of(table("tokens_per_second,seconds", "0,1.2"), batch).verdict, Verdict::contradicts);
  EXPECT_EQ(of(table("tokens_per_second,seconds", "54613,0.000"), batch).verdict, Verdict::contradicts);
  EXPECT_EQ(of(table("flops_rate,mfu", "0,0.41"), "gpus=8,gpu=H100 SXM").verdict, Verdict::contradicts);
}

TEST(AllZerosSpec, OneLineThatIsNotZeroChangesNothing) {
  std::string log = titan("0", "408.85", "41.34");
  const std::size_t last = log.rfind("tps: 0");
  log.replace(last, 6, "tps: 7,053");
  EXPECT_EQ(of(log).contradicted, 6);
}

TEST(AllZerosSpec, WhatMayBePrintedAsZeroIsNotAccused) {
  EXPECT_EQ(of(titan("0", "0.00", "0.00")).verdict, Verdict::holds);  // nothing is measured
  EXPECT_EQ(of(titan("0", "0.01", "0.00")).verdict, Verdict::holds);
  EXPECT_EQ(of(titan("7,053", "408.85", "0.00")).verdict, Verdict::holds);
  const std::string batch = "gpus=8,tokens_per_step=64";
  EXPECT_EQ(of(table("tokens_per_second,seconds", "0,20.2"), batch).verdict, Verdict::holds);
  EXPECT_EQ(of(table("tokens_per_second,seconds", "54613,0.0"), batch).verdict,
            Verdict::holds);                                                           // nearly 0.05
  EXPECT_EQ(of(table("tokens_per_second,seconds", "0,1.2")).verdict, Verdict::holds);  // no batch is said
}

/// Zeros that stand before the first measured number, in up to half of the lines.
TEST(AllZerosSpec, WhatIsNotMeasuredYetIsNotAccused) {
  const auto log = [](int zeros, int lines) {
    std::string out = "step,loss,tokens_per_second,seconds\n";
    for (int i = 1; i <= lines; ++i)
      out += std::to_string(i) + ",5." + std::to_string(i) + "," + (i <= zeros ? "0" : "54613") + ",1.2\n";
    return of(out, "gpus=8,tokens_per_step=65536").verdict;
  };
  EXPECT_EQ(log(10, 20), Verdict::holds);
  EXPECT_EQ(log(20, 200), Verdict::holds);
  EXPECT_EQ(log(18, 20), Verdict::contradicts);
  // Between measured ones.
  EXPECT_EQ(of(table("tokens_per_second,seconds", "54613,1.2") + "9,5.9,0,1.2\n10,5.9,54613,1.2\n",
               "gpus=8,tokens_per_step=65536")
                .verdict,
            Verdict::contradicts);
}

/// Each bound from both sides: what is not known may be as large, or as many, as any.
TEST(AllZerosSpec, WhatIsNotKnownMayBeAsLargeAsAny) {
  const std::string batch = "tokens_per_step=65536";
  // 54,613 tokens/s of 100,000 GPUs are 0.5 of one; a batch in 5 ms is 131 of one.
  EXPECT_EQ(of(table("tokens_per_second,seconds", "0,1.2"), batch).verdict, Verdict::holds);
  EXPECT_EQ(of(table("tokens_per_second,seconds", "0,0.005"), batch).verdict, Verdict::contradicts);
  // 10^14 FLOP/s are 5 tokens/s of a model of 2 x 10^13 FLOPs a token, and no more than what 0 may be.
  EXPECT_EQ(of(table("tokens_per_second,flops_rate", "0,1e14"), "gpus=1").verdict, Verdict::holds);
  EXPECT_EQ(of(table("tokens_per_second,flops_rate", "0,1e16"), "gpus=1").verdict, Verdict::contradicts);
  // 4.8 x 10^10 FLOPs a token: 20 tokens/s of all 8 GPUs may be 2.5 of one.
  const std::string model = "model=llama3-8b,sequence_length=8192,gpus=";
  EXPECT_EQ(of(table("tokens_per_second,flops_rate", "0,1.1e12"), model + "8").verdict, Verdict::holds);
  EXPECT_EQ(of(table("tokens_per_second,flops_rate", "0,1.1e12"), model + "1").verdict, Verdict::contradicts);
  EXPECT_EQ(of(table("flops_rate,tokens_per_second", "0,54613"), model + "8").verdict, Verdict::contradicts);
  EXPECT_EQ(of(table("flops_rate,tokens_per_second", "0,54613"), "gpus=8").verdict, Verdict::holds);
}

TEST(AllZerosSpec, SequencesInNoTimeAndNoneInSomeContradict) {
  EXPECT_EQ(of(table("seconds,sequences_per_second", "0.000,8.5")).verdict, Verdict::contradicts);
  EXPECT_EQ(of(table("seconds,sequences_per_second", "1.2,0.0000"), "gpus=8").verdict, Verdict::contradicts);
  EXPECT_EQ(of(table("seconds,sequences_per_second", "1.2,0"), "gpus=8").verdict, Verdict::holds);
}

}  // namespace
}  // namespace assay::spec::audit::all_zeros_test
