// labels: unit
// Logs of another shape than the stated one, by hand: Qwen3 1.8B is stated with 24 layers of 2,048, 16 heads,
// 8 key/value heads, an inner width of 6,144 and two tables of 151,643. A block has 2 x 2,048^2 entries for
// queries and output, 2 x 2,048 x 128 K for keys and values, 3 x 2,048 F for the MLP; 49 gains of 2,048 and
// the tables' 621,129,728 are 621,230,080.
#include <gtest/gtest.h>

#include <algorithm>

#include "spec/audit/hypotheses.hpp"

namespace assay::spec::audit::shape_readings_test {
namespace {

RunRecord printed(double parameters, double ffn_flops) {
  RunRecord run;
  run.origin = "built by hand";
  run.model = "qwen3-1.8b";
  run[Setting::sequence_length] = exactly(2048, 1);
  if (parameters > 0) run[Setting::parameters] = exactly(parameters, 2);
  if (ffn_flops > 0) run[Setting::ffn_flops_per_layer] = exactly(ffn_flops, 3);
  return run;
}

const Result& result_of(const Audit& audit, std::string_view id) {
  return *std::find_if(audit.results.begin(), audit.results.end(),
                       [&](const Result& result) { return result.id == id; });
}

/// Every text under which the best reading explains, alternatives too.
std::string told(const Audit& audit) {
  std::string out;
  for (const Change& change : audit.readings.front().changes) {
    out += change.text + "\n";
    for (const std::string& other : change.alternatives) out += "or " + other + "\n";
  }
  return out;
}

constexpr std::string_view both_dropped =
    "another shape ran: 16 key/value heads, one for each query head, not 8, and an inner width of 5,461 = "
    "int(8 x 2,048 / 3), not 6,144\n";

TEST(ShapeReadingsSpec, TheParametersAloneDoNotTellDroppedSettingsFromGainsLeftOut) {
  // 24 x (4 x 2,048^2 + 3 x 2,048 x 5,461) + 621,230,080 = 1,829,140,480, which is 24 x 2,048 below the
  // stated shape's 1,829,189,632.
  const RunRecord run = printed(1829140480, 0);
  const Audit audit = spec::audit::audit(run);
  EXPECT_EQ(result_of(audit, "parameters").verdict, Verdict::contradicts);
  const std::string all = told(audit);
  EXPECT_NE(all.find(both_dropped), std::string::npos) << all;
  EXPECT_NE(all.find("one norm gain per layer is not counted, or not there\n"), std::string::npos) << all;
}

TEST(ShapeReadingsSpec, TheMlpsFlopsTellThem) {
  // 2 x 2,048 x 3 x 2,048 x 5,461 = 137,430,564,864; the stated width makes 154,618,822,656.
  const RunRecord run = printed(1829140480, 137430564864);
  const Audit audit = spec::audit::audit(run);
  for (const char* id : {"parameters", "ffn_flops_per_layer"}) {
    const Result& result = result_of(audit, id);
    EXPECT_EQ(result.verdict, Verdict::contradicts) << id;
    ASSERT_EQ(result.causes.size(), 1u) << id;
    EXPECT_EQ(result.causes.front().id, "kv_heads_as_heads_and_ffn_two_thirds");
  }
  EXPECT_EQ(result_of(audit, "ffn_flops_per_layer").recomputed.low, 154618822656);
  EXPECT_EQ(told(audit), both_dropped);
  EXPECT_TRUE(audit.readings.front().unexplained.empty());
  const auto& ran = audit.readings.front().changes.front().model;
  ASSERT_TRUE(ran.has_value());
  EXPECT_EQ(parameter_count(*ran).to_string(), "1829140480");
}

TEST(ShapeReadingsSpec, EachSettingMayBeDroppedAlone) {
  // 24 x (2 x 2,048^2 + 2 x 2,048 x 1,024 + 3 x 2,048 x 5,461) + 621,230,080
  const RunRecord narrow = printed(1728477184, 0);
  EXPECT_EQ(told(spec::audit::audit(narrow)),
            "another shape ran: an inner width of 5,461 = int(8 x 2,048 / 3), not 6,144\n");
  // 24 x (2 x 2,048^2 + 2 x 2,048 x 1,024 + 3 x 2,048 x 5,632) + 621,230,080: 5,632 = 22 x 256
  const RunRecord rounded = printed(1753692160, 0);
  EXPECT_EQ(
      told(spec::audit::audit(rounded)),
      "another shape ran: an inner width of 5,632 = int(8 x 2,048 / 3) rounded up to a multiple of 256, "
      "not 6,144\n");
  // 24 x (4 x 2,048^2 + 3 x 2,048 x 6,144) + 621,230,080
  const RunRecord heads = printed(1929852928, 0);
  EXPECT_EQ(told(spec::audit::audit(heads)),
            "another shape ran: 16 key/value heads, one for each query head, not 8\n");
  // 2 x 2,048 x 3 x 2,048 x 5,461 beside the stated shape's parameters: no shape makes both.
  const RunRecord apart = printed(1829189632, 137430564864);
  EXPECT_EQ(spec::audit::audit(apart).readings.front().unexplained.size(), 1u);
}

TEST(ShapeReadingsSpec, WhatTheStatedShapeMakesHolds) {
  const RunRecord run = printed(1829189632, 154618822656);
  const Audit audit = spec::audit::audit(run);
  EXPECT_EQ(result_of(audit, "parameters").verdict, Verdict::holds);
  EXPECT_EQ(result_of(audit, "ffn_flops_per_layer").verdict, Verdict::holds);
}

}  // namespace
}  // namespace assay::spec::audit::shape_readings_test
