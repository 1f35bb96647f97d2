// labels: unit
// llm.q's "sol": each product's FLOPs over the peak of the dtype that computes it.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "spec/audit/conventions.hpp"
#include "spec/audit/hypotheses.hpp"
#include "tests/spec/audit/result_of.hpp"
#include "tests/support/read_text.hpp"

namespace assay::spec::audit::product_peaks_test {
namespace {

using tests::result_of;

// Qwen2.5 7B, a token: 28 layers of 2 x 3,584^2 + 2 x 3,584 x 512 + 3 x 3,584 x 18,944 parameters, six times;
// a head of 152,064 x 3,584; the causal half of 28 x 3,584 x 2,048 pairs, 12 times.
constexpr double blocks = 6.0 * 28 * (2.0 * 3584 * 3584 + 2.0 * 3584 * 512 + 3.0 * 3584 * 18944),
                 head = 6.0 * 152064 * 3584, pairs = 6.0 * 28 * 3584 * 2048;

/// 71,859 tokens/s of four H100 (1,978.9 TFLOP/s of fp8, 989.4 of bf16), and that "sol".
RunRecord llmq(double share, const std::string& dtype = "e4m3",
               const std::string& gpu = "NVIDIA H100 80GB HBM3") {
  std::string log = "[Options]\n  model             : qwen2.5-7b\n  matmul-dtype      : " + dtype +
                    "\n  gpus              : 4\n  batch-size        : 4\n  grad-accumulation : 8\n"
                    "  seq-len           : 2048\n\n[System 0]\n  Device 0: " +
                    gpu + "\n\n";
  for (int step = 0; step < 12; ++step) {
    char line[160];
    std::snprintf(
        line, sizeof line,
        "[T] step %5d [%5.1f%%] | time:  3648 ms | norm   2.424550 | loss   %f | tps 71859 | sol %.1f%%\n",
        step, 2.5 * (step + 1), 3.2 - 0.01 * step, 100 * share);
    log += line;
  }
  return tests::read_text(log);
}

TEST(ProductPeaksSpec, BlocksAreOfTheNarrowDtypeAlone) {
  const double rate = 71859.0 / 4, each = rate * (blocks / 1978.9e12 + (head + pairs) / 989.4e12),
               at_one = rate * (blocks + head + pairs) / 1978.9e12;
  EXPECT_NEAR(each, 0.437, 5e-4);
  EXPECT_EQ(judge("mfu", llmq(each)).verdict, Verdict::holds);
  // All at fp8's, and the sparse one.
  for (const double lie : {at_one, each / 2, 2 * each, 1.05 * each})
    EXPECT_EQ(judge("mfu", llmq(lie)).verdict, Verdict::contradicts) << lie;
  const Audit sparse = audit(llmq(each / 2));
  EXPECT_EQ(tests::first_cause(sparse), "peak_sparse");
  // All in bf16.
  EXPECT_EQ(judge("mfu", llmq(2 * at_one, "bf16")).verdict, Verdict::holds);
  EXPECT_EQ(judge("mfu", llmq(each, "bf16")).verdict, Verdict::contradicts);
  // Of a GPU that is not known there is no peak of either.
  EXPECT_EQ(judge("mfu", llmq(each, "e4m3", "NVIDIA Z9")).verdict, Verdict::cannot_be_judged);
}

}  // namespace
}  // namespace assay::spec::audit::product_peaks_test
