// labels: cli
// `assay bench scaling`: what it refuses, and that the runs of its table are the same run, honestly counted.
// Thresholds of speed hold on GPUs alone: ranks on CPUs share cores.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "impl/cli/bench/bench_scaling.hpp"
#include "spec/error.hpp"
#include "spec/record/read.hpp"
#include "spec/record/run.hpp"
#include "tests/cli/built_program.hpp"
#include "tests/support/scratch.hpp"

namespace assay::scaling_test {
namespace {

namespace fs = std::filesystem;
using impl::cli::ranks_list;

TEST(ScalingCli, RanksAreNumbersInOrder) {
  EXPECT_EQ(ranks_list("4,1,2,2"), (std::vector<std::int64_t>{1, 2, 4}));
  for (const char* text : {"", "0", "two", "1,-2", "1;2", "99999999"})
    EXPECT_THROW(ranks_list(text), UserError) << text;
}

class ScalingProgram : public testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(tests::binary_dir() + "/bin/assay-train"))
      GTEST_SKIP() << "this build has no assay-train (it needs libtorch)";
  }
  impl::cli::Outcome bench(const std::string& more) {
    return tests::shell(tests::assay_path() + " bench scaling " + more, 300);
  }
  std::string folder(const std::string& name) const { return (scratch.path() / name).string(); }

  tests::Scratch scratch;
};

const std::string small =
    " compute.device=cpu compute.threads=1 compute.dtype=f64 batch.sequences=4 batch.micro=1 "
    "batch.sequence_length=32";

/// Every rate of the runs is recomputed from their tokens and seconds.
void expect_honest_rates(const std::string& folder, std::int64_t ranks) {
  const auto run = spec::record::assemble(spec::record::read_events(folder));
  ASSERT_EQ(run.start.batch.ranks, ranks);
  double tokens = 0, seconds = 0;
  for (const auto& step : run.steps) {
    EXPECT_EQ(step.tokens, run.start.batch.sequences * run.start.batch.sequence_length);
    EXPECT_NEAR(step.tokens_per_second * step.seconds, static_cast<double>(step.tokens), 1e-6);
    tokens += static_cast<double>(step.tokens), seconds += step.seconds;
  }
  ASSERT_TRUE(run.end);
  EXPECT_NEAR(run.end->tokens_per_second * seconds, tokens, 1e-6 * tokens);
}

std::string text_of(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST_F(ScalingProgram, StrongScalingIsTheSameRunOnMoreRanks) {
  const auto outcome = bench("--ranks 1,2 --strong --steps 5 --json --run " + folder("strong") + small +
                             " parallel.data=zero1");
  ASSERT_EQ(outcome.code, 0) << outcome.output << outcome.messages;
  EXPECT_NE(outcome.output.find("\"audit_accepts\":true"), std::string::npos) << outcome.output;
  for (const std::int64_t ranks : {1, 2})
    expect_honest_rates(folder("strong") + "/ranks-" + std::to_string(ranks), ranks);
  const auto one = spec::record::assemble(spec::record::read_events(folder("strong") + "/ranks-1"));
  const auto two = spec::record::assemble(spec::record::read_events(folder("strong") + "/ranks-2"));
  for (std::size_t i = 0; i < one.steps.size(); ++i) {
    EXPECT_NEAR(two.steps[i].loss, one.steps[i].loss, 1e-11 * one.steps[i].loss);
    EXPECT_EQ(two.steps[i].sample_hash, one.steps[i].sample_hash);
    EXPECT_NEAR(*two.steps[i].executed_flops, *one.steps[i].executed_flops,
                1e-9 * *one.steps[i].executed_flops);
  }
  EXPECT_FALSE(fs::exists(folder("strong") + "/ranks-1/checkpoints")) << "nothing large is left";
  EXPECT_NE(text_of(folder("strong") + "/report.html").find("What more ranks bring"), std::string::npos);
  EXPECT_TRUE(fs::exists(folder("strong") + "/scaling.json"));
}

TEST_F(ScalingProgram, WeakScalingGivesEveryRankTheSame) {
  const auto outcome = bench("--ranks 2 --steps 4 --run " + folder("weak") + small +
                             " eval.share=0.5 eval.sequences=2 eval.every=1 checkpoint.keep_best=on");
  ASSERT_EQ(outcome.code, 0) << outcome.output << outcome.messages;
  EXPECT_FALSE(fs::exists(folder("weak") + "/ranks-2/checkpoints"));
  EXPECT_NE(outcome.output.find("weak scaling"), std::string::npos);
  EXPECT_NE(outcome.output.find("accepts every record"), std::string::npos);
}

TEST_F(ScalingProgram, TensorRanksCountAsRanksAndShareADataRanksSequences) {
  const auto outcome = bench("--ranks 2,4 --steps 4 --json parallel.tensor=2" + small);
  ASSERT_EQ(outcome.code, 0) << outcome.output << outcome.messages;
  const std::string one = R"("ranks":2,"tensor_ranks":2,"hosts":1,"layout":"replicate","sequences":4,)",
                    two = R"("ranks":4,"tensor_ranks":2,"hosts":1,"layout":"replicate","sequences":8,)";
  for (const std::string& row : {one, two})
    EXPECT_NE(outcome.output.find(row), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find("\"audit_accepts\":true"), std::string::npos) << outcome.output;
}

TEST_F(ScalingProgram, FilesOfTokensAreReadAsInTraining) {
  const std::string tokens = folder("tokens.bin");
  const std::vector<std::uint16_t> ids(4 * 32 * 5, 1);
  std::ofstream(tokens, std::ios::binary)
      .write(reinterpret_cast<const char*>(ids.data()), static_cast<std::streamsize>(2 * ids.size()));
  const auto outcome = bench("--ranks 1 --steps 4 data.dtype=uint16 data.paths=" + tokens + small);
  EXPECT_EQ(outcome.code, 0) << outcome.output << outcome.messages;
}

TEST_F(ScalingProgram, WhatDoesNotDivideIsRefusedBeforeAnythingRuns) {
  const auto outcome = bench("--ranks 1,3 --strong --run " + folder("refused") + small);
  EXPECT_NE(outcome.code, 0);
  EXPECT_FALSE(fs::exists(folder("refused")));
  EXPECT_EQ(bench("--ranks 2 --steps 3" + small).code, 2);
  const auto tokens = bench("--ranks 2 --run " + folder("refused") + small +
                            " parallel.tensor=2 batch.micro=0 batch.sequences=1 batch.sequence_length=7");
  EXPECT_NE(tokens.messages.find("does not divide the 7 tokens of a micro-batch"), std::string::npos)
      << tokens.messages;
  EXPECT_FALSE(fs::exists(folder("refused")));
  const auto alone = bench("--ranks 2 --strong" + small);
  EXPECT_EQ(alone.code, 2);
  EXPECT_NE(alone.messages.find("several numbers of ranks"), std::string::npos) << alone.messages;
}

}  // namespace
}  // namespace assay::scaling_test
