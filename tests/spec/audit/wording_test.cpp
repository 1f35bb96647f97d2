// labels: unit
// What causes and places are called.
#include <gtest/gtest.h>

#include "spec/audit/hypotheses.hpp"
#include "spec/audit/useful_options.hpp"
#include "tests/support/read_text.hpp"
#include "tests/support/simulated/run.hpp"

namespace assay::spec::audit::wording_test {
namespace {

Result of(const Audit& audit, const std::string& id) {
  for (const Result& result : audit.results)
    if (result.id == id) return result;
  ADD_FAILURE() << id;
  return {};
}

using tests::read_mapped;

TEST(WordingSpec, AStepWithoutANumberIsNamedByItsLine) {
  const Audit one =
      audit(read_mapped("loss,time\n9.5,0.5\n9.1,0.5\nnan,0.5\nnan,0.5\n", "loss=loss,seconds=time"));
  EXPECT_EQ(of(one, "loss_finite").causes.at(0).text,
            "the run diverged at the step of line 4; no later step of it trains a model");
  const Audit numbered =
      audit(read_mapped("step,loss,time\n1,9.5,0.5\n2,nan,0.5\n", "step=step,loss=loss,seconds=time"));
  EXPECT_EQ(of(numbered, "loss_finite").causes.at(0).text,
            "the run diverged at step 2; no later step of it trains a model");
}

/// Megatron-LM prints FLOP/s of one GPU, and no tokens/s.
TEST(WordingSpec, ANumberThatIsNotPrintedIsNobodys) {
  bool said = false;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    const tests::SimulatedRun run = tests::simulate(tests::LogFormat::megatron, seed);
    const Audit one = audit(tests::read_text(render(run)));
    const std::string& note = one.readings.front().interpretation.note;
    EXPECT_EQ(note.find("tokens/s is"), std::string::npos) << note;
    EXPECT_EQ(note.find("the peak is"), std::string::npos) << note;
    said |= note.find("the FLOP/s are one GPU's") != std::string::npos;
  }
  EXPECT_TRUE(said);
}

TEST(WordingSpec, ALineIsToldOnce) {
  const Audit one =
      audit(read_mapped("{'loss': 2.5, 'grad_norm': 1.5, 'learning_rate': 1e-4, 'epoch': 0.1}\n"
                        "{'loss': nan, 'grad_norm': nan, 'learning_rate': 1e-4, 'epoch': 0.2}\n"));
  const Result result = of(one, "loss_finite");
  ASSERT_EQ(result.verdict, Verdict::contradicts);
  EXPECT_EQ(result.contradicted, 2);
  EXPECT_EQ(result.lines, std::vector<std::int64_t>{2});
}

/// Megatron-LM's lines without losses, the second norm `norm`, with `skipped` steps.
RunRecord without_losses(const std::string& norm, int skipped) {
  std::string log;
  for (int i = 1; i <= 3; ++i)
    log += " iteration " + std::to_string(i) + "/ 100 | consumed samples: " + std::to_string(128 * i) +
           " | elapsed time per iteration (ms): 2701.3 | throughput per GPU (TFLOP/s/GPU): 240.0 | learning "
           "rate: 1.0E-05 | global batch size: 128 | loss "
           "scale: 1.0 | grad norm: " +
           (i == 3 ? norm : "1.300") +
           " | number of skipped iterations: " + std::to_string(i == 3 ? skipped : 0) +
           " | number of nan iterations: 0 |\n";
  return tests::read_text(log);
}

TEST(WordingSpec, ALossThatIsNotPrintedIsNotSaidToBeZero) {
  const Audit one = audit(without_losses("1.300", 0));
  EXPECT_EQ(of(one, "loss_finite").verdict, Verdict::holds);
  EXPECT_TRUE(of(one, "loss_finite").unprinted);
  EXPECT_EQ(of(one, "loss_finite").note, "gradient norms: no step's loss is printed");
}

TEST(WordingSpec, TwoLinesAreNotCalledOne) {
  const auto told = [](int wrong) {
    std::string log = "step,seconds,rate\n";
    for (int i = 1; i <= 30; ++i)
      log += std::to_string(i) + ",2.000," + (i > 10 && i <= 10 + wrong ? "3100" : "2048") + "\n";
    const Audit one = audit(
        tests::read_text(log, "tokens_per_step=4096", "step=step,seconds=seconds,tokens_per_second=rate"));
    return of(one, "rate_time").causes.at(0).text;
  };
  EXPECT_NE(told(1).find(" of this line alone"), std::string::npos) << told(1);
  EXPECT_NE(told(2).find(" of these lines alone"), std::string::npos) << told(2);
}

TEST(WordingSpec, AStepThatNothingSkippedIsNotSaidToBeSkipped) {
  RunRecord run = without_losses("nan", 0);
  run.dtype = "bf16";
  EXPECT_NE(of(audit(run), "loss_finite").causes.at(0).text.find("counts no step as skipped"),
            std::string::npos);
}

TEST(WordingSpec, WhatIsMissingForARateIsNamed) {
  const Audit one = audit(without_losses("1.300", 0));
  EXPECT_EQ(one.readings.front().corrected.missing.substr(0, 29), "no tokens/s, and no length to");
}

TEST(WordingSpec, TheOptionsThatWouldLetMostBeJudgedAreFound) {
  const std::vector<UsefulOption> useful = useful_options(without_losses("1.300", 0));
  ASSERT_FALSE(useful.empty());
  for (std::size_t i = 1; i < useful.size(); ++i) EXPECT_GE(useful[i].judged, 1);
  RunRecord run = without_losses("1.300", 0);
  for (const UsefulOption& option : useful)
    EXPECT_NE(option.option, "--set sequences=N");  // the lines say it
  run[Setting::gpus] = exactly(8, 1);
  for (const UsefulOption& option : useful_options(run)) EXPECT_NE(option.option, "--gpus N");
  EXPECT_FALSE(may_stand_in(run, "tokens whose loss counts"));
  EXPECT_TRUE(may_stand_in(run, "number of GPUs"));
}

TEST(WordingSpec, DimensionsThatTheUserStatedAreTriedWithNoModelTheyDoNotGoWith) {
  for (const char* more : {"", ",parameters=85.0M"}) {
    const RunRecord run =
        tests::read_text("step,loss,tokens_per_second,mfu\n1,3.2,1.84e6,46.1\n2,2.7,1.72e6,45.8\n",
                         "layers=12,width=768,heads=12,vocab=65,gpus=8,gpu=NVIDIA A100 SXM 80GB,"
                         "sequence_length=1024" +
                             std::string(more));
    std::vector<UsefulOption> useful;
    EXPECT_NO_THROW(useful = useful_options(run)) << more;
    ASSERT_FALSE(useful.empty()) << more;
    EXPECT_EQ(useful[0].option, "--model M") << more;
    // A count of parameters lets the MFU be judged without a model.
    EXPECT_EQ(useful[0].opens, *more == 0 ? "MFU" : "") << more;
  }
}

TEST(WordingSpec, TheOptionsThatLetTheFlopsRateBeJudgedAreToldFirst) {
  // The count of the log finds the model: what is missing is another.
  RunRecord run = without_losses("1.300", 0);
  run[Setting::parameters] = exactly(6738415616, 1);
  const std::vector<UsefulOption> useful = useful_options(run);
  ASSERT_FALSE(useful.empty());
  EXPECT_EQ(useful[0].option, "--gpus N with --seq T");
  EXPECT_EQ(useful[0].opens, "FLOP/s");
  for (const UsefulOption& option : useful) EXPECT_EQ(option.option.find("--model"), std::string::npos);
}

}  // namespace
}  // namespace assay::spec::audit::wording_test
