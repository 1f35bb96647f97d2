// labels: cli fault
// A call on a file fails, once or from some moment on (tests/cli/io_faults): no state that is whole is lost
// by it.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tests/cli/train_program.hpp"

namespace assay::io_errors_test {
namespace {

namespace fs = std::filesystem;

class IoErrors : public tests::TrainProgram {
 protected:
  void SetUp() override {
    TrainProgram::SetUp();
    for (const auto& [name, step] : {std::pair("train.bin", 7), std::pair("val.bin", 11)}) {
      std::string ids;
      for (int i = 0; i < 40'000; ++i) ids += {static_cast<char>(i * step % 120), '\0'};
      scratch.write(name, ids);
    }
  }

  /// Twelve steps, of which the loader reads one ahead, with those calls failing. `met`: a byte for each.
  impl::cli::Outcome train_with(const std::string& faults, const std::string& name, const std::string& more) {
    const fs::path state = scratch.write("state", std::string(512, '\0'));
    auto outcome =
        tests::shell("LD_PRELOAD=" + tests::binary_dir() + "/lib/libio_faults.so ASSAY_IO_FAULTS='" + faults +
                         "' ASSAY_IO_FAULTS_STATE=" + state.string() + " " + command(name) +
                         " train.steps=12 batch.sequence_length=32 sample.sentences=0 data.prefetch=1 "
                         "data.dtype=uint16 data.paths=" +
                         folder("train.bin") + " " + more,
                     120);
    std::ifstream in(state, std::ios::binary);
    met.resize(static_cast<std::size_t>(std::count(faults.begin(), faults.end(), ';')) + 1);
    in.read(met.data(), static_cast<std::streamsize>(met.size()));
    return outcome;
  }
  bool saved(const std::string& name, int step) const {
    char file[64];
    std::snprintf(file, sizeof file, "/checkpoints/step_%08d/COMMITTED", step);
    return fs::exists(folder(name) + file);
  }
  std::vector<double> losses(const std::string& name) const {
    std::vector<double> all;
    for (const auto& step : run_of(name).steps) all.push_back(step.loss);
    return all;
  }

  std::string met;
};

/// The checkpoint of step 4 is written anew behind the step in which its writing failed, which goes on beside
/// the steps; everything else as if nothing had been.
TEST_F(IoErrors, OneErrorOfEachKindCostsNothing) {
  for (const std::string ranks : {"1", "4"}) {
    SCOPED_TRACE(ranks + " ranks");
    const std::string name = "run" + ranks;
    const auto outcome = train_with(
        "write run.jsonl EIO 5 1; fsync run.jsonl EIO 1 1; write tfevents EIO 3 1; read train.bin EIO 20 1; "
        "write report EIO 1 1; write .safetensors EIO 2 1; fsync /checkpoints EIO 12 1; rename step_00000012 "
        "EIO "
        "1 1",
        name, "checkpoint.every=4 checkpoint.keep=9 log.tensorboard=on parallel.data=shard --ranks " + ranks);
    EXPECT_EQ(outcome.code, 0) << outcome.messages;
    EXPECT_EQ(met, std::string(8, '\1')) << "each was met";
    const auto run = run_of(name);  // refuses a record that is not as it was written
    EXPECT_EQ(run.steps.size(), 12u);
    ASSERT_TRUE(run.end);
    EXPECT_EQ(run.end->exit_code, 0);
    const auto told = [&](const char* code, const char* text) {
      return std::any_of(run.warnings.begin(), run.warnings.end(), [&](const auto& warning) {
        return warning.code == code && warning.text.find(text) != std::string::npos;
      });
    };
    EXPECT_TRUE(told("record_waits", "Input/output error; the record is kept in memory"));
    EXPECT_TRUE(told("not_saved", "Input/output error; look at the disk, or the network to it"));
    EXPECT_EQ(outcome.messages.find("free space"), std::string::npos) << outcome.messages;
    EXPECT_FALSE(told("tensorboard", ""));
    EXPECT_FALSE(saved(name, 4));
    EXPECT_EQ(saved(name, 5) + saved(name, 6) + saved(name, 7), 1)
        << "written anew once, before the next one";
    for (const int step : {8, 12}) EXPECT_TRUE(saved(name, step)) << step;
    EXPECT_TRUE(fs::exists(folder(name) + "/report.html"));
    EXPECT_EQ(tests::assay({"audit", folder(name)}).code, 0);
    const auto curves = tests::shell("cat " + folder(name) + "/events.out.* | grep -ac loss/training");
    EXPECT_EQ(curves.code, 0) << curves.messages;
  }
}

/// A checkpoint is as good as before: a resume reads it again, and passes nothing over.
TEST_F(IoErrors, OneErrorOfReadingACheckpointCostsNothing) {
  ASSERT_EQ(train_with("", "run", "").code, 0);
  for (const char* ranks : {"1", "4"}) {
    const std::string name = "more" + std::string(ranks);
    const fs::path state = scratch.write("state", std::string(512, '\0'));
    const auto resumed = tests::shell(
        "LD_PRELOAD=" + tests::binary_dir() +
            "/lib/libio_faults.so ASSAY_IO_FAULTS='load manifest.json EIO 1 1; load COMMITTED EIO 1 1; read "
            ".safetensors EIO 1 1' ASSAY_IO_FAULTS_STATE=" +
            state.string() + " " + tests::assay_path() + " resume " + folder("run") + " --ranks " + ranks +
            " --into " + folder(name) + " --change train.steps=14",
        120);
    EXPECT_EQ(resumed.code, 0) << resumed.messages;
    std::ifstream in(state, std::ios::binary);
    std::string each(3, '\0');
    in.read(each.data(), 3);
    EXPECT_EQ(each, std::string(3, '\1')) << "each was met";
    const auto run = run_of(name);
    ASSERT_EQ(run.resumes.size(), 1u);
    EXPECT_EQ(run.resumes[0].step, 12);
    for (const auto& warning : run.warnings) EXPECT_NE(warning.code, "damaged_checkpoint") << warning.text;
  }
}

/// A save that fails says why and what to do about that; of room it speaks where there is none.
TEST_F(IoErrors, ASaveThatFailsSaysItsOwnCause) {
  const struct {
    const char *fault, *cause;
    bool full;
  } trials[] = {
      {"write .safetensors ENOSPC 1 1", "No space left on device; free space", true},
      {"write .safetensors EDQUOT 1 1", "Disk quota exceeded; free space within the quota", true},
      {"write .safetensors EIO 1 1", "Input/output error; look at the disk, or the network to it", false},
      {"fsync .safetensors EROFS 1 1", "Read-only file system; its disk is mounted for reading alone", false},
      {"rename step_00000004 EACCES 1 1", "Permission denied; look at who may write there", false},
      {"rename step_00000004 ENOENT 1 1", "No such file or directory; look at what became of the folder",
       false},
  };
  int number = 0;
  for (const auto& trial : trials) {
    const std::string name = "run" + std::to_string(number++);
    const auto outcome = train_with(trial.fault, name, "checkpoint.every=4");
    EXPECT_EQ(outcome.code, 0) << outcome.messages;
    std::string text;
    for (const auto& warning : run_of(name).warnings)
      if (warning.code == "not_saved") text += warning.text;
    EXPECT_NE(text.find(trial.cause), std::string::npos) << text;
    for (const char* of_room : {"it needs ", "are free", "free space"})
      EXPECT_EQ(text.find(of_room) != std::string::npos, trial.full) << text;
  }
}

/// The limit of a file's length is as a full disk (EFBIG), and no signal ends the run.
TEST_F(IoErrors, AFileThatMayNotGrowIsAnError) {
  const std::string run = command("run") + " train.steps=4 sample.sentences=0";
  const auto outcome =
      tests::shell("(ulimit -f 1000; exec " + run + ") 2> " + folder("err") +
                       " & p=$!; for ((i = 0; i < 2000; ++i)); do grep -q 'tried again for' " +
                       folder("err") + " && break; sleep 0.02; done; kill -TERM $p; wait $p",
                   60);
  const auto messages = tests::shell("cat " + folder("err")).output;
  EXPECT_EQ(outcome.code, 74) << messages;
  EXPECT_NE(
      messages.find("File too large; no file of this process may be as long: raise the limit (ulimit -f)"),
      std::string::npos)
      << messages;
  EXPECT_EQ(messages.find("free space"), std::string::npos) << messages;
  ASSERT_TRUE(run_of("run").end) << messages;
  EXPECT_EQ(run_of("run").end->exit_code, 74);
  EXPECT_EQ(run_of("run").steps.size(), 4u);
  const auto written = tests::shell("(ulimit -f 0; exec " + tests::assay_path() + " report " + folder("run") +
                                    " -o " + folder("page.html") + ")");
  EXPECT_EQ(written.code, 74) << written.messages;
  EXPECT_NE(written.messages.find("File too large"), std::string::npos) << written.messages;
}

/// The steps that were done are saved, and the run goes on from there bit for bit.
TEST_F(IoErrors, DataThatCannotBeReadAnyMoreSaveTheStateFirst) {
  ASSERT_EQ(train_with("", "whole", "").code, 0);
  const auto outcome = train_with("read train.bin EIO 48 0", "run", "checkpoint.minutes=0");
  EXPECT_EQ(outcome.code, 74) << outcome.messages;
  EXPECT_NE(outcome.messages.find("train.bin\" cannot be read at byte"), std::string::npos)
      << outcome.messages;
  const auto run = run_of("run");
  ASSERT_TRUE(run.end);
  EXPECT_EQ(run.end->exit_code, 74);
  const auto done = static_cast<int>(run.steps.size());
  ASSERT_GT(done, 0);
  ASSERT_LT(done, 12);
  EXPECT_TRUE(saved("run", done)) << outcome.messages;
  const auto resumed = tests::assay({"resume", folder("run")});
  EXPECT_EQ(resumed.code, 0) << resumed.messages;
  EXPECT_EQ(losses("run"), losses("whole"));
}

/// Steps are not lost for a record that cannot be written; that it is not whole is the run's exit code.
TEST_F(IoErrors, ARecordThatCannotBeWrittenAnyMoreKeepsNoStepFromBeingDoneAndSaved) {
  const auto outcome = train_with("write run.jsonl EIO 5 0", "run", "");
  EXPECT_EQ(outcome.code, 74) << outcome.messages;
  EXPECT_NE(outcome.messages.find("run.jsonl: cannot write the run's record: Input/output error"),
            std::string::npos)
      << outcome.messages;
  EXPECT_TRUE(saved("run", 12));
  EXPECT_LT(run_of("run").steps.size(), 12u);
}

/// What is whole is what no update is changing.
TEST_F(IoErrors, AnyErrorOutsideOfAnUpdateSavesTheStateBeforeTheStep) {
  for (const auto& [phase, whole] : {std::pair("backward", true), std::pair("update", false)}) {
    const auto outcome =
        tests::shell("ASSAY_FAULT_DRILL='kind=error rank=0 step=5 phase=" + std::string(phase) + "' " +
                         command(phase) + " train.steps=8 checkpoint.minutes=0",
                     120);
    EXPECT_EQ(outcome.code, 70) << outcome.messages;
    EXPECT_EQ(saved(phase, 4), whole) << phase << outcome.messages;
    EXPECT_EQ(run_of(phase).end->exit_code, 70);
  }
}

/// One of two ranks cannot read: its tokens before a step, or those that a run is validated on.
TEST_F(IoErrors, AnErrorOnOneRankSavesTheStateOfAll) {
  const struct {
    const char *name, *faults;
  } trials[] = {{"training", "read train.bin EIO 40 0"}, {"validation", "read val.bin EIO 60 0"}};
  for (const auto& trial : trials) {
    const auto outcome = train_with(trial.faults, trial.name,
                                    "--ranks 2 parallel.data=shard checkpoint.minutes=0 eval.sequences=16 "
                                    "eval.every=2 eval.paths=" +
                                        folder("val.bin"));
    EXPECT_EQ(outcome.code, 74) << outcome.messages;
    EXPECT_NE(outcome.messages.find("assay: error: rank "), std::string::npos) << outcome.messages;
    const auto run = run_of(trial.name);
    ASSERT_TRUE(run.end) << outcome.messages;
    EXPECT_EQ(run.end->exit_code, 74);
    ASSERT_GT(run.steps.size(), 0u);
    EXPECT_LT(run.steps.size(), 12u);
    EXPECT_TRUE(saved(trial.name, static_cast<int>(run.steps.size()))) << trial.name << outcome.messages;
  }
}

}  // namespace
}  // namespace assay::io_errors_test
