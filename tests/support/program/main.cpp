// The test program of every layer. `--file=tests/reference/ops/rms_norm_test.cpp` runs the tests of one
// source file. Exit codes: 0 all passed, 1 a failure or nothing was selected, 125 every selected test was
// skipped (CTest "Skipped").
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>

#include "tests/support/program/main.hpp"
#include "tests/support/program/resource_groups.hpp"

namespace assay::tests {

namespace {
bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

/// GoogleTest filter that selects the tests defined in `file`.
std::string filter_of(const std::string& file) {
  std::string filter;
  const auto& all = *testing::UnitTest::GetInstance();
  for (int s = 0; s < all.total_test_suite_count(); ++s) {
    const auto& suite = *all.GetTestSuite(s);
    for (int t = 0; t < suite.total_test_count(); ++t) {
      const auto& test = *suite.GetTestInfo(t);
      if (ends_with(test.file(), file)) filter += std::string(suite.name()) + "." + test.name() + ":";
    }
  }
  return filter;
}
}  // namespace

int run(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  // Before anything asks for a GPU: this test sees its own alone, and so do the programs that it starts.
  const std::string gpus = visible_gpus([](const std::string& name) { return std::getenv(name.c_str()); });
  if (!gpus.empty()) setenv("CUDA_VISIBLE_DEVICES", gpus.c_str(), /*overwrite=*/1);
  std::string file;
  for (int i = 1; i < argc; ++i) {
    if (std::strncmp(argv[i], "--file=", 7) == 0) file = argv[i] + 7;
  }
  if (!file.empty()) {
    const std::string filter = filter_of(file);
    if (filter.empty()) {
      std::cerr << "no test of this program is defined in " << file << "\n";
      return 1;
    }
    testing::GTEST_FLAG(filter) = filter;
  }
  const int failed = RUN_ALL_TESTS();
  const auto& all = *testing::UnitTest::GetInstance();
  if (failed) return 1;
  if (all.test_to_run_count() == 0) {
    std::cerr << "the filter selects no test\n";
    return 1;
  }
  return all.skipped_test_count() == all.test_to_run_count() ? 125 : 0;
}

}  // namespace assay::tests
