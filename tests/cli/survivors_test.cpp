// labels: cli fault
// A rank is lost: copies that the others hold are saved, and parts that were its own are said to be lost.
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>

#include "tests/cli/train_program.hpp"

namespace assay::survivors_test {
namespace {

namespace fs = std::filesystem;

class SurvivorsCli : public tests::TrainProgram {
 protected:
  static std::string settings(int ranks, const std::string& layout) {
    return "--ranks " + std::to_string(ranks) +
           " train.steps=8 batch.sequence_length=32 sample.sentences=0 checkpoint.minutes=0 " + layout;
  }
  /// With a fault in step 5.
  impl::cli::Outcome lose(const std::string& name, const std::string& fault, int ranks,
                          const std::string& layout) {
    return tests::shell(
        "ASSAY_FAULT_DRILL='step=5 stall=4 " + fault + "' " + command(name) + " " + settings(ranks, layout),
        120);
  }
  std::vector<double> losses(const std::string& name) const {
    std::vector<double> all;
    for (const auto& step : run_of(name).steps) all.push_back(step.loss);
    return all;
  }
  std::vector<std::string> checkpoints(const std::string& name) const {
    std::vector<std::string> names;
    std::error_code none;
    for (const auto& each : fs::directory_iterator(folder(name) + "/checkpoints", none))
      names.push_back(each.path().filename().string());
    return names;
  }
};

/// Killed, or ended, or stopped while the others wait in a collective; rank 0, which has the record, or
/// another one.
TEST_F(SurvivorsCli, CopiesThatAreLeftAreSavedAndGoOnAsIfNothingHadBeen) {
  const struct {
    const char *name, *fault, *layout;
    int ranks, lost, step;
  } trials[] = {
      {"killed", "kind=kill rank=1 phase=forward", "parallel.data=replicate", 2, 1, 4},
      {"first", "kind=kill rank=0 phase=backward", "parallel.data=replicate", 2, 0, 4},
      {"update", "kind=kill rank=1 phase=update", "parallel.data=replicate", 2, 1, 5},
      {"exits", "kind=exit rank=1 phase=backward", "parallel.data=replicate", 2, 1, 4},
      {"stopped", "kind=stop rank=1 phase=backward", "parallel.data=replicate", 2, 1, 4},
      {"hybrid", "kind=kill rank=2 phase=forward", "parallel.data=hybrid parallel.shard_ranks=2", 4, 2, 4},
      {"tensor", "kind=kill rank=3 phase=forward", "parallel.data=replicate parallel.tensor=2", 4, 3, 4},
  };
  for (const auto& trial : trials) {
    SCOPED_TRACE(trial.name);
    const std::string whole = "whole-" + std::to_string(std::hash<std::string>()(trial.layout)),
                      run = trial.name;
    if (!fs::exists(folder(whole))) {
      const auto unharmed = train(whole, settings(trial.ranks, trial.layout));
      ASSERT_EQ(unharmed.code, 0) << unharmed.messages;
    }
    const auto outcome = lose(run, trial.fault, trial.ranks, trial.layout);
    EXPECT_EQ(outcome.code, 77) << outcome.messages;
    const std::string step = std::to_string(trial.step),
                      saved = "step " + step + " is saved by the ranks that are left, in " + folder(run) +
                              "/checkpoints/step_0000000" + step,
                      way = "; go on with `assay resume " + folder(run) + "`";
    EXPECT_NE(outcome.messages.find("assay: error: rank " + std::to_string(trial.lost) + " (host "),
              std::string::npos)
        << outcome.messages;
    EXPECT_NE(outcome.messages.find(saved), std::string::npos) << outcome.messages;
    EXPECT_NE(outcome.messages.find(way), std::string::npos) << outcome.messages;
    EXPECT_EQ(checkpoints(run), std::vector<std::string>{"step_0000000" + step});
    const auto record = run_of(run);
    ASSERT_TRUE(record.end);
    EXPECT_EQ(record.end->exit_code, 77);
    EXPECT_NE(record.end->message.value_or("").find(saved), std::string::npos);
    EXPECT_EQ(tests::assay({"checkpoint", "verify", folder(run)}).code, 0);
    const auto resumed = tests::assay({"resume", folder(run)});
    EXPECT_EQ(resumed.code, 0) << resumed.messages;
    EXPECT_EQ(losses(run), losses(whole));
  }
}

/// An error of one rank in the middle of a pass, such as memory that it alone has not: its process is there,
/// and so are all weights and moments, however they are dealt out.
TEST_F(SurvivorsCli, WhatARankThatFailsAloneHoldsIsSavedWithTheRest) {
  for (const char* layout : {"parallel.data=shard", "parallel.data=replicate"}) {
    SCOPED_TRACE(layout);
    const std::string name = std::string(layout).substr(14), whole = "whole-" + name;
    ASSERT_EQ(train(whole, settings(2, layout)).code, 0);
    const auto outcome = lose(name, "kind=error rank=1 phase=backward", 2, layout);
    EXPECT_EQ(outcome.code, 70) << outcome.messages;
    const std::string saved = "step 4 is saved, in " + folder(name) + "/checkpoints/step_00000004";
    EXPECT_NE(outcome.messages.find(saved), std::string::npos) << outcome.messages;
    EXPECT_NE(run_of(name).end->message.value_or("").find(saved), std::string::npos);
    EXPECT_EQ(tests::assay({"checkpoint", "verify", folder(name)}).code, 0);
    const auto resumed = tests::assay({"resume", folder(name)});
    EXPECT_EQ(resumed.code, 0) << resumed.messages;
    EXPECT_EQ(losses(name), losses(whole));
  }
  // Of a state that is half updated nothing is saved.
  const auto torn = lose("torn", "kind=error rank=1 phase=update", 2, "parallel.data=shard");
  EXPECT_EQ(torn.code, 70) << torn.messages;
  EXPECT_EQ(checkpoints("torn"), std::vector<std::string>());
}

/// Where no rank was lost that late, or held something alone, no checkpoint is made, and the line says why.
TEST_F(SurvivorsCli, WhatIsLostIsSaidToBe) {
  for (const char* layout : {"parallel.data=shard", "parallel.data=zero1"}) {
    SCOPED_TRACE(layout);
    const std::string name = std::string(layout).substr(14);
    const auto outcome = lose(name, "kind=kill rank=1 phase=forward", 2, layout);
    EXPECT_EQ(outcome.code, 77) << outcome.messages;
    const char* lost =
        "no other rank had what rank 1 held of weights and moments, so that they are lost; no checkpoint of ";
    EXPECT_NE(outcome.messages.find(lost), std::string::npos) << outcome.messages;
    EXPECT_EQ(checkpoints(name), std::vector<std::string>());
    EXPECT_NE(run_of(name).end->message.value_or("").find(lost), std::string::npos);
  }
}

}  // namespace
}  // namespace assay::survivors_test
