// labels: unit
// The first words on a log: never more certain than what was judged.
#include "spec/audit/headline.hpp"

#include <gtest/gtest.h>

#include <sstream>

#include "spec/audit/readers/read_log.hpp"

namespace assay::spec::audit::headline_test {
namespace {

const std::string h100 = "NVIDIA H100 80GB HBM3";

/// torchtitan's lines of one GPU; `model`: with its header's line; `printed`: what stands behind tps.
Audit audit_of(const std::string& model, const std::string& printed, const std::string& gpu = h100) {
  const std::string head = "[titan] 2026-01-09 10:00:00,000 - root - INFO - ";
  std::istringstream in(
      head + "CUDA capacity: " + gpu + " with 79.11GiB memory\n" +
      (gpu == h100 ? head + "Peak FLOPS used for computing MFU: 9.890e+14\n" : "") + head + "Model " + model +
      " total parameters\n" + head +
      "Training starts at step 1, with local batch size 1, global batch size 1, sequence length 8192\n" +
      head + "step:  1  loss: 12.1691  memory: 45.20GiB(57.14%)  tps: 7,081" + printed + "\n");
  static std::vector<RunRecord> kept;
  kept = read_logs(in, "log");
  return audit(kept.front());
}

TEST(HeadlineSpec, AnMfuOfUnknownFlopsIsSaidToBeOpen) {
  const Audit open = audit_of("llama3 8B size: 7,241,732,096", "  tflops: 410.03  mfu: 41.45%");
  ASSERT_FALSE(open.contradicts);
  EXPECT_EQ(headline(open), "consistent but for its MFU and FLOP/s, which could not be judged");
}

TEST(HeadlineSpec, OneOfAKnownModelIsJudged) {
  const Audit judged = audit_of("llama3 8B size: 8,030,261,248", "  tflops: 410.06  mfu: 41.46%");
  EXPECT_EQ(headline(judged), "consistent") << judged.contradicts;
}

TEST(HeadlineSpec, AnMfuOfAnUnknownPeakIsOpenBesideARateThatIsJudged) {
  const Audit half =
      audit_of("llama3 8B size: 8,030,261,248", "  tflops: 410.06  mfu: 97.45%", "NVIDIA Z999");
  EXPECT_EQ(headline(half), "consistent but for its MFU, which could not be judged");
}

TEST(HeadlineSpec, ALogThatPrintsNoneIsConsistentWithoutOne) {
  EXPECT_EQ(headline(audit_of("llama3 8B size: 7,241,732,096", "")), "consistent");
}

}  // namespace
}  // namespace assay::spec::audit::headline_test
