// labels: unit
#include "tests/support/program/resource_groups.hpp"

#include <gtest/gtest.h>

#include <map>
#include <stdexcept>

namespace assay::tests::resource_groups_test {
namespace {

Environment environment(const std::map<std::string, std::string>& values) {
  return [values](const std::string& name) -> const char* {
    static std::string kept;
    const auto found = values.find(name);
    if (found == values.end()) return nullptr;
    kept = found->second;
    return kept.c_str();
  };
}

TEST(ResourceGroups, NoneWithoutAFileOfResources) { EXPECT_EQ(visible_gpus(environment({})), ""); }

TEST(ResourceGroups, TheGpusOfAllGroupsInOrder) {
  EXPECT_EQ(visible_gpus(environment({{"CTEST_RESOURCE_GROUP_COUNT", "2"},
                                      {"CTEST_RESOURCE_GROUP_0", "gpus"},
                                      {"CTEST_RESOURCE_GROUP_0_GPUS", "id:3,slots:1"},
                                      {"CTEST_RESOURCE_GROUP_1_GPUS", "id:1,slots:1"}})),
            "3,1");
  EXPECT_EQ(visible_gpus(environment({{"CTEST_RESOURCE_GROUP_COUNT", "1"},
                                      {"CTEST_RESOURCE_GROUP_0_GPUS", "id:0,slots:1;id:2,slots:1"}})),
            "0,2");
  EXPECT_EQ(visible_gpus(environment({{"CTEST_RESOURCE_GROUP_COUNT", "1"}})), "");
}

TEST(ResourceGroups, WhatIsNoAllocationIsAnError) {
  for (const char* text : {"0", "id:,slots:1", "id:0", "slots:1,id:0"})
    EXPECT_THROW(visible_gpus(environment(
                     {{"CTEST_RESOURCE_GROUP_COUNT", "1"}, {"CTEST_RESOURCE_GROUP_0_GPUS", text}})),
                 std::invalid_argument)
        << text;
}

}  // namespace
}  // namespace assay::tests::resource_groups_test
