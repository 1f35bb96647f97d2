// labels: cli
// Training on several sources, over a global batch that grows.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "tests/cli/train_program.hpp"

namespace assay::cli_mixture_test {
namespace {

using spec::record::Step;
using MixtureProgram = tests::TrainProgram;

TEST_F(MixtureProgram, IsInTheRecordWithItsRampAndSurvivesAResumeInTheMiddle) {
  const std::string words =
      mixed_recipe() + " batch.micro=1 batch.ramp=1:2,2:3 train.steps=8 sample.sentences=0";
  const auto outcome = train("whole", words);
  ASSERT_EQ(outcome.code, 0) << outcome.messages;
  EXPECT_NE(outcome.messages.find("; mixed web:0.75, code:0.25"), std::string::npos) << outcome.messages;
  EXPECT_NE(outcome.messages.find("after a ramp: 1 sequence for 2 steps, then 2 sequences for 3 steps"),
            std::string::npos)
      << outcome.messages;
  const auto whole = run_of("whole");
  ASSERT_EQ(whole.steps.size(), 8u);
  std::int64_t web = 0, tokens = 0;
  for (const Step& step : whole.steps) {
    ASSERT_TRUE(step.sources);
    EXPECT_EQ(step.sources->at(0).tokens + step.sources->at(1).tokens, step.tokens);
    web += step.sources->at(0).tokens, tokens += step.tokens;
    // Tijdeman's bound for two sources is half a sequence.
    EXPECT_LE(std::abs(static_cast<double>(web) - 0.75 * static_cast<double>(tokens)), 128 / 2);
  }
  EXPECT_EQ(whole.steps[0].tokens, 128);
  EXPECT_EQ(whole.steps[2].tokens, 2 * 128);
  EXPECT_EQ(whole.steps[5].tokens, 4 * 128);
  std::ifstream page(folder("whole") + "/report.html");
  const std::string report{std::istreambuf_iterator<char>(page), {}};
  EXPECT_NE(report.find(", after a ramp of 2 steps of 1 sequence, 3 steps of 2 sequences; in all 8 steps = "
                        "2,560 tokens"),
            std::string::npos)
      << "128 x (2 x 1 + 3 x 2 + 3 x 4)";
  const auto audited = tests::assay({"audit", folder("whole")});
  EXPECT_EQ(audited.code, 0) << audited.output;
  ASSERT_EQ(train("parts", words + " checkpoint.every=4").code, 0);
  std::filesystem::remove_all(folder("parts") + "/checkpoints/step_00000008");
  ASSERT_EQ(tests::shell(tests::assay_path() + " resume " + folder("parts"), 120).code, 0);
  const auto parts = run_of("parts");
  ASSERT_EQ(parts.steps.size(), 8u);
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(parts.steps[i].loss, whole.steps[i].loss) << i;
    EXPECT_EQ(parts.steps[i].sample_hash, whole.steps[i].sample_hash) << i;
    EXPECT_EQ(parts.steps[i].sources, whole.steps[i].sources) << i;
  }
}

}  // namespace
}  // namespace assay::cli_mixture_test
