// labels: cli
// `assay train` as people run it, with the real trainer: exit code, streams, record, report.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "spec/model/model_spec.hpp"
#include "spec/record/read.hpp"
#include "spec/record/run.hpp"
#include "spec/tolerance.hpp"
#include "tests/cli/built_program.hpp"
#include "tests/cli/train_program.hpp"
#include "tests/support/scratch.hpp"

namespace assay::train_test {
namespace {

namespace fs = std::filesystem;
using namespace spec::record;
using tests::shell;
using tests::TrainProgram;

TEST_F(TrainProgram, PrintsPlainLinesAndWritesRecordAndReport) {
  const auto outcome = train("a", "");
  ASSERT_EQ(outcome.code, 0) << outcome.messages;
  EXPECT_EQ(outcome.output.rfind("step 1/3  loss", 0), 0u) << outcome.output;
  EXPECT_NE(outcome.output.find("gap closed"), std::string::npos);
  EXPECT_NE(outcome.messages.find("853,120 parameters"), std::string::npos);
  EXPECT_EQ((outcome.output + outcome.messages).find('\x1b'), std::string::npos);
  const auto run = run_of("a");
  ASSERT_EQ(run.steps.size(), 3u);
  EXPECT_EQ(run.steps[2].step, 3);
  EXPECT_EQ(run.start.batch.tokens, 4 * 128);
  EXPECT_TRUE(run.samples && run.end);
  EXPECT_TRUE(fs::exists(folder("a") + "/report.html"));
  const auto audited = tests::assay({"audit", folder("a")});
  EXPECT_EQ(audited.code, 0) << audited.output << audited.messages;
}

TEST_F(TrainProgram, ValidationIsOneNumberOnAnyRanksAndStandsInConsoleRecordAndReport) {
  const std::string settings =
      "compute.dtype=f64 data.grammar_samples=100 eval.share=0.1 eval.every=2 train.steps=4 "
      "sample.sentences=0 ";
  const auto outcome = train("a", settings);
  ASSERT_EQ(outcome.code, 0) << outcome.messages;
  EXPECT_NE(outcome.output.find("\nvalidation 2/4  loss"), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find("bits/byte"), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.messages.find("validation  10 of 10 held-out samples of 128"), std::string::npos)
      << outcome.messages;
  const auto run = run_of("a");
  ASSERT_EQ(run.validations.size(), 2u);
  for (const Validation& validation : run.validations) {
    EXPECT_EQ(validation.sequences, 10);
    EXPECT_EQ(validation.valid_tokens, 10 * 128);
    EXPECT_DOUBLE_EQ(*validation.bits_per_byte, validation.loss / std::log(2.0));
  }
  EXPECT_GT(run.end->goodput->evaluation, 0);
  std::ifstream report(folder("a") + "/report.html");
  const std::string html((std::istreambuf_iterator<char>(report)), {});
  EXPECT_NE(html.find("</span>validation</li>"), std::string::npos);
  EXPECT_EQ(tests::assay({"audit", folder("a")}).code, 0);

  // No step is another for it, and the first number is the same where weights are: after one step of any
  // rank.
  ASSERT_EQ(train("without", settings + "eval.every=0 eval.at_end=on").code, 0);
  const auto without = run_of("without");
  ASSERT_EQ(without.steps.size(), run.steps.size());
  for (std::size_t i = 0; i < run.steps.size(); ++i) EXPECT_EQ(without.steps[i].loss, run.steps[i].loss);
  EXPECT_EQ(without.validations.back().loss, run.validations.back().loss);
  std::string name = "other";
  for (const char* more : {"--ranks 2", "--ranks 2 parallel.data=shard", "batch.micro=1"}) {
    name += "-";
    ASSERT_EQ(train(name, settings + more).code, 0) << more;
    const auto other = run_of(name);
    ASSERT_EQ(other.validations.size(), 2u) << more;
    EXPECT_EQ(other.validations[0].set_hash, run.validations[0].set_hash);
    EXPECT_NEAR(other.validations[0].loss, run.validations[0].loss, 1e-11) << more;
  }
}

// Nothing is trained, and nothing is written.
TEST_F(TrainProgram, AValidationThatCannotBeIsRefusedInOneLineBeforeTheFirstStep) {
  const auto file = [&](const std::string& name, const std::vector<std::uint16_t>& ids) {
    std::ofstream(folder(name), std::ios::binary)
        .write(reinterpret_cast<const char*>(ids.data()), static_cast<std::streamsize>(2 * ids.size()));
    return folder(name);
  };
  std::vector<std::uint16_t> ids(1000, 7);
  const std::string good = file("good", ids), empty = file("empty", {}), brief = file("short", {1, 2, 3});
  ids[200] = 256;
  const std::string foreign = file("foreign", ids);
  struct Refused {
    std::string settings;
    int code;
    std::string says;
  };
  const auto of_files = [&](const std::string& path) {
    return tests::assay_path() +
           " train compute.device=cpu compute.threads=1 batch.sequences=4 train.steps=3 " +
           "run.directory=" + folder("run") + " data.dtype=uint16 data.paths=" + good + " eval.paths=" + path;
  };
  const std::vector<Refused> all = {
      {of_files(folder("missing")), 74, "missing\" cannot be opened"},
      {of_files(empty), 65, "is empty"},
      {of_files(brief), 65, "has 3 tokens, one sample of sequence length 128 needs 129"},
      {of_files(foreign), 65, "has id 256 at token 200"},
      {of_files(good) + " eval.share=0.1", 2, "are two validation sets"},
      {command("run") + " eval.every=2", 2, "it is read only when eval.paths or eval.share is given"},
      {command("run") + " checkpoint.keep_best=on", 2,
       "it is read only when eval.paths or eval.share is given"},
      {command("run") + " eval.paths=" + good, 2, "it is read only when data.paths is given"},
      {command("run") + " eval.share=0.1 eval.at_end=off", 2, "is given and never evaluated"},
      {command("run") + " eval.share=1", 2, "must be [0, 1)"},
      {command("run") + " eval.share=0.1 data.grammar_samples=4", 2,
       "holds out none: raise it to at least 0.25"},
      {command("run") + " eval.share=0.9 data.grammar_samples=4", 2, "holds out all: lower it to less than"}};
  for (const Refused& refused : all) {
    const auto outcome = shell(refused.settings, 120);
    EXPECT_EQ(outcome.code, refused.code) << refused.settings << "\n" << outcome.messages;
    EXPECT_NE(outcome.messages.find(refused.says), std::string::npos) << refused.settings << "\n"
                                                                      << outcome.messages;
    EXPECT_EQ(std::count(outcome.messages.begin(), outcome.messages.end(), '\n'), 1) << outcome.messages;
    EXPECT_EQ(outcome.output, "");
    EXPECT_FALSE(fs::exists(folder("run"))) << refused.settings;
  }
}

TEST_F(TrainProgram, TheRecordOfAModelOfTheUsersOwnIsConsistentWithoutItsFile) {
  spec::ModelSpec model = spec::find_model("tiny-llama");
  model.vocab = 512;  // under the name of a built-in model, with another vocabulary
  model.layers = 1;
  const std::string file = folder("mine.toml");
  std::ofstream(file) << spec::to_toml(model);
  const auto outcome =
      train("a", "data.paths=[] batch.sequence_length=128 optimizer.learning_rate=3e-3 model.name=" + file);
  ASSERT_EQ(outcome.code, 0) << outcome.messages;
  ASSERT_TRUE(run_of("a").start.model_definition);
  EXPECT_EQ(spec::model_from_toml(*run_of("a").start.model_definition, "a record"), model);
  fs::remove(file);
  const auto audited = tests::assay({"audit", folder("a"), "--json"});
  EXPECT_EQ(audited.code, 0) << audited.output << audited.messages;
}

TEST_F(TrainProgram, PhasesAddUpToTheStepAndTokensToTheRate) {
  ASSERT_EQ(train("a", "").code, 0);
  for (const Step& step : run_of("a").steps) {
    const Phases& p = step.phases;
    const double sum =
        p.data_wait + p.forward + p.backward + p.reduce + p.clip + p.update + p.checkpoint + p.other;
    EXPECT_NEAR(sum, step.seconds, gamma(16, unit_roundoff(Dtype::f64)) * step.seconds) << step.step;
    EXPECT_DOUBLE_EQ(step.tokens_per_second, static_cast<double>(step.tokens) / step.seconds);
  }
}

TEST_F(TrainProgram, ASaveIsInTheStepThatWaitsForIt) {
  ASSERT_EQ(train("a", "checkpoint.every=2 checkpoint.keep=9").code, 0);
  const auto run = run_of("a");
  ASSERT_EQ(run.steps.size(), 3u);
  ASSERT_EQ(run.checkpoints.size(), 2u) << "of steps 2 and 3";
  for (const std::size_t step : {0, 1}) EXPECT_EQ(run.steps[step].phases.checkpoint, 0) << step + 1;
  EXPECT_EQ(run.checkpoints[0].asynchronous, true);
  EXPECT_GE(run.steps[2].phases.checkpoint, run.checkpoints[0].copy_seconds.value());
  EXPECT_LT(run.steps[2].phases.checkpoint, run.checkpoints[0].seconds) << "steps went on meanwhile";
  EXPECT_GT(run.steps[2].seconds, run.steps[2].phases.checkpoint);

  ASSERT_EQ(train("b", "checkpoint.every=2 checkpoint.keep=9 checkpoint.asynchronous=off").code, 0);
  const auto waited = run_of("b");
  EXPECT_EQ(waited.checkpoints.at(0).asynchronous, false);
  EXPECT_GE(waited.steps.at(2).phases.checkpoint, waited.checkpoints[0].seconds);
}

TEST_F(TrainProgram, GoodputCountsAllTimeSinceTheTrainerBegan) {
  const auto begin = std::chrono::steady_clock::now();
  const auto outcome = train("a", "checkpoint.every=1 checkpoint.keep=9");
  const double outside = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  ASSERT_EQ(outcome.code, 0);
  const auto run = run_of("a");
  ASSERT_TRUE(run.end && run.end->goodput);
  const Goodput& goodput = *run.end->goodput;
  const double parts = goodput.start_up + goodput.steps + goodput.data_wait + goodput.saves +
                       goodput.evaluation + goodput.other;
  EXPECT_NEAR(parts, goodput.seconds, gamma(16, unit_roundoff(Dtype::f64)) * goodput.seconds);
  EXPECT_DOUBLE_EQ(goodput.tokens_per_second, static_cast<double>(run.end->tokens) / goodput.seconds);
  double in_steps = 0, waited = 0, in_saves = 0;
  for (const Step& step : run.steps) {
    in_steps += step.seconds - step.phases.checkpoint - step.phases.data_wait;
    waited += step.phases.data_wait;
  }
  // Of those beside the steps, what steps waited between them; the last one is waited for.
  for (const Step& step : run.steps) in_saves += step.phases.checkpoint;
  in_saves += run.checkpoints.back().seconds;
  EXPECT_GE(goodput.steps, in_steps);
  EXPECT_DOUBLE_EQ(goodput.data_wait, waited);
  EXPECT_GE(goodput.saves, in_saves) << "the last one, too";
  EXPECT_GT(goodput.evaluation, 0);
  EXPECT_GT(goodput.start_up, 0);
  EXPECT_LE(goodput.seconds, outside);
  EXPECT_NE(outcome.output.find("  goodput     "), std::string::npos) << outcome.output;
  const auto audited = tests::assay({"audit", folder("a")});
  EXPECT_EQ(audited.code, 0) << audited.output << audited.messages;
}

/// The system counts a process from the start of the script that became it.
TEST_F(TrainProgram, GoodputLeavesOutAWrapperThatEndsInExec) {
  constexpr double waited = 1.5;
  const auto begin = std::chrono::steady_clock::now();
  const auto outcome = shell("sleep 1.5; exec " + command("a"), 120);
  const double outside = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  ASSERT_EQ(outcome.code, 0) << outcome.messages;
  EXPECT_LE(run_of("a").end->goodput->seconds, outside - waited);
}

TEST_F(TrainProgram, RanksReadTheSameSamplesAndReachTheSameLoss) {
  ASSERT_EQ(train("one", "compute.dtype=f64").code, 0);
  const auto outcome = train("two", "compute.dtype=f64 --ranks 2");
  ASSERT_EQ(outcome.code, 0) << outcome.messages;
  const auto one = run_of("one"), two = run_of("two");
  ASSERT_EQ(two.steps.size(), one.steps.size());
  EXPECT_EQ(two.start.batch.ranks, 2);
  for (std::size_t i = 0; i < one.steps.size(); ++i) {
    EXPECT_EQ(two.steps[i].sample_hash, one.steps[i].sample_hash);
    // Each run equals the reference to 1e-11 relative (tests/impl/step/train_step_test.cpp,
    // trainer_test.cpp).
    EXPECT_NEAR(two.steps[i].loss, one.steps[i].loss, 2e-11 * one.steps[i].loss);
  }
}

TEST_F(TrainProgram, AStopBeforeTheFirstStepSavesToo) {
  // Asked as soon as its record begins, when weights are not yet made.
  const auto stopped =
      shell("set -m; " + tests::assay_path() +
                " train compute.device=cpu compute.threads=1 batch.sequences=4 train.steps=40 "
                "sample.sentences=2 run.directory=" +
                folder("cut") + " > " + folder("out") + " 2>&1 & until grep -q run_start " + folder("cut") +
                "/run.jsonl 2>/dev/null; do sleep 0.005; done; kill -TERM $!; wait $!",
            120);
  EXPECT_EQ(stopped.code, 75);
  const auto cut = run_of("cut");
  EXPECT_LT(cut.steps.size(), 40u);
  EXPECT_GE(cut.steps.size(), 1u) << "the stop waits for the first step";
  ASSERT_TRUE(cut.end.has_value());
  EXPECT_EQ(cut.end->reason, EndReason::saved);
  EXPECT_EQ(train("cut", "train.steps=40 checkpoint.resume=auto").code, 0);
  EXPECT_EQ(run_of("cut").steps.size(), 40u);
}

TEST_F(TrainProgram, AStopSavesAndResumingFinishesTheRunBitForBit) {
  ASSERT_EQ(train("whole", "train.steps=40").code, 0);
  // Asked to stop after its first printed step; 40 steps leave it time to be asked.
  const auto stopped =
      shell("set -m; " + tests::assay_path() +
                " train compute.device=cpu compute.threads=1 batch.sequences=4 train.steps=40 "
                "sample.sentences=2 run.directory=" +
                folder("cut") + " > " + folder("out") + " 2>&1 & until grep -q 'step  *1/40' " +
                folder("out") + " 2>/dev/null; do sleep 0.01; done; kill -TERM $!; wait $!",
            120);
  ASSERT_EQ(stopped.code, 75);
  const std::size_t done = run_of("cut").steps.size();
  EXPECT_LT(done, 40u);
  ASSERT_EQ(train("cut", "train.steps=40 checkpoint.resume=auto").code, 0);
  const auto whole = run_of("whole"), cut = run_of("cut");
  ASSERT_EQ(cut.steps.size(), 40u);
  EXPECT_EQ(cut.resumes.size(), 1u);
  for (std::size_t i = 0; i < 40; ++i) EXPECT_EQ(cut.steps[i].loss, whole.steps[i].loss) << "step " << i + 1;
  const auto audited = tests::assay({"audit", folder("cut")});
  EXPECT_EQ(audited.code, 0) << audited.output << audited.messages;
}

TEST_F(TrainProgram, ARefusedResumeLeavesTheRecordAsItWas) {
  ASSERT_EQ(train("a", "").code, 0);
  const auto before = read_events(folder("a"));
  const auto refused = train("a",
                             "checkpoint.resume=auto batch.sequence_length=128 "
                             "optimizer.learning_rate=0.1 model.name=tiny-qwen3");
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.messages.find("other settings: model.name is \"tiny-qwen3\", was \"tiny-llama\"; "
                                  "optimizer.learning_rate is 0.1, was 0.003"),
            std::string::npos)
      << refused.messages;
  EXPECT_EQ(read_events(folder("a")).size(), before.size());
}

TEST_F(TrainProgram, AResumeMayChangeWhatChangesRoundingAlone) {
  ASSERT_EQ(train("whole", "compute.dtype=f64").code, 0);
  ASSERT_EQ(train("cut", "compute.dtype=f64 checkpoint.every=1").code, 0);
  fs::remove_all(folder("cut") + "/checkpoints/step_00000003");
  const auto resumed = train("cut",
                             "compute.dtype=f64 checkpoint.resume=auto memory.recompute=block "
                             "compute.attention=math compute.deterministic=on batch.micro=1");
  ASSERT_EQ(resumed.code, 0) << resumed.messages;
  EXPECT_NE(resumed.messages.find("memory.recompute is \"block\", was \"norms_swiglu\""), std::string::npos)
      << resumed.messages;
  const auto whole = run_of("whole"), cut = run_of("cut");
  ASSERT_EQ(cut.steps.size(), 3u);
  EXPECT_NEAR(cut.steps[2].loss, whole.steps[2].loss, 2e-11 * whole.steps[2].loss);
  const auto& changed = cut.resumes.at(0).changed;
  ASSERT_TRUE(changed.has_value());
  ASSERT_EQ(changed->size(), 4u);
  EXPECT_EQ(changed->at(0), (ChangedSetting{"batch.micro", std::int64_t{0}, std::int64_t{1}}));
  const auto audited = tests::assay({"audit", folder("cut")});
  EXPECT_EQ(audited.code, 0) << audited.output << audited.messages;
}

TEST_F(TrainProgram, AResumeReadsItsDataWhereItHasMovedAndRefusesOtherData) {
  std::string tokens(4000, '\0');
  for (std::size_t i = 0; i < tokens.size(); i += 2) tokens[i] = static_cast<char>(i % 97);
  const auto write = [&](const char* name) { std::ofstream(folder(name), std::ios::binary) << tokens; };
  write("here");
  write("there");
  const auto run = [&](const std::string& data, const std::string& more) {
    return shell(tests::assay_path() +
                     " train compute.device=cpu compute.threads=1 batch.sequences=4 train.steps=3 "
                     "checkpoint.every=1 run.directory=" +
                     folder("a") + " data.dtype=uint16 data.paths=" + folder(data) + " " + more,
                 120);
  };
  ASSERT_EQ(run("here", "").code, 0);
  fs::remove_all(folder("a") + "/checkpoints/step_00000003");
  fs::remove(folder("here"));
  tokens[1] = 1;
  write("other");
  const auto refused = run("other", "checkpoint.resume=auto");
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.messages.find("other\" (4,000 bytes"), std::string::npos) << refused.messages;
  EXPECT_NE(refused.messages.find("here\" (4,000 bytes"), std::string::npos) << refused.messages;
  const auto moved = run("there", "checkpoint.resume=auto");
  ASSERT_EQ(moved.code, 0) << moved.messages;
  EXPECT_EQ(run_of("a").resumes.at(0).changed->at(0).name, "data.paths");
}

