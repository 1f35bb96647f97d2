// labels: unit fault
// Which communicator a process gets from the environment that its launcher left.
#include <gtest/gtest.h>
#include <mpi.h>

#include <cstdlib>

#include "impl/parallel/mpi_communicator.hpp"
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
