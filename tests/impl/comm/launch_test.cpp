// labels: unit fault
// Which communicator a process gets from the environment that its launcher left.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>

#include "impl/comm/launch.hpp"
#include "spec/error.hpp"

namespace assay::impl::launch_test {
namespace {

/// By the environment of this process.
TEST(LaunchImpl, OneProcessIsAlone) {
  EXPECT_EQ(make_communicator()->engine(), "self");
  setenv("WORLD_SIZE", "1", 1), setenv("RANK", "0", 1);
  EXPECT_EQ(make_communicator()->engine(), "self");
  unsetenv("WORLD_SIZE"), unsetenv("RANK");
}

using Variables = std::map<std::string, std::string>;

Launch read(const Variables& variables) {
  return read_launch([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

/// With the variables of `more` set, or, where empty, unset.
Variables torchrun(const Variables& more = {}) {
  Variables all = {{"WORLD_SIZE", "4"}, {"RANK", "3"}, {"MASTER_ADDR", "node0"}, {"MASTER_PORT", "29500"}};
  for (const auto& [name, value] : more)
    if (value.empty())
      all.erase(name);
    else
      all[name] = value;
  return all;
}

TEST(ReadLaunchImpl, TorchrunSaysWhereRankZeroIs) {
  const Launch launch = read(torchrun());
  EXPECT_EQ(launch.rank, 3);
  EXPECT_EQ(launch.size, 4);
  EXPECT_EQ(launch.host, "node0");
  EXPECT_EQ(launch.port, 29500);
}

TEST(ReadLaunchImpl, SrunDoesWhereTheScriptSetsTheAddress) {
  const Launch launch = read({{"SLURM_STEP_NUM_TASKS", "8"},
                              {"SLURM_PROCID", "5"},
                              {"MASTER_ADDR", "node0"},
                              {"MASTER_PORT", "29500"}});
  EXPECT_EQ(launch.rank, 5);
  EXPECT_EQ(launch.size, 8);
}

TEST(ReadLaunchImpl, ABatchScriptOfSeveralTasksIsOneProcess) {
  EXPECT_EQ(read({{"SLURM_NTASKS", "8"}, {"SLURM_PROCID", "0"}}).launcher, "");
  EXPECT_EQ(read({{"WORLD_SIZE", "1"}, {"RANK", "0"}, {"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_PROCID", "1"}})
                .launcher,
            "");
}

TEST(ReadLaunchImpl, MpirunAndPmiCountProcessesThatMeetInAStore) {
  for (const char* name : {"OMPI_COMM_WORLD", "PMI"}) {
    const std::string prefix = name;
    const Launch launch = read({{prefix + "_SIZE", "4"},
                                {prefix + "_RANK", "2"},
                                {"MASTER_ADDR", "node0"},
                                {"MASTER_PORT", "29500"}});
    EXPECT_EQ(launch.rank, 2) << name;
    EXPECT_EQ(launch.size, 4) << name;
  }
  EXPECT_EQ(read(torchrun({{"OMPI_COMM_WORLD_SIZE", "4"}})).rank, 3);
}

TEST(ReadLaunchImpl, RanksOfAssayAreNumberedByItOrByTheHosts) {
  Variables own = torchrun({{"ASSAY_LAUNCHER", "1"},
                            {"LOCAL_RANK", "3"},
                            {"LOCAL_WORLD_SIZE", "4"},
                            {"ASSAY_STORE_LISTENER", "7"}});
  Launch launch = read(own);
  EXPECT_EQ(launch.launcher, "assay");
  EXPECT_EQ(launch.rank, 3);
  EXPECT_TRUE(launch.one_host);
  EXPECT_EQ(launch.listener, 7);
  own.erase("RANK"), own["ASSAY_HOST_KEY"] = "12-34", own["WORLD_SIZE"] = "16";
  launch = read(own);
  EXPECT_EQ(launch.rank, -1);
  EXPECT_EQ(launch.local_rank, 3);
  EXPECT_EQ(launch.local_size, 4);
  EXPECT_EQ(launch.size, 16);
  EXPECT_FALSE(launch.one_host);
}

TEST(ReadLaunchImpl, ARestartedJobHasKeysOfItsOwn) {
  EXPECT_NE(read(torchrun({{"TORCHELASTIC_RESTART_COUNT", "0"}})).keys,
            read(torchrun({{"TORCHELASTIC_RESTART_COUNT", "1"}})).keys);
}

TEST(ReadLaunchImpl, WrongAndContradictoryEnvironmentsAreNamed) {
  struct Case {
    Variables environment;
    const char* text;
  };
  for (const Case& c :
       {Case{torchrun({{"RANK", ""}}), "RANK is not set"},
        Case{torchrun({{"RANK", "4"}}), "RANK=4 of WORLD_SIZE=4"},
        Case{torchrun({{"RANK", "two"}}), "RANK=two"},
        Case{torchrun({{"WORLD_SIZE", "-4"}}), "WORLD_SIZE=-4"},
        Case{torchrun({{"WORLD_SIZE", "99999999999"}}), "WORLD_SIZE=99999999999"},
        Case{torchrun({{"MASTER_ADDR", ""}}), "MASTER_ADDR"},
        Case{torchrun({{"MASTER_PORT", "0"}}), "MASTER_PORT"},
        Case{torchrun({{"MASTER_PORT", "65536"}}), "MASTER_PORT"},
        Case{{{"OMPI_COMM_WORLD_SIZE", "2"}, {"OMPI_COMM_WORLD_RANK", "0"}}, "assay train --ranks N"},
        Case{{{"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_PROCID", "1"}}, "MASTER_ADDR"},
        Case{{{"RANK", "1"}}, "WORLD_SIZE is not set"},
        Case{torchrun({{"OMPI_COMM_WORLD_SIZE", "2"}}), "count the processes differently"}}) {
    try {
      read(c.environment);
      ADD_FAILURE() << "accepted; expected: " << c.text;
    } catch (const UserError& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      EXPECT_NE(std::string(error.what()).find(c.text), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace assay::impl::launch_test