TEST_F(TrainProgram, ACompleteRunIsLeftAsItIs) {
  ASSERT_EQ(train("a", "").code, 0);
  const auto content = [&] {
    std::ifstream in(folder("a") + "/run.jsonl");
    return std::string{std::istreambuf_iterator<char>(in), {}};
  };
  const std::string before = content();
  fs::remove(folder("a") + "/report.html");
  for (const char* ranks : {"", "--ranks 2"}) {
    const auto again = train("a", std::string("checkpoint.resume=auto ") + ranks);
    EXPECT_EQ(again.code, 0);
    EXPECT_EQ(again.output, "");
    EXPECT_NE(again.messages.find("is complete: step 3 of 3 is done"), std::string::npos) << again.messages;
    EXPECT_NE(again.messages.find("train.steps="), std::string::npos) << again.messages;
    EXPECT_EQ(again.messages.find("is complete"), again.messages.rfind("is complete")) << again.messages;
  }
  EXPECT_EQ(content(), before);
  EXPECT_FALSE(fs::exists(folder("a") + "/report.html"));
}

// Two ranks in folders of their own, as on two hosts that share no disk.
TEST_F(TrainProgram, RanksThatWouldContinueFromDifferentCheckpointsAreRefusedByAll) {
  ASSERT_EQ(train("a/run", "checkpoint.every=1 checkpoint.keep=9").code, 0);
  fs::create_directory(folder("b"));
  const auto resume = [&](const std::string& steps) {
    return shell("timeout 60 " + tests::binary_dir() + "/bin/run_ranks 2 /bin/bash -c 'folders=(a b); cd " +
                     scratch.path().string() + "/${folders[$RANK]} && exec " + tests::binary_dir() +
                     "/bin/assay-train compute.device=cpu compute.threads=1 batch.sequences=4 train.steps=" +
                     steps + " run.directory=run checkpoint.resume=auto'",
                 90);
  };
  const auto expect_refused = [&](const impl::cli::Outcome& outcome, const std::string& why) {
    EXPECT_EQ(outcome.code, 2) << outcome.messages;
    EXPECT_NE(outcome.messages.find(why), std::string::npos) << outcome.messages;
  };
  // Rank 0 by itself would say that the run is complete and end, or go on at step 4.
  const std::string none = "rank 1 differs from the others: the checkpoint to continue from is none there";
  expect_refused(resume("3"), none);
  expect_refused(resume("9"), none);
  fs::copy(folder("a/run"), folder("b/run"), fs::copy_options::recursive);
  fs::remove_all(folder("b/run/checkpoints/step_00000003"));
  expect_refused(resume("3"), "of step 2 (hash ");
}

