// labels: cli
// `cmake --install`, then a project of its own that finds the package, builds and runs.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/cli/built_program.hpp"
#include "tests/support/scratch.hpp"

namespace assay::install_test {
namespace {

namespace fs = std::filesystem;
using tests::shell;

/// A value of the build's CMakeCache.txt.
std::string cached(const std::string& name) {
  std::ifstream cache(tests::binary_dir() + "/CMakeCache.txt");
  for (std::string line; std::getline(cache, line);)
    if (line.rfind(name + ":", 0) == 0) return line.substr(line.find('=') + 1);
  return "";
}

TEST(InstallCli, AConsumerFindsTheSpecPackageBuildsAndRuns) {
  const tests::Scratch scratch;
  const std::string folder = scratch.path().string(), cmake = cached("CMAKE_COMMAND");
  const auto step = [&](const std::string& line) {
    auto outcome = shell(line, 300);
    EXPECT_EQ(outcome.code, 0) << line << "\n" << outcome.output << outcome.messages;
    return outcome;
  };
  // A moved prefix must work too: the package may not know where it was installed first.
  step(cmake + " --install " + tests::binary_dir() + " --prefix " + folder + "/first");
  fs::rename(folder + "/first", folder + "/prefix");
  step("cmp " + tests::source_dir() + "/LICENSE " + folder + "/prefix/share/doc/assay/LICENSE");
  const bool sanitized = cached("ASSAY_SANITIZE") == "ON";
  step(cmake + " -S " + tests::source_dir() + "/tests/cli/consumer -B " + folder + "/build -G Ninja" +
       " -DCMAKE_MAKE_PROGRAM=" + cached("CMAKE_MAKE_PROGRAM") +
       " -DCMAKE_CXX_COMPILER=" + cached("CMAKE_CXX_COMPILER") + " -DCMAKE_PREFIX_PATH=" + folder +
       "/prefix" + (sanitized ? " -DCMAKE_CXX_FLAGS=-fsanitize=address,undefined" : ""));
  step(cmake + " --build " + folder + "/build");
  EXPECT_EQ(step(folder + "/build/consumer").output, "8030261248\n");
  EXPECT_NE(step(folder + "/build/trainer_numbers").output.find("[  PASSED  ] 2 tests"), std::string::npos);
  EXPECT_EQ(step(folder + "/prefix/bin/assay version").output.rfind("assay ", 0), 0u);
  const auto unknown = shell(
      "cd " + folder +
          " && mkdir other && printf 'cmake_minimum_required(VERSION 3.25)\\n"
          "project(x LANGUAGES NONE)\\nfind_package(assay REQUIRED COMPONENTS speck)\\n' > "
          "other/CMakeLists.txt && " +
          cmake + " -S other -B other/build -G Ninja -DCMAKE_MAKE_PROGRAM=" + cached("CMAKE_MAKE_PROGRAM") +
          " -DCMAKE_PREFIX_PATH=" + folder + "/prefix",
      60);
  EXPECT_NE(unknown.code, 0);
  EXPECT_NE(unknown.messages.find("assay has no component 'speck'"), std::string::npos) << unknown.messages;
}

}  // namespace
}  // namespace assay::install_test
