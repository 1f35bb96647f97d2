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

/// The package, installed, then moved: it may not know where it was installed first.
class InstallCli : public testing::Test {
 protected:
  static impl::cli::Outcome step(const std::string& line) {
    auto outcome = shell(line, 300);
    EXPECT_EQ(outcome.code, 0) << line << "\n" << outcome.output << outcome.messages;
    return outcome;
  }
  void SetUp() override {
    step(cmake + " --install " + tests::binary_dir() + " --prefix " + folder + "/first");
    fs::rename(folder + "/first", prefix);
  }
  /// Configures the project of `source` in folder/`name`.
  std::string configure(const std::string& source, const std::string& name) const {
    const bool sanitized = cached("ASSAY_SANITIZE") == "ON";
    return cmake + " -S " + source + " -B " + folder + "/" + name +
           " -G Ninja -DCMAKE_MAKE_PROGRAM=" + cached("CMAKE_MAKE_PROGRAM") +
           " -DCMAKE_CXX_COMPILER=" + cached("CMAKE_CXX_COMPILER") + " -DCMAKE_PREFIX_PATH=" + prefix +
           (sanitized ? " -DCMAKE_CXX_FLAGS=-fsanitize=address,undefined" : "");
  }
  std::string build(const std::string& name) const { return cmake + " --build " + folder + "/" + name; }

  const tests::Scratch scratch;
  const std::string folder = scratch.path().string(), prefix = folder + "/prefix",
                    cmake = cached("CMAKE_COMMAND");
};

TEST_F(InstallCli, AConsumerFindsTheSpecPackageBuildsAndRuns) {
  step("cmp " + tests::source_dir() + "/LICENSE " + prefix + "/share/doc/assay/LICENSE");
  step(configure(tests::source_dir() + "/tests/cli/consumer", "build"));
  step(build("build"));
  const std::string version = step(prefix + "/bin/assay version").output;
  const std::string said = step(folder + "/build/consumer").output;
  EXPECT_EQ(said, step(tests::binary_dir() + "/bin/consumer").output) << "in the build tree";
  EXPECT_EQ(version.rfind(said.substr(0, said.find('\n')), 0), 0u) << version << said;
  EXPECT_EQ(said.substr(said.find('\n') + 1),
            "parameters 8030261248\n"
            "FLOPs per token 48249962496\n"
            "MFU 0.42671\n"
            "fits 80 GB: 1\n"
            "items are the peak: 1\n"
            "forward and backward on paper run the formula's FLOPs: 1\n");
  EXPECT_NE(step(folder + "/build/trainer_numbers").output.find("[  PASSED  ] 2 tests"), std::string::npos);
}

TEST_F(InstallCli, AnUnknownComponentIsRefusedByName) {
  fs::create_directory(folder + "/other");
  std::ofstream(folder + "/other/CMakeLists.txt")
      << "cmake_minimum_required(VERSION 3.25)\nproject(x LANGUAGES NONE)\n"
         "find_package(assay REQUIRED COMPONENTS speck)\n";
  const auto unknown = shell(configure(folder + "/other", "unknown"), 60);
  EXPECT_NE(unknown.code, 0);
  EXPECT_NE(unknown.messages.find("assay has no component 'speck'"), std::string::npos) << unknown.messages;
}

TEST_F(InstallCli, EveryPublicHeaderCompilesAloneAndBringsWhatItPromises) {
  const std::string project = tests::source_dir() + "/tests/cli/public_headers";
  std::ifstream file(tests::source_dir() + "/docs/library.md");
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  int headers = 0;
  for (const auto& header : fs::directory_iterator(tests::source_dir() + "/include/assay")) {
    ++headers;
    const std::string name = header.path().filename().string();
    EXPECT_NE(page.find("<assay/" + name + ">"), std::string::npos)
        << "docs/library.md does not list " << name;
  }
  EXPECT_NE(
      step(configure(project, "alone")).output.find("public headers: " + std::to_string(headers) + "\n"),
      std::string::npos);
  step(build("alone"));

  // The same project fails for a promise that is not kept, and for a header that needs another one before it.
  std::ofstream(prefix + "/include/assay/unkept.hpp")
      << "//   spec::no_such_name\n#include \"spec/count.hpp\"\n";
  std::ofstream(prefix + "/include/assay/not_alone.hpp") << "inline assay::Count none() { return {}; }\n";
  step(configure(project, "alone"));
  const auto broken = shell(build("alone") + " -- -k 0", 300);
  EXPECT_NE(broken.code, 0);
  for (const char* fault : {"no_such_name", "not_alone.hpp:1"})
    EXPECT_NE(broken.output.find(fault), std::string::npos) << fault << "\n" << broken.output;
}

}  // namespace
}  // namespace assay::install_test