// One error, of no rank, and no word of a rank that failed.
TEST_F(TrainProgram, WhatAllRanksRefuseIsRefusedOnceAndByOneCode) {
  ASSERT_EQ(train("a", "").code, 0);
  fs::create_directories(folder("bad"));
  std::ofstream(folder("bad") + "/COMMITTED") << "no";
  std::ofstream(folder("bad") + "/manifest.json") << "{";
  const auto expect_one = [&](const impl::cli::Outcome& outcome, int code, const std::string& why) {
    EXPECT_EQ(outcome.code, code) << outcome.messages;
    const std::string start = "assay: error: ";
    const std::size_t at = outcome.messages.find(start);
    ASSERT_NE(at, std::string::npos) << outcome.messages;
    EXPECT_EQ(outcome.messages.find(start, at + 1), std::string::npos) << outcome.messages;
    EXPECT_NE(outcome.messages.find(why, at), std::string::npos) << outcome.messages;
    EXPECT_FALSE(outcome.messages.substr(at + start.size()).starts_with("rank ")) << outcome.messages;
  };
  const std::string resumed = "--ranks 2 checkpoint.resume=auto ";
  expect_one(train("a", resumed + "train.seed=5"), 2,
             "was saved by a run with other settings: train.seed is 5");
  expect_one(train("b", "--ranks 2 checkpoint.resume=" + folder("bad")), 65, "not a committed checkpoint");
  expect_one(shell(tests::assay_path() + " train --ranks 2 compute.device=cpu data.dtype=uint16 data.paths=" +
                       folder("none") + " run.directory=" + folder("b"),
                   120),
             74, folder("none"));
  expect_one(train("b", "--ranks 2 compute.attention=cudnn"), 2, "compute.attention");
  expect_one(shell("ASSAY_FAULT_DRILL=kind=none " + command("b") + " --ranks 2", 120), 2,
             "ASSAY_FAULT_DRILL");
  // Without `assay train`, which would read the settings first.
  expect_one(shell(tests::binary_dir() + "/bin/run_ranks 2 " + tests::binary_dir() +
                       "/bin/assay-train compute.device=cpu train.stesp=3",
                   120),
             2, "unknown setting");
  EXPECT_FALSE(fs::exists(folder("b")));
}

