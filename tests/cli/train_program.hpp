#pragma once
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "spec/record/read.hpp"
#include "spec/record/run.hpp"
#include "tests/cli/built_program.hpp"
#include "tests/support/scratch.hpp"

namespace assay::tests {

/// `assay train` in a folder of its own.
class TrainProgram : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(binary_dir() + "/bin/assay-train"))
      GTEST_SKIP() << "this build has no assay-train (it needs libtorch)";
  }

  /// Trains in scratch/NAME: three steps of small batches on one thread per rank.
  impl::cli::Outcome train(const std::string& name, const std::string& more) {
    return shell(command(name) + " " + more, 120);
  }
  std::string command(const std::string& name) const {
    return assay_path() + " train compute.device=cpu compute.threads=1 batch.sequences=4 train.steps=3 " +
           "sample.sentences=2 run.directory=" + folder(name);
  }
  std::string folder(const std::string& name) const { return (scratch.path() / name).string(); }
  /// A recipe of two sources, "web" three times as often as "code", of 20,000 and 9,000 ids below 120.
  std::string mixed_recipe() const {
    const auto write = [this](const std::string& name, int tokens, char stride) {
      std::string ids;
      for (int i = 0; i < tokens; ++i) ids += {static_cast<char>(i * stride % 120), '\0'};
      std::ofstream(folder(name), std::ios::binary) << ids;
    };
    write("web.bin", 20'000, 1);
    write("code.bin", 9'000, 7);
    std::ofstream(folder("mixed.toml"))
        << "[data]\ndtype = 'uint16'\n[[data.sources]]\npath = '" << folder("web.bin")
        << "'\nweight = 0.75\n[[data.sources]]\nname = 'code'\npath = '" << folder("code.bin")
        << "'\nweight = 0.25\n";
    return folder("mixed.toml");
  }
  spec::record::Run run_of(const std::string& name) const {
    return spec::record::assemble(spec::record::read_events(folder(name)));
  }

  Scratch scratch;
};

}  // namespace assay::tests
