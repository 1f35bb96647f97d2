// labels: cli fault
// Runs on a disk that is too small, or fills up while they train: a file system of a few MiB, mounted for the
// test's own processes. A checkpoint of the demo's model takes 9.76 MiB.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "spec/record/read.hpp"
#include "spec/record/run.hpp"
#include "tests/cli/built_program.hpp"
#include "tests/support/scratch.hpp"

namespace assay::full_disk_test {
namespace {

namespace fs = std::filesystem;
using namespace spec::record;

class FullDisk : public testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(tests::binary_dir() + "/bin/assay-train"))
      GTEST_SKIP() << "this build has no assay-train (it needs libtorch)";
    fs::create_directory(disk);
    if (on_disk(4, "true").code != 0) GTEST_SKIP() << "this machine lets the test mount no file system";
  }

  /// Runs shell lines where $disk is a file system of `mebibytes` and $kept a folder that outlives it. $train
  /// trains 40 short steps in $disk/run; `until WORDS FILE` waits for a file to hold them.
  impl::cli::Outcome on_disk(int mebibytes, const std::string& lines) {
    const std::string train = tests::assay_path() +
                              " train compute.device=cpu compute.threads=1 batch.sequences=4 train.steps=40 "
                              "sample.sentences=2 run.directory=" +
                              disk.string() + "/run";
    const std::string script =
        "set -m; disk=" + disk.string() + "; kept=" + kept().string() + "; train='" + train +
        "'; seen() { for ((i = 0; i < 4000; ++i)); do grep -q \"$1\" \"$2\" && return; "
        "sleep 0.02; done; return 1; }; mount -t tmpfs -o size=" +
        std::to_string(mebibytes) + "m tmpfs $disk || exit 99; " + lines;
    std::ofstream(scratch.path() / "script") << script;
    return impl::cli::run_program(
        {"/usr/bin/unshare", "--mount", "/bin/bash", (scratch.path() / "script").string()}, 180);
  }

  fs::path kept() const { return scratch.path(); }
  std::string text(const std::string& name) const {
    std::ifstream in(kept() / name);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  spec::record::Run run() const { return assemble(read_events((kept() / "run").string())); }

  tests::Scratch scratch;
  const fs::path disk = scratch.path() / "disk";
};

TEST_F(FullDisk, WithoutRoomForOneCheckpointNothingStarts) {
  const auto outcome = on_disk(4, "$train; code=$?; ls -A $disk; exit $code");
  EXPECT_EQ(outcome.code, 74);
  EXPECT_EQ(outcome.output, "") << "a folder was left";
  EXPECT_NE(outcome.messages.find("takes 9.76 MiB: the run could not be saved"), std::string::npos)
      << outcome.messages;
}

TEST_F(FullDisk, ARunThatSavesNothingNeedsNoRoom) {
  const auto outcome = on_disk(4,
                               "$train checkpoint.at_end=off checkpoint.minutes=0 2> $kept/err; code=$?; cp "
                               "-r $disk/run $kept; exit $code");
  EXPECT_EQ(outcome.code, 0) << text("err");
  EXPECT_NE(text("err").find("takes 9.76 MiB: the run is saved only where it is stopped, and could not be"),
            std::string::npos)
      << text("err");
  EXPECT_EQ(run().end->message, "not saved after its last step: checkpoint.at_end = off");
}

/// A save that is due after the last step is one that the run rests on, whether or not it would be saved
/// there.
TEST_F(FullDisk, ASaveThatIsDueAfterTheLastStepFailsTheRun) {
  const auto outcome =
      on_disk(15,
              "$train checkpoint.every=20 checkpoint.at_end=off 2> $kept/err & seen 'tried again' "
              "$kept/err; kill -TERM $!; wait $!");
  EXPECT_EQ(outcome.code, 74) << text("err");
}

