// labels: cli fault
// Ranks that this program starts: what they are told, how a stop reaches them, and the exit code of the job.
#include "impl/cli/launch_ranks.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>

#include "spec/error.hpp"
#include "tests/cli/built_program.hpp"
#include "tests/support/scratch.hpp"

namespace assay::impl::cli::launch_ranks_test {
namespace {

using tests::shell;

const std::string launcher = tests::binary_dir() + "/bin/run_ranks ";

/// Three ranks, each a shell with this script, which may not hold a "'".
Outcome ranks(const std::string& script, const std::string& before = "") {
  return shell(before + launcher + "3 /bin/bash -c '" + script + "'", 30);
}

TEST(LaunchRanksCli, TheJobEndsForTheReasonOfItsFirstRank) {
  EXPECT_EQ(ranks("exit 0").code, 0);
  EXPECT_EQ(ranks("exit 75").code, 75);
  EXPECT_EQ(ranks("exit 75", "trap \"\" CHLD; ").code, 75) << "whatever the caller does with such signals";
  EXPECT_EQ(ranks("[ $RANK = 2 ] && exit 75; exit 0").code, 75);
  EXPECT_EQ(ranks("[ $RANK = 1 ] && exit 65; sleep 0.3; exit 77").code, 65);
  EXPECT_EQ(ranks("[ $RANK = 1 ] && { sleep 0.3; exit 76; }; exit 77").code, 76);
  EXPECT_EQ(ranks("[ $RANK = 1 ] && exit 137; sleep 0.3; exit 77").code, 77) << "a shell around the rank";
  const Outcome killed = ranks("[ $RANK = 1 ] && kill -KILL $$; sleep 0.3; exit 77");
  EXPECT_EQ(killed.code, 77);
  EXPECT_NE(killed.messages.find("rank 1 of this host"), std::string::npos) << killed.messages;
  EXPECT_NE(killed.messages.find("signal 9 (Killed)"), std::string::npos) << killed.messages;
  EXPECT_EQ(shell(launcher + "2 /no/such/program").code, 74);
}

/// A rank that the system killed cannot say why; its group's count of such kills does (cgroup v2, v1).
TEST(LaunchRanksCli, ARankThatIsKilledForMemoryIsSaidToBe) {
  const std::string outside = "signal 9 (Killed), from outside, or by the system for want of memory\n";
  const tests::Scratch scratch;
  std::filesystem::create_directories(scratch.path() / "proc/self");
  std::filesystem::create_directories(scratch.path() / "cgroup/job");
  std::filesystem::create_directories(scratch.path() / "cgroup/memory/job");
  const std::string before = "export CGROUPS=" + scratch.path().string() + "; ";
  const struct {
    const char *line, *events, *limit, *file;
  } trials[] = {{"0::/job\n", "cgroup/job/memory.events", "memory.max", "cgroup/job/memory.max"},
                {"4:memory:/job\n", "cgroup/memory/job/memory.oom_control", "memory.limit_in_bytes",
                 "cgroup/memory/job/memory.limit_in_bytes"}};
  for (const auto& trial : trials) {
    scratch.write("proc/self/cgroup", trial.line);
    scratch.write(trial.events, "oom 3\noom_kill 2\n");
    scratch.write(trial.file, "1048576000\n");
    const std::string events = (scratch.path() / trial.events).string();
    const auto dies = [&](const std::string& first) {
      return ranks("[ $RANK = 1 ] && { " + first + "kill -KILL $$; }; sleep 0.3; exit 77", before);
    };
    const Outcome killed = dies("echo oom_kill 3 > " + events + "; ");
    EXPECT_EQ(killed.code, 77);
    EXPECT_NE(killed.messages.find("(Killed): the system killed it for want of memory; lower batch.micro"),
              std::string::npos)
        << killed.messages;
    EXPECT_NE(killed.messages.find("raise the memory limit of its cgroup, " + scratch.path().string() + "/" +
                                   trial.file + " (0.98 GiB)"),
              std::string::npos)
        << killed.messages;
    const Outcome by_hand = dies("");
    EXPECT_NE(by_hand.messages.find(outside), std::string::npos) << by_hand.messages;
  }
  scratch.write("proc/self/cgroup", "");
  EXPECT_NE(ranks("kill -KILL $$", before).messages.find(outside), std::string::npos);
}

/// They have nothing of their own that tells them.
TEST(LaunchRanksCli, RanksThatAreLeftBehindAreEnded) {
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(ranks("[ $RANK = 1 ] && exit 3; sleep 60").code, 3);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(15));
}

/// `send` is a shell command that has the launcher's process in $p and what ranks print in $o; all are ready.
Outcome stopped(const std::string& trap, const std::string& send) {
  const tests::Scratch scratch;
  return shell(
      "set -m; o=" + (scratch.path() / "out").string() +
          "; lines() { grep -c $1 $o 2>/dev/null || true; }; " + launcher + "3 /bin/bash -c 'trap \"" + trap +
          "\" TERM; echo ready; while :; do sleep 0.02; done' > $o & p=$!; until [ \"$(lines ready)\" = 3 ]; "
          "do sleep 0.02; done; " +
          send + "; wait $p; code=$?; sort $o; exit $code",
      30);
}

TEST(LaunchRanksCli, AStopReachesEveryRank) {
  for (const char* signal : {"TERM", "INT", "HUP", "USR1"}) {
    const Outcome outcome = stopped("echo saved; exit 75", "kill -" + std::string(signal) + " $p");
    EXPECT_EQ(outcome.code, 75) << signal;
    EXPECT_EQ(outcome.output, "ready\nready\nready\nsaved\nsaved\nsaved\n") << signal << outcome.messages;
  }
}

TEST(LaunchRanksCli, OneStopThatComesTwiceIsOne) {
  const Outcome outcome = stopped("sleep 0.5; exit 75", "kill -TERM $p; kill -TERM $p; kill -INT $p");
  EXPECT_EQ(outcome.code, 75) << outcome.messages;
}

TEST(LaunchRanksCli, ASecondStopEndsTheRanks) {
  const auto begin = std::chrono::steady_clock::now();
  const Outcome outcome = stopped("echo first", "kill -TERM $p; sleep 0.4; kill -INT $p");
  EXPECT_EQ(outcome.code, 130);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(15));
}

