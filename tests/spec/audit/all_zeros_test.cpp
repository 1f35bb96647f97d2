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

}  // namespace
}  // namespace assay::spec::audit::all_zeros_test