TEST_F(FullDisk, AnOlderCheckpointMakesRoomForANewOne) {
  // Room for two checkpoints; a third is written before the first would go.
  const auto outcome = on_disk(25,
                               "$train checkpoint.every=10 2> $kept/err; code=$?; ls $disk/run/checkpoints > "
                               "$kept/list; cp -r $disk/run $kept; exit $code");
  EXPECT_EQ(outcome.code, 0) << text("err");
  EXPECT_EQ(text("list"), "step_00000030\nstep_00000040\n");
  const auto& warnings = run().warnings;
  EXPECT_EQ(
      std::count_if(warnings.begin(), warnings.end(), [](const Warning& w) { return w.code == "made_room"; }),
      2);
  EXPECT_NE(text("err").find("step_00000010 was removed to save "), std::string::npos) << text("err");
}

TEST_F(FullDisk, ALastSaveThatFailsKeepsTheOneBeforeAndResumesFromIt) {
  // Room for one checkpoint; the one of step 40 does not fit beside that of step 20.
  const auto outcome = on_disk(
      15,
      "$train checkpoint.every=20 > $kept/out 2> $kept/err & seen 'tried again' $kept/err; kill -TERM $!; "
      "wait $!; code=$?; ls $disk/run/checkpoints; cp $disk/run/run.jsonl $kept/first.jsonl; "
      "mount -o remount,size=40m $disk; $train checkpoint.every=20 checkpoint.resume=auto 2> $kept/again || "
      "exit 1; cp -r $disk/run $kept; exit $code");
  const std::string messages = text("err");
  EXPECT_EQ(outcome.code, 74) << messages;
  EXPECT_NE(messages.find("a later save may fail"), std::string::npos) << messages;
  EXPECT_NE(messages.find("it needs 10,237,440 bytes, "), std::string::npos) << messages;
  EXPECT_NE(messages.find("`assay resume " + disk.string() + "/run`"), std::string::npos) << messages;
  EXPECT_EQ(outcome.output.rfind("step_00000020\n", 0), 0u) << outcome.output;
  const auto first = assemble(read_events((kept() / "first.jsonl").string()));
  ASSERT_TRUE(first.end.has_value());
  EXPECT_EQ(first.end->exit_code, 74);
  EXPECT_EQ(run().steps.size(), 40u) << text("again");
  EXPECT_EQ(run().resumes.at(0).step, 20);
}

TEST_F(FullDisk, SpaceFreedWhileTheLastSaveIsTriedAgainSavesTheRun) {
  // The record does not fit either while the disk is full: it is whole at the end all the same.
  const auto outcome = on_disk(
      24,
      "$train > $kept/out 2> $kept/err & seen 'step  1/40' $kept/out; dd if=/dev/zero of=$disk/other bs=4k "
      "2>/dev/null; seen 'tried again' $kept/err; rm $disk/other; wait $!; code=$?; cp -r $disk/run $kept; "
      "exit $code");
  EXPECT_EQ(outcome.code, 0) << text("err");
  const auto whole = run();
  EXPECT_EQ(whole.steps.size(), 40u);
  const auto waits = [](const Warning& warning) { return warning.code == "record_waits"; };
  EXPECT_EQ(std::count_if(whole.warnings.begin(), whole.warnings.end(), waits), 1);
  ASSERT_EQ(whole.checkpoints.size(), 1u);
  EXPECT_EQ(whole.checkpoints[0].step, 40);
  ASSERT_TRUE(whole.end.has_value());
  EXPECT_EQ(whole.end->reason, EndReason::done);
  EXPECT_TRUE(fs::exists(kept() / "run" / "checkpoints" / "step_00000040" / "COMMITTED"));
  EXPECT_EQ(tests::assay({"audit", (kept() / "run").string()}).code, 0);
}

TEST_F(FullDisk, ASaveOnTheWayThatFailsIsMadeUpForByTheNext) {
  const auto outcome = on_disk(
      48,
      "$train checkpoint.every=10 > $kept/out 2> $kept/err & seen 'step  1/40' $kept/out; dd if=/dev/zero "
      "of=$disk/other bs=4k 2>/dev/null; seen 'the run goes on' $kept/err; rm $disk/other; wait $!; code=$?; "
      "ls $disk/run/checkpoints; exit $code");
  EXPECT_EQ(outcome.code, 0) << text("err");
  EXPECT_NE(outcome.output.find("step_00000040"), std::string::npos) << outcome.output;
}

}  // namespace
}  // namespace assay::full_disk_test
