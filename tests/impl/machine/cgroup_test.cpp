// labels: unit
#include "impl/machine/cgroup.hpp"

#include <gtest/gtest.h>

#include <filesystem>

#include "impl/machine/host.hpp"
#include "tests/support/scratch.hpp"

namespace assay::impl::cgroup_test {
namespace {

using run::available_host_memory;
using run::memory_of_host;

/// Folders in place of /sys/fs/cgroup and /proc.
class CgroupsImpl : public testing::Test {
 protected:
  void write(const std::string& file, const std::string& text) {
    const std::filesystem::path path = scratch_.path() / file;
    std::filesystem::create_directories(path.parent_path());
    scratch_.write(file, text);
  }
  Cgroups groups() const { return Cgroups(scratch_.path() / "cgroup", scratch_.path() / "proc"); }
  std::string at(const std::string& file) const { return (scratch_.path() / file).string(); }

  tests::Scratch scratch_;
};

TEST_F(CgroupsImpl, TheLowestLimitOfTheGroupAndThoseAboveItCounts) {
  write("proc/self/cgroup", "0::/job/step/task\n");
  write("cgroup/job/step/task/memory.max", "max\n");
  write("cgroup/job/step/memory.max", "900000000\n");
  write("cgroup/job/memory.max", "500000000\n");
  write("cgroup/other/memory.max", "1000\n");
  EXPECT_EQ(groups().memory_limit()->bytes, 500'000'000);
  EXPECT_EQ(groups().memory_limit()->file, at("cgroup/job/memory.max"));
  write("cgroup/job/step/memory.high", "400000000\n");
  EXPECT_EQ(groups().memory_limit()->bytes, 400'000'000);
  EXPECT_EQ(groups().memory_limit()->file, at("cgroup/job/step/memory.high"));
  write("cgroup/memory.max", "300000000\n");  // of a container, whose own group is mounted as the root
  EXPECT_EQ(groups().memory_limit()->bytes, 300'000'000);
}

TEST_F(CgroupsImpl, OfVersion1TheMemoryControllersGroupCounts) {
  write("proc/self/cgroup", "5:cpu,cpuacct:/a\n4:hugetlb,memory:/b/c\n3:name=memory:/a\n0::/d\n");
  write("cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_FALSE(groups().memory_limit());
  write("cgroup/memory/a/memory.limit_in_bytes", "1000\n");
  write("cgroup/memory/b/memory.limit_in_bytes", "700000000\n");
  EXPECT_EQ(groups().memory_limit()->bytes, 700'000'000);
  write("cgroup/memory/b/c/memory.limit_in_bytes", "600000000\n");
  EXPECT_EQ(groups().memory_limit()->file, at("cgroup/memory/b/c/memory.limit_in_bytes"));
}

TEST_F(CgroupsImpl, WhatNobodyStatesLimitsNothing) {
  EXPECT_FALSE(groups().memory_limit());
  EXPECT_FALSE(groups().memory_kills());
  write("proc/self/cgroup", "0::/../beside\n");
  write("beside/memory.max", "1000\n");
  write("cgroup/memory.max", "300000000\n");
  EXPECT_EQ(groups().memory_limit()->bytes, 300'000'000) << "a path leads out of what is mounted";
  write("cgroup/memory.max", "a word\n");
  EXPECT_FALSE(groups().memory_limit());
  EXPECT_EQ(memory_of_host(groups()).limit, "");
}

/// Files that the system keeps in memory are given back, what programs have is not.
TEST_F(CgroupsImpl, TheHostHasNoMoreThanTheGroupLeaves) {
  write("proc/self/cgroup", "0::/job\n");
  write("cgroup/job/memory.max", "64000000\n");
  write("cgroup/job/memory.current", "50000000\n");
  write("cgroup/job/memory.stat", "anon 20000000\ninactive_file 18000000\nactive_file 12000000\n");
  EXPECT_EQ(memory_of_host(groups()).bytes, 64'000'000);
  EXPECT_EQ(memory_of_host(groups()).left, 44'000'000);
  EXPECT_EQ(memory_of_host(groups()).limit, at("cgroup/job/memory.max"));
  EXPECT_EQ(available_host_memory(groups()), 44'000'000);
  write("cgroup/memory.max", "90000000\n");
  write("cgroup/memory.current", "80000000\n");
  EXPECT_EQ(memory_of_host(groups()).bytes, 64'000'000);
  EXPECT_EQ(available_host_memory(groups()), 10'000'000) << "the group above is nearly full";
  write("proc/self/cgroup", "4:memory:/job\n");
  write("cgroup/memory/job/memory.limit_in_bytes", "64000000\n");
  write("cgroup/memory/job/memory.usage_in_bytes", "50000000\n");
  write("cgroup/memory/job/memory.stat",
        "inactive_file 1\ntotal_inactive_file 18000000\ntotal_active_file 12000000\n");
  EXPECT_EQ(available_host_memory(groups()), 44'000'000);
}

TEST_F(CgroupsImpl, KillsAreThoseOfTheGroupOrElseOfTheHost) {
  write("proc/self/cgroup", "0::/job\n");
  write("proc/vmstat", "pgfault 100\noom_kill 7\n");
  EXPECT_EQ(groups().memory_kills(), 7);
  write("cgroup/job/memory.events", "low 0\nhigh 0\nmax 12\noom 2\noom_kill 1\noom_group_kill 0\n");
  EXPECT_EQ(groups().memory_kills(), 1);
}

}  // namespace
}  // namespace assay::impl::cgroup_test
