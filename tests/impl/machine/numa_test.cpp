// labels: unit
#include <gtest/gtest.h>
#include <sched.h>

#include <filesystem>
#include <fstream>

#include "impl/machine/numa.hpp"
#include "tests/support/scratch.hpp"

namespace assay::impl::run::numa_test {
namespace {

namespace fs = std::filesystem;

void write(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

/// A host of two nodes with one GPU, as its files would say it.
class NumaImpl : public testing::Test {
 protected:
  void SetUp() override {
    write(status(),
          "Name:\tassay-train\nCpus_allowed:\tff\nCpus_allowed_list:\t0-3,8\n"
          "Mems_allowed:\t1\nMems_allowed_list:\t0\n");
    write(system() / "devices/system/node/node1/cpulist", "4-7,12-15\n");
    write(node(), "1\n");
  }
  fs::path status() const { return scratch_.path() / "status"; }
  fs::path system() const { return scratch_.path() / "sys"; }
  fs::path node() const { return system() / "bus/pci/devices/0000:1b:00.0/numa_node"; }
  NumaPlacement placement(const std::string& pci) const {
    return read_numa_placement(status(), system(), pci);
  }

 private:
  tests::Scratch scratch_;
};

TEST_F(NumaImpl, ReadsWhatLinuxSays) {
  const NumaPlacement found = placement("0000:1b:00.0");
  EXPECT_EQ(found.processors, "0-3,8");
  EXPECT_EQ(found.memory_nodes, "0");
  EXPECT_EQ(found.gpu_node, 1);
  EXPECT_EQ(found.gpu_processors, "4-7,12-15");
}

TEST_F(NumaImpl, LeavesOutWhatLinuxDoesNotSay) {
  const NumaPlacement no_gpu = placement("");
  EXPECT_EQ(no_gpu.processors, "0-3,8");
  EXPECT_EQ(no_gpu.gpu_node, std::nullopt);
  EXPECT_EQ(placement("0000:ff:00.0").gpu_node, std::nullopt);
  write(node(), "-1\n");
  EXPECT_EQ(placement("0000:1b:00.0").gpu_node, std::nullopt);
  fs::remove(status());
  EXPECT_EQ(placement("").processors, "");
}

TEST(NumaListImpl, NumbersOfALinuxList) {
  EXPECT_EQ(numbers_of("8,0-3"), (std::vector<std::int64_t>{0, 1, 2, 3, 8}));
  EXPECT_EQ(numbers_of("5"), (std::vector<std::int64_t>{5}));
  EXPECT_TRUE(numbers_of("").empty());
  for (const char* bad : {"a", "1-", "-1", "1,,2", "1-2-3", "0x3"})
    EXPECT_THROW(numbers_of(bad), std::invalid_argument) << bad;
}

TEST(NumaListImpl, ThisThreadsProcessorsAreThoseOfItsMask) {
  cpu_set_t mask;
  ASSERT_EQ(sched_getaffinity(0, sizeof mask, &mask), 0);
  std::vector<std::int64_t> allowed;
  for (int n = 0; n < CPU_SETSIZE; ++n)
    if (CPU_ISSET(n, &mask)) allowed.push_back(n);
  EXPECT_EQ(numbers_of(numa_placement(at::kCPU).processors), allowed);
}

}  // namespace
}  // namespace assay::impl::run::numa_test