TEST_F(TrainProgram, ACompleteRunGoesOnWhenItIsGivenMoreSteps) {
  // With a decay, so that the learning rate jumps: where it stays, nothing is said of it.
  ASSERT_EQ(train("a", "schedule.decay_steps=2").code, 0);
  EXPECT_EQ(train("a", "schedule.decay_steps=2 checkpoint.resume=auto train.steps=2").code, 2)
      << "fewer steps are another run";
  const auto longer = train("a", "schedule.decay_steps=2 checkpoint.resume=auto train.steps=5");
  EXPECT_EQ(longer.code, 0) << longer.messages;
  EXPECT_NE(longer.messages.find("planned for 3 steps and goes on to 5"), std::string::npos)
      << longer.messages;
  ASSERT_EQ(run_of("a").steps.size(), 5u);
  EXPECT_EQ(run_of("a").resumes.at(0).step, 3);
  const auto audited = tests::assay({"audit", folder("a")});
  EXPECT_EQ(audited.code, 0) << audited.output << audited.messages;
  const auto reported = tests::assay({"report", folder("a")});
  EXPECT_EQ(reported.messages, "") << "the record is one run's";
}

TEST_F(TrainProgram, ABatchThatNoMachineHoldsIsRefusedAtOnce) {
  for (const char* batch : {"batch.sequences=1000000000", "batch.sequences=1000000000 batch.micro=1"}) {
    const auto outcome = train("a", batch);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_NE(outcome.messages.find("batch.sequences = 1000000000"), std::string::npos) << outcome.messages;
    EXPECT_FALSE(fs::exists(folder("a")));
  }
}

