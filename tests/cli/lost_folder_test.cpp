// labels: cli fault
// The folder of a run is removed, renamed, unmounted or replaced while the run trains.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tests/cli/train_program.hpp"

namespace assay::lost_folder_test {
namespace {

namespace fs = std::filesystem;

class LostFolder : public tests::TrainProgram {
 protected:
  /// Twelve steps, saved every fourth; `lines` of a shell are done while the run waits in step 6. They know
  /// the run's folder as $run, and its process as $p once they are done.
  impl::cli::Outcome with(const std::string& lines, const std::string& more = "",
                          const std::string& before = ":", const std::string& behind = "") {
    const std::string train =
        command("place/run") +
        " train.steps=12 batch.sequence_length=32 sample.sentences=0 checkpoint.every=4 "
        "checkpoint.minutes=0 log.tensorboard=on " +
        more;
    fs::create_directories(folder("place"));
    fs::create_directories(folder("here"));
    std::ofstream(folder("script"))
        << "run=" << folder("place/run") << "; cd " << folder("here") << "; " << before
        << "; ASSAY_FAULT_DRILL='kind=wait rank=0 step=6 phase=data_wait stall=1' " << train
        << " & p=$!; for ((i = 0; i < 3000; ++i)); do grep -q '\"step\":5' $run/run.jsonl 2>/dev/null && "
           "break; sleep 0.02; done; sleep 0.3; "
        << lines << "; " << behind << " wait $p";
    std::vector<std::string> words = {"/bin/bash", folder("script")};
    if (before.starts_with("mount")) words.insert(words.begin(), {"/usr/bin/unshare", "--mount"});
    return impl::cli::run_program(words, 120);
  }
  std::vector<double> losses(const std::string& name) const {
    std::vector<double> all;
    for (const auto& step : run_of(name).steps) all.push_back(step.loss);
    return all;
  }
  std::string said(const std::string& name) const {
    for (const auto& warning : run_of(name).warnings)
      if (warning.code == "folder_gone") return warning.text;
    return "";
  }
  /// What the run goes on in is a whole run, which resumes.
  void is_whole(const std::string& name, const impl::cli::Outcome& outcome) {
    EXPECT_EQ(outcome.code, 0) << outcome.messages;
    EXPECT_EQ(losses(name).size(), 12u) << outcome.messages;
    EXPECT_TRUE(fs::exists(folder(name) + "/checkpoints/step_00000008/COMMITTED"));
    EXPECT_TRUE(fs::exists(folder(name) + "/checkpoints/step_00000012/COMMITTED"));
    EXPECT_TRUE(fs::exists(folder(name) + "/report.html"));
    EXPECT_EQ(tests::assay({"audit", folder(name)}).code, 0);
    const auto curves = tests::shell("cat " + folder(name) + "/events.out.* | grep -ac loss/training");
    EXPECT_EQ(curves.output, "12\n");
    EXPECT_NE(outcome.messages.find(said(name)), std::string::npos) << "on the screen, too";
    const auto more = tests::assay({"resume", folder(name), "--change", "train.steps=14"});
    EXPECT_EQ(more.code, 0) << more.messages;
    EXPECT_EQ(losses(name).size(), 14u);
  }
};

TEST_F(LostFolder, ARemovedOneIsMadeAnewWithTheWholeRecord) {
  const auto outcome = with("rm -rf $run");
  is_whole("place/run", outcome);
  EXPECT_NE(said("place/run").find("it is made anew, and the run is saved there, with the whole record"),
            std::string::npos)
      << outcome.messages;
}

TEST_F(LostFolder, OfARenamedOneTheRunStaysAtItsPath) {
  const auto outcome = with("mv $run $run.old", "--ranks 2 checkpoint.asynchronous=off");
  is_whole("place/run", outcome);
  EXPECT_TRUE(fs::exists(folder("place/run.old") + "/checkpoints/step_00000004/COMMITTED"));
  EXPECT_GE(run_of("place/run.old").steps.size(), 5u);
}

TEST_F(LostFolder, AnotherRunInItsPlaceIsLeftAlone) {
  ASSERT_EQ(train("other", "").code, 0);
  const auto outcome = with("mv $run $run.old; cp -r " + folder("other") + " $run");
  is_whole("place/run-2", outcome);
  EXPECT_NE(outcome.messages.find("is saved, in " + folder("place/run-2")), std::string::npos)
      << outcome.messages;
  EXPECT_EQ(tests::shell("diff -r " + folder("other") + " " + folder("place/run")).code, 0);
}

TEST_F(LostFolder, AnUnmountedOneIsMadeAnewWhereItWas) {
  if (tests::shell("unshare --mount mount -t tmpfs tmpfs " + scratch.path().string()).code != 0)
    GTEST_SKIP() << "this machine lets the test mount no file system";
  const auto outcome =
      with("umount -l " + folder("place"), "", "mount -t tmpfs tmpfs " + folder("place") + " || exit 99");
  is_whole("place/run", outcome);
}

TEST_F(LostFolder, TheRecordAloneIsWrittenAnew) {
  const auto outcome = with("rm $run/run.jsonl");
  is_whole("place/run", outcome);
  EXPECT_NE(said("place/run").find("the record in " + folder("place/run") + " was removed or replaced"),
            std::string::npos)
      << outcome.messages;
}

/// The disk that it was on gives nothing back.
TEST_F(LostFolder, ARecordThatCannotBeReadAnyMoreBeginsAnew) {
  const auto outcome = with("rm -rf $run", "",
                            "export LD_PRELOAD=" + tests::binary_dir() +
                                "/lib/libio_faults.so ASSAY_IO_FAULTS='read run.jsonl EIO 1 0'");
  EXPECT_EQ(outcome.code, 0) << outcome.messages;
  EXPECT_NE(said("place/run").find("with the record from here on: what was written before cannot be read"),
            std::string::npos)
      << outcome.messages;
  ASSERT_FALSE(losses("place/run").empty());
  EXPECT_LT(losses("place/run").size(), 12u);
  EXPECT_EQ(run_of("place/run").steps.back().step, 12);
  EXPECT_TRUE(fs::exists(folder("place/run") + "/checkpoints/step_00000012/COMMITTED"));
  EXPECT_EQ(tests::assay({"resume", folder("place/run"), "--change", "train.steps=14"}).code, 0);
}

TEST_F(LostFolder, WhereItsDiskTakesNoFolderTheWorkingDirectoryDoes) {
  const auto outcome = with("mv " + folder("place") + " " + folder("aside") + "; echo > " + folder("place"));
  is_whole("here/run", outcome);
}

/// The last save is tried again until somebody gives it up.
TEST_F(LostFolder, WhereNoPlaceIsLeftTheRunEndsWith74) {
  const auto outcome = with("mv " + folder("place") + " " + folder("aside") + "; echo > " + folder("place") +
                                "; rmdir " + folder("here"),
                            "2> " + folder("err"), ":",
                            "for ((i = 0; i < 3000; ++i)); do grep -q 'tried again for' " + folder("err") +
                                " && break; sleep 0.02; done; kill -TERM $p;");
  const auto messages = tests::shell("cat " + folder("err")).output;
  EXPECT_EQ(outcome.code, 74) << messages;
  EXPECT_NE(messages.find("was removed, renamed or unmounted, and no other one can be made"),
            std::string::npos)
      << messages;
  EXPECT_EQ(messages.find("free space"), std::string::npos) << messages;
  EXPECT_EQ(run_of("aside/run").end->exit_code, 74);
}

}  // namespace
}  // namespace assay::lost_folder_test
