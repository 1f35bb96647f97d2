// labels: unit
// The first words on a log: never more certain than what was judged.
#include "spec/audit/headline.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <sstream>

#include "spec/audit/readers/read_log.hpp"

namespace assay::spec::audit::headline_test {
namespace {

const std::string h100 = "NVIDIA H100 80GB HBM3";

/// torchtitan's lines of one GPU; `model`: with its header's line; `printed`: what stands behind tps.
Audit audit_of(const std::string& model, const std::string& printed, const std::string& gpu = h100) {
  const std::string head = "[titan] 2026-01-09 10:00:00,000 - root - INFO - ";
  std::istringstream in(head + "CUDA capacity: " + gpu + " with 79.11GiB memory\n" +
                        (gpu == h100 ? head + "Peak FLOPS used for computing MFU: 9.890e+14\n" : "") + head +
                        "Model " + model + " total parameters\n" + head +
                        "Training starts at step 1, with local batch size 1, global batch size 1, sequence "
                        "length 8192, total steps 1000\n" +
                        head + "step:  1  loss: 12.1691  memory: 45.20GiB(57.14%)  tps: 7,081" + printed +
                        "\n");
  static std::vector<RunRecord> kept;
  kept = read_logs(in, "log");
  return audit(kept.front());
}

TEST(HeadlineSpec, AnMfuOfUnknownFlopsIsSaidToBeOpen) {
  const Audit open = audit_of("llama3 8B size: 7,248,023,552", "  tflops: 410.03  mfu: 41.45%");
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

/// 40 lines of torchtitan, 4 s apart, whose rates say that a step of 8,192 tokens took 4 s over `faster`; in
/// every `paused`-th gap 6 s more pass.
Audit audit_of_rates(double faster, int paused = 0) {
  char text[256];
  std::string log =
      "[titan] 2026-01-09 10:00:00,000 - root - INFO - Building 1-D device mesh with ['dp_shard'], [1]\n"
      "[titan] 2026-01-09 10:00:00,000 - root - INFO - Training starts at step 1, with local batch size 1, "
      "global batch size 1, sequence length 8192, total steps 40\n";
  int second = 0;
  for (int step = 1; step <= 40; ++step) {
    second += 4 + (paused > 0 && step % paused == 0 ? 6 : 0);
    std::snprintf(text, sizeof text,
                  "[titan] 2026-01-09 10:%02d:%02d,000 - root - INFO - step: %2d  loss: 12.1691  memory: "
                  "45.20GiB(57.14%%)  tps: %.0f\n",
                  second / 60, second % 60, step, 2048 * faster);
    log += text;
  }
  std::istringstream in(log);
  static std::vector<RunRecord> kept;
  kept = read_logs(in, "log");
  return audit(kept.front());
}

/// torchtitan's rate is of all the time since the line before: stamps that always show more of it are told.
TEST(HeadlineSpec, AClockThatAlwaysShowsMoreThanTheStepsIsTold) {
  for (const double faster : {1.1, 1.2, 1.3}) {
    const Audit found = audit_of_rates(faster);
    EXPECT_FALSE(found.contradicts) << faster;
    char most[64];
    std::snprintf(most, sizeof most, "consistent, but its clock shows at least %.0f", 100 * faster - 101);
    EXPECT_TRUE(headline(found).starts_with(most)) << headline(found) << ", " << most;
    const auto clock = std::find_if(found.results.begin(), found.results.end(),
                                    [](const Result& r) { return r.id == "rate_wall_clock"; });
    EXPECT_NE(clock->note.find("more in every stretch"), std::string::npos) << clock->note;
  }
  EXPECT_EQ(headline(audit_of_rates(1)), "consistent");
  EXPECT_EQ(headline(audit_of_rates(1.02)), "consistent") << "as much as writing the lines may take";
  for (const int paused : {10, 18})  // 18: in the last stretch, too
    EXPECT_EQ(headline(audit_of_rates(1, paused)), "consistent") << "a pause now and then";
}

/// Llama 3.2 1B, whose table is its head: 6 x 1,235,814,400 + 12 x 16 x 2,048 x 8,192 FLOPs a token.
TEST(HeadlineSpec, ATiedTableIsMultipliedInTorchtitansCount) {
  const std::string head = "[titan] 2026-01-09 10:00:00,000 - root - INFO - ";
  for (const bool tied : {true, false}) {
    std::istringstream in(
        head +
        "Building llama3 1B with TransformerModelArgs(dim=2048, n_layers=16, n_heads=32, n_kv_heads=8, " +
        "vocab_size=128256, multiple_of=256, ffn_dim_multiplier=1.5, enable_weight_tying=" +
        (tied ? "True" : "False") + ")\n" + head + "Model llama3 1B size: 1,235,814,400 total parameters\n" +
        head + "Building 1-D device mesh with ['dp_shard'], [1]\n" + head +
        "Training starts at step 1, with local batch size 1, global batch size 1, sequence length 8192, "
        "total steps 1000\n" +
        head + "step:  1  loss: 12.1691  memory: 45.20GiB(57.14%)  tps: 10,000  tflops: 106.36\n");
    const auto runs = read_logs(in, "log");
    EXPECT_EQ(audit(runs.front()).contradicts, !tied) << contradictions(runs.front());
  }
}

/// A rate of torchtitan leaves out validations, and what came before them since the line before.
TEST(HeadlineSpec, ValidationsMayTakeAnyTime) {
  const std::string head = "[titan] 2026-01-09 10:", tail = ",000 - root - INFO - ";
  const auto log = [&](bool lines, int from) {
    std::string out;
    char text[160];
    for (int step = from; step <= 40; ++step) {
      const auto line = [&](int seconds, const char* form) {
        char stamp[16];
        std::snprintf(stamp, sizeof stamp, "%02d:%02d", seconds / 60, seconds % 60);
        std::snprintf(text, sizeof text, form, step);
        out += head + stamp + tail + text + "\n";
      };
      if (step > from || from == 1)
        line(10 * step, "step: %2d  loss: 12.1691  memory: 45.20GiB(57.14%%)  tps: 2,048");
      if (lines)
        line(10 * step + 6, "validate step: %d  loss:  9.1000  memory: 48.25GiB(61.00%%)  tps: 12,000");
    }
    return out;
  };
  const std::string header = head + "00:00" + tail + "Building 1-D device mesh with ['dp_shard'], [1]\n" +
                             head + "00:00" + tail +
                             "Training starts at step 1, with local batch size 1, global batch size 1, "
                             "sequence length 8192, total steps 1000\n";
  static std::vector<RunRecord> kept;
  const auto read = [](const std::string& text) {
    std::istringstream in(text);
    kept = read_logs(in, "log");
    return audit(kept.front());
  };
  EXPECT_EQ(headline(read(header + log(true, 1))), "consistent");
  EXPECT_TRUE(kept.front().validates);
  const Audit lost = read(header + log(false, 1));  // as grep leaves it
  ASSERT_TRUE(lost.contradicts);
  EXPECT_EQ(lost.readings.front().changes.front().id, "time_left_out");
  // A tail whose first line is a validation's: none of these is a step.
  ASSERT_FALSE(read(log(true, 38)).contradicts);
  EXPECT_EQ(kept.front().steps_seen, 2);
}

/// Megatron-LM's lines, one every ten iterations of 2 s, that come `apart` seconds apart.
Audit audit_of_megatron(int apart) {
  char text[400];
  std::string log;
  for (int k = 1; k <= 20; ++k) {
    std::snprintf(
        text, sizeof text,
        " [2024-04-06 03:%02d:%02d] iteration %8d/     200 | consumed samples: %12d | elapsed time per "
        "iteration (ms): 2000.0 | learning rate: 1.420000E-05 | global batch size:   128 | lm loss: "
        "1.8%05dE+00 | loss scale: 1.0 | grad norm: 1.300 |\n",
        k * apart / 60, k * apart % 60, 10 * k, 1280 * k, 100 * k);
    log += text;
  }
  std::istringstream in(log);
  static std::vector<RunRecord> kept;
  kept = read_logs(in, "log");
  return audit(kept.front());
}

/// Its times are means since the line before, but for evaluation and saving, which its timer leaves out.
TEST(HeadlineSpec, MegatronsTimerStopsForEvaluationAndSaving) {
  EXPECT_EQ(headline(audit_of_megatron(20)), "consistent");
  const Audit found = audit_of_megatron(24);
  EXPECT_TRUE(headline(found).starts_with("consistent, but its clock shows at least 1")) << headline(found);
  const auto clock = std::find_if(found.results.begin(), found.results.end(),
                                  [](const Result& r) { return r.id == "wall_clock"; });
  EXPECT_NE(clock->note.find("its timer stops for evaluation and saving"), std::string::npos) << clock->note;
  const Audit other = audit_of_rates(1.2);
  for (const Result& r : other.results) EXPECT_EQ(r.note.find("its timer"), std::string::npos) << r.note;
}

/// Beyond a quarter it contradicts; that k is read as 1,024 is no cause: the clock cannot tell it from 1,000.
TEST(HeadlineSpec, AClockDoesNotTellUnitsThatLieNearEachOther) {
  for (const double faster : {1.34, 1.36, 1.5}) {
    const Audit found = audit_of_rates(faster);
    ASSERT_TRUE(found.contradicts) << faster;
    for (const Change& change : found.readings.front().changes)
      EXPECT_NE(change.id, "rate_unit") << change.text;
  }
}

TEST(HeadlineSpec, ALogThatPrintsNoneIsConsistentWithoutOne) {
  EXPECT_EQ(headline(audit_of("llama3 8B size: 7,248,023,552", "")), "consistent");
}

TEST(HeadlineSpec, RatesThatAreNoNumbersAreNotConsistent) {
  std::string log =
      "[titan] - step:  1  loss: 12.1691  memory: 45.20GiB(57.14%)  tps: nan\n"
      "[titan] - step:  2  loss: 12.0691  memory: 45.20GiB(57.14%)  tps: nan\n";
  const auto said = [](const std::string& text) {
    std::istringstream in(text);
    const std::vector<RunRecord> runs = read_logs(in, "log");
    return headline(audit(runs.front()));
  };
  EXPECT_EQ(said(log), "consistent but for its tokens/s, NaN on every line, which could not be judged");
  EXPECT_EQ(said(log + "[titan] - step:  3  loss: 12.0  memory: 45.20GiB(57.14%)  tps: 7,081\n"),
            "consistent");
}

}  // namespace
}  // namespace assay::spec::audit::headline_test
