// labels: cli fault
// Whatever ends a run that still has a good state saves it: a terminal that goes away, a pipe that nobody
// reads any more, a step that is not finite.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "spec/record/read.hpp"
#include "spec/record/run.hpp"
#include "tests/cli/built_program.hpp"
#include "tests/support/scratch.hpp"

namespace assay::stop_test {
namespace {

namespace fs = std::filesystem;
using spec::record::EndReason;

class Stop : public testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(tests::binary_dir() + "/bin/assay-train"))
      GTEST_SKIP() << "this build has no assay-train (it needs libtorch)";
  }

  std::string train(const std::string& more) const {
    return tests::assay_path() +
           " train compute.device=cpu compute.threads=1 batch.sequences=4 sample.sentences=0 run.directory=" +
           folder() + " " + more;
  }
  std::string folder() const { return (scratch.path() / "run").string(); }
  std::string file(const std::string& name) const { return (scratch.path() / name).string(); }
  spec::record::Run run() const { return spec::record::assemble(spec::record::read_events(folder())); }

  /// The last step is saved, and the record ends with `reason`.
  void expect_saved(EndReason reason) const {
    const spec::record::Run ended = run();
    ASSERT_TRUE(ended.end.has_value());
    EXPECT_EQ(ended.end->reason, reason);
    ASSERT_FALSE(ended.steps.empty());
    ASSERT_EQ(ended.checkpoints.size(), 1u);
    EXPECT_EQ(ended.checkpoints[0].step, ended.steps.back().step);
    EXPECT_EQ(tests::assay({"checkpoint", "verify", ended.checkpoints[0].path}).code, 0);
    ASSERT_TRUE(ended.end->run_goodput.has_value());
    EXPECT_GT(ended.end->run_goodput->productive, 0);
  }

  tests::Scratch scratch;
};

TEST_F(Stop, ATerminalThatGoesAwaySavesOnOneRankAndOnTwo) {
  for (const char* ranks : {"1", "2"}) {
    fs::remove_all(folder());
    fs::remove(file("out"));
    const auto stopped =
        tests::shell("set -m; " + train("train.steps=4000 --ranks " + std::string(ranks)) + " > " +
                         file("out") + " 2>&1 & until grep -q 'step  *1/4000' " + file("out") +
                         " 2>/dev/null; do sleep 0.01; done; kill -HUP $!; kill -HUP $! 2>/dev/null; wait $!",
                     120);
    EXPECT_EQ(stopped.code, 75) << ranks;
    expect_saved(EndReason::saved);
  }
}

/// On two ranks, each time by another signal, to others, at another moment. `ci/stops` has all of them.
TEST_F(Stop, WhoeverIsToldSavesOnce) {
  const std::string stepping =
      "until grep -q 'step  *1/4000' " + file("out") + " 2>/dev/null; do sleep 0.01; done; ";
  for (const std::string& send :
       {stepping + "kill -TERM $(pgrep -P $p | tail -1)",        // one rank
        stepping + "kill -INT -- -$p",                           // the group: Ctrl-C
        stepping + "kill -TERM $p $(pgrep -P $p)",               // every process
        std::string("sleep 0.1; kill -USR1 $p $(pgrep -P $p)"),  // libraries are loading
        stepping + "ranks=$(pgrep -P $p); kill -KILL $p; wait $p; for r in $ranks; do while "
                   "kill -0 $r 2>/dev/null; do sleep 0.02; done; done; exit 75"}) {
    fs::remove_all(folder());
    fs::remove(file("out"));
    const auto stopped = tests::shell("set -m; " + train("train.steps=4000 --ranks 2") + " > " + file("out") +
                                          " 2>&1 & p=$!; " + send + "; wait $p",
                                      120);
    EXPECT_EQ(stopped.code, 75) << send << stopped.messages;
    expect_saved(EndReason::saved);
  }
}

/// It may take longer than what is left; the run that goes on does it.
TEST_F(Stop, AStopEndsAValidation) {
  const auto stopped =
      tests::shell(train("train.steps=3 batch.sequence_length=32 eval.share=0.0005 eval.every=2 "
                         "eval.at_end=off --ranks 2 > " +
                         file("out") + " 2>&1 & p=$!; until grep -q '\"step\":2,' " + folder() +
                         "/run.jsonl 2>/dev/null; do sleep 0.01; done; kill -TERM $p; wait $p"),
                   120);
  EXPECT_EQ(stopped.code, 75) << stopped.messages;
  expect_saved(EndReason::saved);
  EXPECT_TRUE(run().validations.empty());
  EXPECT_EQ(tests::assay({"resume", folder()}).code, 0);
  ASSERT_EQ(run().validations.size(), 1u);
  EXPECT_EQ(run().validations[0].step, 2);
}

/// A stop behind a step that was saved just now, while steps wait for it or beside them.
TEST_F(Stop, AStepThatIsSavedIsNotSavedAgain) {
  for (const char* beside : {"off", "on"}) {
    fs::remove_all(folder());
    const auto stopped = tests::shell(
        train("train.steps=4000 checkpoint.every=1 checkpoint.keep=2 checkpoint.asynchronous=" +
              std::string(beside) + " > " + file("out") + " 2>&1 & p=$!; until grep -q '\"step\":3,' " +
              folder() + "/run.jsonl 2>/dev/null; do sleep 0.01; done; kill -TERM $p; wait $p"),
        120);
    EXPECT_EQ(stopped.code, 75) << stopped.messages;
    const spec::record::Run ended = run();
    ASSERT_GE(ended.checkpoints.size(), 2u);
    EXPECT_EQ(ended.checkpoints.back().step, ended.steps.back().step);
    for (std::size_t i = 1; i < ended.checkpoints.size(); ++i)
      EXPECT_LT(ended.checkpoints[i - 1].step, ended.checkpoints[i].step) << beside;
  }
}

TEST_F(Stop, APipeThatNobodyReadsSaves) {
  const auto stopped = tests::shell(train("train.steps=4000") + " 2> " + file("err") + " | head -2 > " +
                                        file("out") + "; exit ${PIPESTATUS[0]}",
                                    120);
  EXPECT_EQ(stopped.code, 75);
  expect_saved(EndReason::saved);
}

TEST_F(Stop, AStepThatIsNotFiniteSavesTheStateBeforeIt) {
  for (const char* ranks : {"1", "2"}) {
    fs::remove_all(folder());
    const std::string grows =
        "train.steps=40 optimizer.learning_rate=1e30 schedule.warmup_steps=0 --ranks " + std::string(ranks);
    EXPECT_EQ(tests::shell(train(grows), 120).code, 76) << ranks;
    expect_saved(EndReason::non_finite);
    // As it is, it would end there again; skipping is no other training.
    const auto more = tests::shell(
        train(grows + " checkpoint.resume=auto train.on_non_finite=skip train.max_skipped=100"), 120);
    EXPECT_EQ(more.code, 0) << more.messages;
    const spec::record::Run whole = run();
    EXPECT_EQ(whole.steps.size() + whole.skipped.size(), 40u);
    EXPECT_FALSE(whole.skipped.empty());
    const auto audited = tests::assay({"audit", folder()});
    EXPECT_EQ(audited.code, 0) << audited.output << audited.messages;
  }
}

}  // namespace
}  // namespace assay::stop_test
