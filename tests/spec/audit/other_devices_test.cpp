// labels: unit
// What a log leaves open of a device: all GPUs that have such a memory are told, and a doubled MFU beside the
// peak that would make it.
#include <gtest/gtest.h>

#include <string>

#include "spec/audit/hypotheses.hpp"
#include "tests/spec/audit/result_of.hpp"
#include "tests/support/read_text.hpp"

namespace assay::spec::audit::other_devices_test {
namespace {

/// torchtitan's Llama 3 8B on 8 GPUs, 57.8 GFLOP a token: 7,004 tokens/s are 405.6 TFLOP/s and 41.0 %.
RunRecord torchtitan(const std::string& device, const std::string& peak, const std::string& mfu) {
  std::string log =
      "[titan] - Building 1-D device mesh with ['dp_shard'], [8]\n[titan] - Building llama3 8B with "
      "TransformerModelArgs(dim=4096, n_layers=32, n_heads=32, n_kv_heads=8, vocab_size=128256, "
      "multiple_of=1024, "
      "ffn_dim_multiplier=1.3, norm_eps=1e-05, max_seq_len=8192)\n[titan] - CUDA capacity: " +
      device +
      "\n[titan] - Model llama3 8B size: 8,030,261,248 total parameters\n[titan] - Peak FLOPS used for "
      "computing MFU: " +
      peak +
      "\n[titan] - Trainer is initialized with local batch size 1, global batch size 8, gradient "
      "accumulation steps 1, "
      "sequence length 8192, total steps 200 (warmup 200)\n";
  for (int step = 1; step <= 8; ++step)
    log +=
        "[titan] - step:  " + std::to_string(step) +
        "  loss: 11.9000  grad_norm:  3.1000  memory: 48.25GiB(61.00%)  tps: 7,004  tflops: 405.62  mfu: " +
        mfu + "%\n";
  return tests::read_text(log);
}

using tests::result_of;

Change first_change(const RunRecord& record) {
  const Audit told = audit(record);
  return told.readings.front().changes.empty() ? Change{} : told.readings.front().changes.front();
}

TEST(OtherDevicesSpec, AMemoryIsThatOfAllGpusThatHaveItAndThePeak) {
  const RunRecord record = torchtitan("NVIDIA H200 with 79.10GiB memory", "9.890e+14", "41.01");
  const Audit told_of = audit(record);
  EXPECT_EQ(result_of(told_of, "device_memory").verdict, Verdict::contradicts);
  const Change told = first_change(record);
  EXPECT_EQ(told.id, "device_other");
  EXPECT_NE(told.text.find("NVIDIA H100 SXM"), std::string::npos) << told.text;
  EXPECT_EQ(told.text.find("A100"), std::string::npos) << told.text;
  // A peak that is the named GPU's own, and no other's of that memory: all are told.
  const Change any = first_change(torchtitan("NVIDIA B200 with 79.10GiB memory", "2.250e+15", "18.03"));
  EXPECT_EQ(any.id, "device_other");
  EXPECT_NE(any.text.find(" others"), std::string::npos) << any.text;
}

TEST(OtherDevicesSpec, ADoubledMfuIsNoOtherPeakForSure) {
  const Change told =
      first_change(torchtitan("NVIDIA H100 80GB HBM3 with 79.10GiB memory", "9.890e+14", "82.03"));
  std::string texts = told.text;
  for (const std::string& other : told.alternatives) texts += "; " + other;
  EXPECT_NE(texts.find("tf32"), std::string::npos) << texts;
  EXPECT_NE(texts.find("MFU is twice what model, rate and peak make"), std::string::npos) << texts;
  // Half of it is made with the sparse peak, as trainers do.
  const Change half =
      first_change(torchtitan("NVIDIA H100 80GB HBM3 with 79.10GiB memory", "9.890e+14", "20.51"));
  EXPECT_EQ(half.id, "peak_sparse") << half.text;
}

/// Of a GPU that nobody knows, the peak is the one that the log says.
TEST(OtherDevicesSpec, ADoubledMfuHasANameOnAnUnknownGpuToo) {
  const auto told = [](const std::string& mfu) {
    return first_change(torchtitan("NVIDIA Quux with 79.10GiB memory", "9.890e+14", mfu));
  };
  EXPECT_EQ(told("41.01").id, "");
  for (const auto& [mfu, text] : {std::pair("82.03", "twice"), std::pair("20.51", "half")}) {
    const Change change = told(mfu);
    std::string texts = change.text;
    for (const std::string& other : change.alternatives) texts += "; " + other;
    EXPECT_NE(texts.find(std::string("MFU is ") + text + " what"), std::string::npos) << texts;
    EXPECT_NE(texts.find(std::string("the printed peak is ") + text + " the one"), std::string::npos)
        << texts;
  }
}

}  // namespace
}  // namespace assay::spec::audit::other_devices_test
