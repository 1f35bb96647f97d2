// labels: cli golden
// Several runs through the verb: which differences of speed are real, and whose a rate is.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cli/audit/audit_words.hpp"
#include "tests/support/scratch.hpp"

namespace assay::impl::cli::audit_compared_test {
namespace {

using audit_words::audit_of;
using audit_words::golden;
using audit_words::Outcome;

/// A trainer that prints the rate of one GPU is not one that hides something when several are slower each.
TEST(AuditComparedCli, ASlowerRunOfRatesPerGpuIsNoAccounting) {
  const tests::Scratch scratch;
  const auto log_on = [&](int gpus, int seconds_of_ten, const std::string& rates) {
    const std::string n = std::to_string(gpus);
    const auto line = [](int seconds, const std::string& said) {
      return "[titan] 2025-11-20 09:" + std::to_string(13 + seconds / 60) + ":" +
             std::to_string(100 + seconds % 60).substr(1) + ",000 - root - INFO - " + said + "\n";
    };
    std::string text =
        line(0, "Building 1-D device mesh with ['dp_shard'], [" + n + "]") +
        line(0, "CUDA capacity: NVIDIA H100 80GB HBM3 with 79.10GiB memory") +
        line(0, "Model llama3 8B size: 8,030,261,248 total parameters") +
        line(0, "Peak FLOPS used for computing MFU: 9.890e+14") +
        line(0, "Trainer is initialized with local batch size 1, global batch size " + n +
                    ", gradient accumulation steps 1, sequence length 8192, total steps 100 (warmup 20)");
    for (int i = 1; i <= 4; ++i)
      text +=
          line(i * seconds_of_ten, "step: " + std::to_string(10 * i) + "  loss: " + std::to_string(9 - i) +
                                       ".2500  grad_norm:  3.1000  memory: 42.00GiB(53.10%)  " + rates);
    return scratch.write(n + ".log", text).string();
  };
  const auto verdict_of = [&](int seconds_of_ten, const std::string& rates) {
    const auto json =
        nlohmann::json::parse(audit_of({log_on(2, 13, "tps: 6,302  tflops: 364.95  mfu: 36.90%"),
                                        log_on(8, seconds_of_ten, rates), "--json"})
                                  .out);
    return json.at("differences").at(0).at("verdict").get<std::string>();
  };
  EXPECT_EQ(verdict_of(13, "tps: 6,302  tflops: 364.95  mfu: 36.90%"), "equally fast per GPU (0.00 %)");
  EXPECT_EQ(verdict_of(20, "tps: 4,096  tflops: 237.22  mfu: 23.99%"), "real: 0.65x per GPU");
}

TEST(AuditComparedCli, RunsOfOtherWorkAreComparedByTheirMfu) {
  const Outcome other = audit_of({golden("llm_tii_2_gpus.log"), golden("kempnerforge_13b_8_gpus.log")});
  EXPECT_NE(other.out.find("other work (llama-1.36b and kempnerforge-13b), so tokens/s do not compare: exact "
                           "MFU 37.24 % and 33.99 %"),
            std::string::npos)
      << other.out;
  EXPECT_EQ(other.out.find("real: "), std::string::npos) << other.out;
  // One model on two GPUs: both speeds are there, and what each GPU could do.
  const tests::Scratch scratch;
  const auto log_on = [&](const std::string& gpu, double seconds) {
    std::string text = "step,seconds,tokens_per_second\n";
    for (int i = 1; i <= 20; ++i)
      text +=
          std::to_string(i) + "," + std::to_string(seconds) + "," + std::to_string(65536 / seconds) + "\n";
    std::string path = scratch.path().string() + "/" + gpu + ".csv";
    std::ofstream(path) << text;
    return path;
  };
  const auto json = nlohmann::json::parse(
      audit_of({log_on("a", 1.0), log_on("b", 0.8), "--set",
                "model=llama3-8b,gpu=H100 SXM,gpus=8,sequence_length=8192,sequences=8", "--json"})
          .out);
  const auto& difference = json.at("differences").at(0);
  EXPECT_NEAR(difference.at("mfu_exact").get<double>(), 1.25, 0.01);
  EXPECT_EQ(difference.at("verdict"), "real: 1.25x per GPU");
  // Of a model that is not known, only the tokens are compared.
  const std::string first = log_on("a", 1.0), second = log_on("b", 0.8);
  const auto unknown = nlohmann::json::parse(
      audit_of({first, second, "--set", "gpu=H100 SXM,gpus=8,sequence_length=8192,sequences=8", "--json"})
          .out);
  EXPECT_EQ(unknown.at("differences").at(0).at("verdict"),
            "1.25x the tokens/s per GPU, but the model of " + first + " and of " + second +
                " is not known, so a token may be other work (--model M)");
  const Outcome one = audit_of({golden("llm_tii_2_gpus.log"), golden("nanotron_time_per_iteration.log")});
  EXPECT_EQ(one.out.find("real: "), std::string::npos) << one.out;
  EXPECT_NE(one.out.find("cannot be compared: no number of GPUs (--gpus N)"), std::string::npos) << one.out;
}

TEST(AuditComparedCli, ARateIsReportedAsWhoseItIs) {
  const Outcome of_one = audit_of({golden("torchtitan_debug_model.log")});
  EXPECT_NE(of_one.out.find("\n    speed: 34,852 /s per GPU (no number of GPUs"), std::string::npos)
      << of_one.out;
  // nanotron prints both: 15,500 of all over 1,940 of one are 8 GPUs, and no other number.
  const Outcome both = audit_of({golden("nanotron_two_lines.log")});
  EXPECT_NE(both.out.find("15,500 /s on all GPUs, 1,938 /s per GPU"), std::string::npos) << both.out;
}

TEST(AuditComparedCli, OnlyAReadingThatChangesALogCorrectsIt) {
  const Outcome wrong = audit_of({golden("llm_tii_8_gpus.log")});
  EXPECT_NE(wrong.out.find("\n    corrected: 854,472 /s on all GPUs, 106,809 /s per GPU; MFU 37.18 % exact, "
                           "41.70 % palm_total, dense peak\n"),
            std::string::npos)
      << wrong.out;
  const Outcome right = audit_of({golden("kempnerforge_13b_8_gpus.log")});
  EXPECT_NE(right.out.find("\n    speed: 29,849 /s on all GPUs, 3,731 /s per GPU; MFU 33.99 % exact, "),
            std::string::npos)
      << right.out;
  EXPECT_EQ(right.out.find("corrected"), std::string::npos) << right.out;
  const Outcome none = audit_of({golden("nanogpt_a100.log")});
  EXPECT_EQ(none.out.find("corrected"), std::string::npos) << none.out;
  EXPECT_EQ(none.out.find("speed:"), std::string::npos) << "no number, no line\n" << none.out;
}

}  // namespace
}  // namespace assay::impl::cli::audit_compared_test