TEST(LaunchRanksCli, RanksThatKnowNoStopEndByIt) {
  EXPECT_EQ(shell(launcher + "2 /bin/sleep 60 & p=$!; sleep 0.5; kill -TERM $p; wait $p").code, 143);
}

TEST(LaunchRanksCli, RanksAreAskedToStopWhenTheirLauncherIsGone) {
  const Outcome outcome = stopped("echo orphan; exit 75",
                                  "kill -KILL $p; until [ \"$(lines orphan)\" = 3 ]; do sleep 0.02; done");
  EXPECT_EQ(outcome.output, "orphan\norphan\norphan\nready\nready\nready\n") << outcome.messages;
}

TEST(LaunchRanksCli, RanksWithinAnotherLauncherAreRefused) {
  for (const char* others : {"WORLD_SIZE=2 RANK=0 ", "SLURM_STEP_NUM_TASKS=2 SLURM_PROCID=0 ",
                             "OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=0 ", "PMI_SIZE=2 PMI_RANK=0 "}) {
    const Outcome outcome = shell(others + tests::assay_path() + " train --ranks 2 compute.device=cpu");
    EXPECT_EQ(outcome.code, 2) << others;
    EXPECT_NE(outcome.messages.find("a launcher has started this process"), std::string::npos)
        << others << outcome.messages;
  }
}

RankJob job_of(const std::vector<std::string>& words) {
  return rank_job(parse(words, rank_options(""), "train"));
}

TEST(LaunchRanksCli, SeveralHostsMeetAtAnAddress) {
  EXPECT_EQ(job_of({}).here, 1);
  EXPECT_FALSE(job_of({}).several());
  EXPECT_EQ(job_of({"--ranks", "4"}).all, 4);
  const RankJob job = job_of({"--ranks=8", "--of=32", "--rendezvous=node0:29500"});
  EXPECT_EQ(job.here, 8);
  EXPECT_EQ(job.all, 32);
  EXPECT_EQ(job.host, "node0");
  EXPECT_EQ(job.port, 29500);
  EXPECT_EQ(job_of({"--of=2", "--rendezvous=[fd00::1]:7"}).host, "fd00::1");
  for (const auto& [words, text] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"--of=32"}, "--rendezvous HOST:PORT"},
           {{"--rendezvous=node0:29500"}, "--of TOTAL"},
           {{"--ranks=8", "--of=4", "--rendezvous=node0:29500"}, "counts the ranks of all hosts"},
           {{"--of=4", "--rendezvous=node0"}, "give HOST:PORT"},
           {{"--of=4", "--rendezvous=:29500"}, "give HOST:PORT"},
           {{"--of=4", "--rendezvous=node0:0"}, "give HOST:PORT"},
           {{"--of=4", "--rendezvous=node0:65536"}, "give HOST:PORT"},
           {{"--of=4", "--rendezvous=node0:29x"}, "give HOST:PORT"}}) {
    try {
      job_of(words);
      ADD_FAILURE() << text;
    } catch (const UserError& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace assay::impl::cli::launch_ranks_test
