// labels: unit
// For which GPUs this build holds code: the setting of CMake, and what lies in the library by cuobjdump.
#include "impl/machine/architectures.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <vector>

#include "tests/support/paths.hpp"
#include "tests/support/scratch.hpp"

namespace assay::impl::run::architectures_test {
namespace {

namespace fs = std::filesystem;

/// cuobjdump of $ASSAY_CUOBJDUMP, PATH, a CUDA toolkit, or the one that PyTorch's compiler brings.
std::string cuobjdump() {
  std::vector<std::string> paths;
  if (const char* named = std::getenv("ASSAY_CUOBJDUMP")) paths.push_back(named);
  for (const char* toolkit : {"/usr/local/cuda", "/usr/local/cuda-13.0"})
    paths.push_back(std::string(toolkit) + "/bin/cuobjdump");
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(tests::source_dir() + "/.toolchain/lib", error))
    paths.push_back(entry.path().string() + "/site-packages/triton/backends/nvidia/bin/cuobjdump");
  for (const std::string& path : paths)
    if (fs::exists(path, error)) return path;
  return std::system("command -v cuobjdump > /dev/null 2>&1") == 0 ? "cuobjdump" : "";
}

std::string output_of(const std::string& command) {
  std::string out;
  FILE* pipe = popen(command.c_str(), "r");
  if (!pipe) return out;
  std::array<char, 4096> block;
  for (std::size_t got = 0; (got = fread(block.data(), 1, block.size(), pipe)) > 0;)
    out.append(block.data(), got);
  pclose(pipe);
  return out;
}

/// Machine code by architecture, as the note in each says how it was compiled. The names of the parts alone
/// do not distinguish sm_90 and sm_90a in every release of cuobjdump.
std::map<std::string, int> machine_code(const std::string& tool, const std::string& library) {
  const tests::Scratch scratch;
  output_of("cd " + scratch.path().string() + " && " + tool + " --extract-elf all " + library + " 2>&1");
  std::map<std::string, int> found;
  for (const auto& file : fs::directory_iterator(scratch.path())) {
    std::ifstream in(file.path(), std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(in)), {});
    const std::string before = "-arch ";
    const std::size_t at = bytes.find(before + "sm_");
    if (at == std::string::npos) continue;
    const std::size_t begin = at + before.size();
    ++found[bytes.substr(begin, bytes.find_first_of(std::string(" \0", 2), begin) - begin)];
  }
  return found;
}

int count_of(const std::string& text, const std::string& word) {
  int count = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

TEST(ArchitecturesImpl, CMakesListIsRead) {
  const auto list = read_architectures("80-real;90a-real;100a-real;100-virtual;75;native");
  ASSERT_EQ(list.size(), 5u);
  EXPECT_EQ(list[1], (Architecture{.capability = 90, .specific = true, .machine = true}));
  EXPECT_EQ(list[3], (Architecture{.capability = 100, .ptx = true}));
  EXPECT_EQ(list[4], (Architecture{.capability = 75, .machine = true, .ptx = true}));
  EXPECT_EQ(describe(list), "sm_80, sm_90a, sm_100a, PTX compute_100, sm_75, PTX compute_75");
}

TEST(ArchitecturesImpl, CodeRunsWhereItsKindAllows) {
  const auto runs = [](const char* list, int capability) {
    return runs_on(read_architectures(list), capability);
  };
  EXPECT_TRUE(runs("80-real", 80));
  EXPECT_TRUE(runs("80-real", 89));
  EXPECT_FALSE(runs("80-real", 90));
  EXPECT_FALSE(runs("90-real", 80));
  EXPECT_TRUE(runs("90a-real", 90));
  EXPECT_FALSE(runs("100a-real", 103));
  EXPECT_TRUE(runs("100-virtual", 103));
  EXPECT_TRUE(runs("100-virtual", 120));
  EXPECT_FALSE(runs("100-virtual", 90));
  // What this program is built for by default.
  for (const int capability : {80, 86, 89, 90, 100, 103, 120})
    EXPECT_TRUE(runs("80-real;90a-real;100", capability)) << capability;
}

TEST(ArchitecturesImpl, TheLibraryHoldsTheCodeThatCMakeWasAskedFor) {
  const std::string tool = cuobjdump(), library = tests::binary_dir() + "/lib/libassay_impl.so";
  if (tool.empty()) GTEST_SKIP() << "no cuobjdump here: it comes with a CUDA toolkit";
  if (!fs::exists(library)) GTEST_SKIP() << library << " is not there: this is a carried build";
  if (compiled_architectures().empty()) GTEST_SKIP() << "this build has no code for any GPU (ASSAY_CUDA=OFF)";
  const auto found = machine_code(tool, library);
  const std::string ptx = output_of(tool + " --list-ptx " + library + " 2>&1");
  ASSERT_FALSE(found.empty());
  // Each object with kernels holds code for every architecture, but for the grouped GEMMs, which CUTLASS has
  // for 90a alone, and only where its headers are (cmake/AssayImpl.cmake).
  const auto objects = std::min_element(found.begin(), found.end(), [](const auto& a, const auto& b) {
                         return a.second < b.second;
                       })->second;
  for (const Architecture& one : compiled_architectures()) {
    const std::string number = std::to_string(one.capability) + (one.specific ? "a" : "");
    if (one.machine) {
      ASSERT_TRUE(found.contains("sm_" + number)) << number;
      const int alone = found.at("sm_" + number) - objects;
      EXPECT_TRUE(alone == 0 || (alone == 1 && number == "90a")) << number << ": " << alone;
    }
    if (one.ptx) {
      EXPECT_EQ(count_of(ptx, ".sm_" + number + ".ptx"), objects) << ptx;
    }
  }
  // A launcher (ASSAY_KERNEL) whose .cu file is forgotten would be null.
  EXPECT_EQ(
      count_of(output_of("nm -DC --undefined-only " + library + " | grep -v grouped_linear"), " w assay::"),
      0);
  for (const int capability : {80, 90, 100})
    if (!runs_on(compiled_architectures(), capability))
      GTEST_SKIP() << "this build names fewer GPUs than the default: " << describe(compiled_architectures());
  // A100, H100 and H200, B200, what lies between, and whatever comes after it.
  for (const int capability : {80, 86, 89, 90, 100, 103, 120})
    EXPECT_TRUE(runs_on(compiled_architectures(), capability)) << describe(compiled_architectures());
}

}  // namespace
}  // namespace assay::impl::run::architectures_test