TEST_F(TrainProgram, AModelThatDoesNotFitInMemoryIsRefusedByName) {
  const auto model =
      train("a", "model.name=llama3.1-405b batch.sequence_length=16 optimizer.learning_rate=1e-4");
  EXPECT_EQ(model.code, 2);
  EXPECT_NE(model.messages.find("optimizer state take"), std::string::npos) << model.messages;
  EXPECT_FALSE(fs::exists(folder("a")));
}

TEST_F(TrainProgram, HalfALauncherIsRefusedInOneLine) {
  const auto alone = shell("RANK=0 " + tests::binary_dir() + "/bin/assay-train train.steps=1", 60);
  EXPECT_EQ(alone.code, 2);
  EXPECT_EQ(alone.messages,
            "assay: error: RANK=0, but WORLD_SIZE is not set: of how many processes? Start this one by "
            "torchrun, or "
            "unset RANK\n");
}

TEST_F(TrainProgram, WordsOfOtherTrainersNameTheirSetting) {
  const auto says = [&](const std::string& word, const std::string& text) {
    const auto outcome = train("a", word);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_NE(outcome.messages.find(text), std::string::npos) << outcome.messages;
    EXPECT_EQ(std::count(outcome.messages.begin(), outcome.messages.end(), '\n'), 1) << outcome.messages;
  };
  says("--gpus 2", "the number of ranks is given as --ranks 2");
  says("gpus=2", "the number of ranks, one a GPU, is no setting");
  says("max_steps=10", "did you mean \"train.steps\"?");
}

