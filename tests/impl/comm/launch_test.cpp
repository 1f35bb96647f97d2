// labels: unit fault
// Which communicator a process gets from the environment that its launcher left.
#include <gtest/gtest.h>
#include <mpi.h>

#include <cstdlib>
#include <map>
#include <string>

#include "impl/comm/launch.hpp"
#include "impl/comm/mpi_communicator.hpp"
#include "spec/error.hpp"

namespace assay::impl::launch_test {
namespace {

class LaunchImpl : public testing::Test {
 protected:
  void SetUp() override {
    if (launched_by_mpi()) GTEST_SKIP() << "this test was itself started by an MPI launcher";
  }
  void TearDown() override {
    for (const char* name : {"WORLD_SIZE", "RANK", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "SLURM_NTASKS"})
      unsetenv(name);
  }
};

TEST_F(LaunchImpl, OneProcessIsAlone) {
  EXPECT_EQ(make_communicator()->engine(), "self");
  setenv("WORLD_SIZE", "1", 1), setenv("RANK", "0", 1);
  EXPECT_EQ(make_communicator()->engine(), "self");
}

TEST_F(LaunchImpl, ABatchScriptOfSeveralTasksIsOneProcess) {
  setenv("SLURM_NTASKS", "8", 1), setenv("SLURM_PROCID", "0", 1);
  EXPECT_EQ(make_communicator()->engine(), "self");
}

TEST_F(LaunchImpl, SeveralProcessesWithoutMpiAreRefused) {
  const auto refused = [](const char* size, const char* rank) {
    setenv(size, "2", 1), setenv(rank, "1", 1);
    try {
      make_communicator();
      FAIL() << "would train alone";
    } catch (const UserError& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      EXPECT_NE(std::string(error.what()).find("mpirun"), std::string::npos) << error.what();
    }
    unsetenv(size), unsetenv(rank);
  };
  refused("WORLD_SIZE", "RANK");
  refused("SLURM_STEP_NUM_TASKS", "SLURM_PROCID");
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
  EXPECT_EQ(launch.by, Launch::By::store);
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
  EXPECT_EQ(launch.by, Launch::By::store);
  EXPECT_EQ(launch.rank, 5);
  EXPECT_EQ(launch.size, 8);
}

TEST(ReadLaunchImpl, MpiGoesFirst) {
  EXPECT_EQ(read({{"OMPI_COMM_WORLD_SIZE", "2"}}).by, Launch::By::mpi);
  EXPECT_EQ(read(torchrun({{"OMPI_COMM_WORLD_SIZE", "4"}})).by, Launch::By::mpi);
  EXPECT_EQ(read({{"PMIX_RANK", "0"}, {"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_PROCID", "0"}}).by,
            Launch::By::mpi);
}

TEST(ReadLaunchImpl, WrongAndContradictoryEnvironmentsAreNamed) {
  struct Case {
    Variables environment;
    const char* text;
  };
  for (const Case& c : {Case{torchrun({{"RANK", ""}}), "RANK is not set"},
                        Case{torchrun({{"RANK", "4"}}), "RANK=4 of WORLD_SIZE=4"},
                        Case{torchrun({{"RANK", "two"}}), "RANK=two"},
                        Case{torchrun({{"WORLD_SIZE", "-4"}}), "WORLD_SIZE=-4"},
                        Case{torchrun({{"WORLD_SIZE", "99999999999"}}), "WORLD_SIZE=99999999999"},
                        Case{torchrun({{"MASTER_ADDR", ""}}), "MASTER_ADDR"},
                        Case{torchrun({{"MASTER_PORT", "0"}}), "MASTER_PORT"},
                        Case{torchrun({{"MASTER_PORT", "65536"}}), "MASTER_PORT"},
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

TEST(ThreadLevelImpl, LessThanTrainingNeedsIsRefusedByName) {
  EXPECT_NO_THROW(require_thread_level(MPI_THREAD_FUNNELED));
  EXPECT_NO_THROW(require_thread_level(MPI_THREAD_MULTIPLE));
  try {
    require_thread_level(MPI_THREAD_SINGLE);
    FAIL() << "the loader's thread runs beside MPI";
  } catch (const UserError& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_NE(std::string(error.what()).find("MPI_THREAD_FUNNELED"), std::string::npos) << error.what();
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace assay::impl::launch_test
