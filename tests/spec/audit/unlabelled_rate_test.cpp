// labels: unit
// Tokens/s of which a table does not say whether it is one GPU's or all GPUs'.
#include <gtest/gtest.h>

#include <string>

#include "spec/audit/hypotheses.hpp"
#include "tests/support/read_text.hpp"

namespace assay::spec::audit::unlabelled_rate_test {
namespace {

/// 8 GPUs, 64 sequences of 4,096 tokens in 3.634 s: 72,136 tokens/s, 9,017 a GPU, which the log prints.
const char* const log =
    "step,loss,seconds,tokens_per_second\n1,11.3,3.634,9017\n2,11.2,3.634,9017\n3,11.1,3.634,9017\n";

RunRecord of(const std::string& set) {
  return tests::read_text(log, "model=llama3-8b,gpu=h100-sxm,gpus=8,sequence_length=4096" + set);
}

TEST(UnlabelledRateSpec, IsToldAsBothWhereNothingTellsWhoseItIs) {
  const RunRecord run = of("");
  const Audit audit = audit::audit(run);
  EXPECT_FALSE(audit.contradicts);
  ASSERT_EQ(audit.readings.size(), 2u);
  ASSERT_TRUE(audit.readings[0].corrected.per_gpu && audit.readings[1].corrected.per_gpu);
  EXPECT_NEAR(audit.readings[0].corrected.per_gpu->middle(), 9017.0 / 8, 1);
  EXPECT_NEAR(audit.readings[1].corrected.per_gpu->middle(), 9017, 1);
  EXPECT_TRUE(equally(audit.readings[0], audit.readings[1]));
}

TEST(UnlabelledRateSpec, IsOneGpusWhereTheBatchMakesItSo) {
  const RunRecord run = of(",sequences=64");
  const Audit audit = audit::audit(run);
  EXPECT_FALSE(audit.contradicts);
  ASSERT_FALSE(audit.readings.empty());
  ASSERT_TRUE(audit.readings[0].corrected.per_gpu);
  EXPECT_NEAR(audit.readings[0].corrected.per_gpu->middle(), 9017, 1);
  for (std::size_t i = 1; i < audit.readings.size(); ++i)
    EXPECT_FALSE(equally(audit.readings[0], audit.readings[i]));
}

TEST(UnlabelledRateSpec, IsAllGpusWhereOneGpusStandsBesideIt) {
  const auto beside = [](const char* one) {
    const std::string row = ",11.3,72136," + std::string(one) + "\n";
    return tests::read_text("step,loss,tokens_per_second,gpu_tokens_per_second\n1" + row + "2" + row,
                            "gpus=8,sequence_length=4096");
  };
  const RunRecord run = beside("9017");
  const Audit audit = audit::audit(run);
  EXPECT_FALSE(audit.contradicts);
  ASSERT_EQ(audit.readings.size(), 1u);
  EXPECT_NEAR(audit.readings[0].corrected.per_gpu.value().middle(), 9017, 1);
  // As many as all do, by name, are no GPU's own.
  const RunRecord equal = beside("72136");
  EXPECT_TRUE(audit::audit(equal).contradicts);
}

TEST(UnlabelledRateSpec, WhoseARateIsThatNoLinePrintsIsNotTold) {
  RunRecord run;
  run[Setting::gpus] = exactly(8, 1);
  run[Setting::tokens_per_step] = exactly(491520, 1);
  for (int i = 0; i < 10; ++i) {
    Step step;
    step.line = i + 2;
    step[Field::step] = exactly(i, step.line);
    step[Field::seconds] = exactly(0.42, step.line);
    run.steps.push_back(step);
  }
  run.steps_seen = run.steps_of_rank = 10;
  const Audit audit = spec::audit::audit(run);
  EXPECT_FALSE(audit.contradicts);
  EXPECT_EQ(audit.readings.size(), 1u);
}

}  // namespace
}  // namespace assay::spec::audit::unlabelled_rate_test