TEST_F(TrainProgram, ARankCountThatDoesNotDivideIsRefusedOnce) {
  const auto outcome = train("a", "--ranks 3");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.messages.find("is not a multiple of 3"), outcome.messages.rfind("is not a multiple of 3"))
      << outcome.messages;
  EXPECT_NE(outcome.messages.find("is not a multiple of 3"), std::string::npos) << outcome.messages;
}

TEST_F(TrainProgram, ARankThatIsKilledLeavesARecordWithAnEnd) {
  // The second rank, by the number that its launcher gave it: of the processes below this one's alone.
  const auto outcome =
      shell("set -m; " + tests::assay_path() +
                " train compute.device=cpu compute.threads=1 batch.sequences=4 train.steps=100000 "
                "log.every=1000000 "
                "run.directory=" +
                folder("lost") + " --ranks 2 > " + folder("out") +
                " 2>&1 & until grep -q '\"event\":\"step\"' " + folder("lost") +
                "/run.jsonl 2>/dev/null; do sleep 0.02; done; below() { for p in $(pgrep -P $1); do echo $p; "
                "below $p; done; }; for p in $(below $!); do tr '\\0' '\\n' < /proc/$p/environ | grep -q "
                "'^RANK=1$' && kill -KILL $p; done; wait $!",
            120);
  EXPECT_NE(outcome.code, 0);
  const auto lost = run_of("lost");
  ASSERT_TRUE(lost.end.has_value());
  EXPECT_EQ(lost.end->reason, EndReason::error);
  EXPECT_EQ(lost.end->exit_code, 77);
}

TEST_F(TrainProgram, ProbeAndDumpAnswerWithoutTraining) {
  const std::string trainer = tests::binary_dir() + "/bin/assay-train";
  const auto probe = shell(trainer + " --probe");
  EXPECT_EQ(probe.code, 0);
  EXPECT_NE(probe.output.find("\"torch\""), std::string::npos);
  EXPECT_EQ(shell(trainer + " --dump-config").output, tests::assay({"train", "--dump-config"}).output);
  const auto ranks = shell(trainer + " --ranks 2");
  EXPECT_EQ(ranks.code, 2);
  EXPECT_NE(ranks.messages.find("assay train"), std::string::npos);
}

}  // namespace
}  // namespace assay::train_test
