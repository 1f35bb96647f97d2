// labels: unit
// Tables whose MFU may be of each step or a running mean, which no trainer says.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <string>

#include "spec/audit/invariants.hpp"
#include "tests/support/read_text.hpp"

namespace assay::spec::audit::running_mean_unsaid_test {
namespace {

/// GPT-2 of 65 tokens on 8 A100: a line every ten steps, of 512 sequences of 1,024 tokens, as nanoGPT's fork
/// tells a metrics service: running_mfu, 0.9 x the line before + 0.1 x its own, in percent.
struct Table {
  double keep = 0.9;
  double flops_per_token = 6.233e8;
  int lines = 10;
  int odd = 0;  // line whose MFU is multiplied
  double odd_factor = 1;
  const char* format = "%.4f";

  Result mfu() const {
    std::string out = "step,loss,dt,tps,mfu\n";
    double mean = 46.5;
    for (int i = 1; i <= lines; ++i) {
      const double seconds = 0.295 * (1 + 0.04 * std::sin(2.3 * i)), rate = 512.0 * 1024 / seconds;
      mean = keep * mean + (1 - keep) * 100 * rate * flops_per_token / (8 * 312e12);
      char share[32], line[128];
      std::snprintf(share, sizeof share, format, mean * (i == odd ? odd_factor : 1));
      std::snprintf(line, sizeof line, "%d,%.4f,%.6g,%.6g,%s\n", 10 * i, 3.2 - 0.01 * i, seconds, rate,
                    share);
      out += line;
    }
    return judge("mfu",
                 tests::read_text(out,
                                  "flops_per_token=623300000,sequences=512,sequence_length=1024,gpus=8,"
                                  "gpu=a100-sxm-80gb",
                                  "step=step,loss=loss,seconds=dt,tokens_per_second=tps,mfu=mfu"));
  }
};

TEST(RunningMeanUnsaidSpec, AMeanThatItsLinesFormIsNoContradiction) {
  const Result mean = Table().mfu();
  EXPECT_EQ(mean.verdict, Verdict::holds);
  EXPECT_EQ(mean.note.find("a running mean of the lines, 0.9 x the one before + 0.1 x its own"), 0u);
  const Result single = Table{.keep = 0}.mfu();
  EXPECT_EQ(single.verdict, Verdict::holds);
  EXPECT_EQ(single.note.find("mean"), std::string::npos) << single.note;
}

TEST(RunningMeanUnsaidSpec, OfOtherNumbersAMeanIsNoExcuse) {
  EXPECT_EQ(Table{.flops_per_token = 2 * 6.233e8}.mfu().verdict, Verdict::contradicts);
  EXPECT_EQ((Table{.keep = 0, .odd = 5, .odd_factor = 1.1}.mfu().verdict), Verdict::contradicts);
  EXPECT_EQ((Table{.odd = 5, .odd_factor = 1.1}.mfu().verdict), Verdict::contradicts);
  EXPECT_EQ((Table{.odd = 5, .odd_factor = 1.1}.mfu().note.find("mean")), std::string::npos);
  EXPECT_EQ(Table{.keep = 0.99}.mfu().verdict, Verdict::contradicts);
}

TEST(RunningMeanUnsaidSpec, OfFewLinesOrFewDigitsAMeanIsNotTold) {
  EXPECT_EQ(Table{.lines = 4}.mfu().note.find("mean"), std::string::npos);
  EXPECT_NE(Table{.lines = 5}.mfu().note.find("mean"), std::string::npos);
  EXPECT_EQ(Table{.format = "%.0f"}.mfu().note.find("mean"), std::string::npos);
}

}  // namespace
}  // namespace assay::spec::audit::running_mean_unsaid_test
