// labels: cli
#include "impl/cli/program.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "spec/config/dump.hpp"
#include "tests/cli/built_program.hpp"
#include "tests/support/scratch.hpp"

namespace assay::impl::cli::program_test {
namespace {

namespace fs = std::filesystem;
using tests::assay;
using tests::assay_path;
using tests::shell;

class TrainCli : public testing::Test {
 protected:
  // A copy of assay with a stand-in for the trainer beside it.
  void SetUp() override { fs::copy_file(assay_path(), folder / "assay"); }

  void script(const fs::path& file, const std::string& body) {
    std::ofstream(file) << "#!/bin/sh\n" << body;
    fs::permissions(file, fs::perms::owner_all);
  }

  tests::Scratch scratch;
  const fs::path folder = scratch.path();
};

TEST(ProgramCli, CollectsBothStreamsAndTheExitCode) {
  const Outcome outcome = run_program({"/bin/sh", "-c", "echo data; echo message >&2; exit 3"}, 10);
  EXPECT_EQ(outcome.code, 3);
  EXPECT_EQ(outcome.output, "data\n");
  EXPECT_EQ(outcome.messages, "message\n");
  EXPECT_EQ(run_program({"/bin/sh", "-c", "kill -9 $$"}, 10).code, 137);
  EXPECT_EQ(run_program({"/bin/sh", "-c", "head -c 3000000 /dev/zero"}, 10).code, 0);  // more than is kept
}

TEST(ProgramCli, AProgramThatHangsIsEnded) {
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(run_program({"/bin/sleep", "60"}, 0.2).code, 124);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

TEST(ProgramCli, TheBuiltProgramAnswers) {
  EXPECT_EQ(assay({"version"}).output.rfind("assay ", 0), 0u);
  EXPECT_EQ(assay({"trian"}).code, 2);
  EXPECT_EQ(assay({"config", "--markdown"}).output, spec::keys_markdown());
  EXPECT_EQ(assay({"train", "--dump-config"}).output, spec::dump_toml(spec::RunConfig()));
}

TEST(ProgramCli, AFullDiskBehindStandardOutputIsAnIoError) {
  const Outcome outcome = shell(assay_path() + " config > /dev/full");
  EXPECT_EQ(outcome.code, 74);
  EXPECT_NE(outcome.messages.find("standard output"), std::string::npos);
}

TEST(ProgramCli, LinksNoLibtorchAndNoCuda) {
  const Outcome outcome = shell("ldd " + assay_path());
  ASSERT_EQ(outcome.code, 0);
  for (const char* library : {"torch", "cuda", "cudnn", "nccl", "mpi"})
    EXPECT_EQ(outcome.output.find(library), std::string::npos) << outcome.output;
}

TEST(ProgramCli, StartsWithinTwentyMilliseconds) {
#ifndef NDEBUG  // the program's: tests are never optimised
  GTEST_SKIP() << "built without optimisation";
#endif
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "built with sanitizers, which start slowly";
#endif
  double best = 1;
  for (int i = 0; i < 20; ++i) {
    const auto start = std::chrono::steady_clock::now();
    ASSERT_EQ(assay({"version"}).code, 0);
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  EXPECT_LE(best, 0.020) << "best of 20 starts [s]";
}

TEST(ProgramCli, BashCompletesVerbsOptionsKeysAndChoices) {
  const auto complete = [](const std::string& line) {
    return shell("source <(" + assay_path() + " completion bash); COMP_LINE='" + line +
                 "'; COMP_POINT=${#COMP_LINE}; read -ra COMP_WORDS <<< \"$COMP_LINE\"; "
                 "[ \"${COMP_LINE: -1}\" = ' ' ] && COMP_WORDS+=(''); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); "
                 "_assay 2>/dev/null; printf '%s\\n' \"${COMPREPLY[@]}\"")
        .output;
  };
  EXPECT_EQ(complete("assay doc"), "doctor\n");
  EXPECT_EQ(complete("assay train --du"), "--dump-config\n");
  EXPECT_EQ(complete("assay train train.st"), "train.steps=\n");
  EXPECT_EQ(complete("assay train schedule.kind=co"), "constant\ncosine\n");
  EXPECT_EQ(complete("assay flops llama3-8"), "llama3-8b\n");
}

TEST_F(TrainCli, WithoutATrainerTheFixIsNamed) {
  const Outcome outcome = run_program({(folder / "assay").string(), "train"}, 10);
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.messages.find("cmake --preset release"), std::string::npos) << outcome.messages;
}

TEST_F(TrainCli, LibrariesThatTheLoaderDoesNotFindAreNamed) {
  const fs::path trainer = tests::binary_dir() + "/bin/assay-train";
  if (!fs::exists(trainer)) GTEST_SKIP() << "this build has no assay-train (it needs libtorch)";
  // The same program asking for a library that nobody has.
  std::ifstream in(trainer, std::ios::binary);
  std::string program{std::istreambuf_iterator<char>(in), {}};
  const std::string library = "libtorch_cpu.so", other = "libtorch_xyz.so";
  std::size_t at = program.find(library);
  ASSERT_NE(at, std::string::npos);
  for (; at != std::string::npos; at = program.find(library, at)) program.replace(at, other.size(), other);
  std::ofstream(folder / "assay-train", std::ios::binary) << program;
  fs::permissions(folder / "assay-train", fs::perms::owner_all);
  // And, since it has left the folder beside which they stand, for our own.
  EXPECT_EQ(missing_libraries((folder / "assay-train").string()),
            (std::vector<std::string>{"libassay_impl.so", other}));
  for (const char* ranks : {"1", "2"}) {
    const Outcome outcome = run_program({(folder / "assay").string(), "train", "--ranks", ranks}, 20);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_NE(outcome.messages.find(other), std::string::npos) << outcome.messages;
    EXPECT_NE(outcome.messages.find("ci/setup"), std::string::npos) << outcome.messages;
    EXPECT_EQ(std::count(outcome.messages.begin(), outcome.messages.end(), '\n'), 1) << outcome.messages;
  }
}

TEST_F(TrainCli, OneRankBecomesTheTrainerWithItsArgumentsAndExitCode) {
  script(folder / "assay-train", "echo \"$@\"; exit 75\n");
  const Outcome outcome =
      run_program({(folder / "assay").string(), "train", "train.steps=3", "--ranks", "1"}, 10);
  EXPECT_EQ(outcome.output, "train.steps=3\n");
  EXPECT_EQ(outcome.code, 75);
}

TEST_F(TrainCli, ThreadsSpinForAShortTimeUnlessTheUserSaysHowTheyWait) {
  script(folder / "assay-train", "echo $GOMP_SPINCOUNT $OMP_WAIT_POLICY\n");
  const std::string run = (folder / "assay").string() + " train train.steps=3",
                    clean = "unset GOMP_SPINCOUNT OMP_WAIT_POLICY; ";
  EXPECT_EQ(shell(clean + run).output, "10000\n");
  EXPECT_EQ(shell(clean + "GOMP_SPINCOUNT=7 " + run).output, "7\n");
  EXPECT_EQ(shell(clean + "OMP_WAIT_POLICY=active " + run).output, "active\n");
}

TEST_F(TrainCli, SeveralRanksAreTheTrainerWithWhatTorchrunSets) {
  script(folder / "assay-train",
         "echo rank $RANK of $WORLD_SIZE, $LOCAL_RANK of $LOCAL_WORLD_SIZE, at $MASTER_ADDR: $*\n");
  const Outcome outcome =
      shell((folder / "assay").string() + " train batch.sequences=96 --ranks=3 | sort", 20);
  std::string wanted;
  for (const char* rank : {"0", "1", "2"})
    wanted += std::string("rank ") + rank + " of 3, " + rank + " of 3, at 127.0.0.1: batch.sequences=96\n";
  EXPECT_EQ(outcome.output, wanted) << outcome.messages;
}

TEST_F(TrainCli, DumpConfigNeedsNoTrainer) {
  const Outcome outcome = run_program({(folder / "assay").string(), "train", "--dump-config"}, 10);
  EXPECT_EQ(outcome.code, 0);
  EXPECT_NE(outcome.output.find("[train]"), std::string::npos);
}

}  // namespace
}  // namespace assay::impl::cli::program_test
