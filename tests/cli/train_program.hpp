#pragma once
#include <gtest/gtest.h>

#include <filesystem>
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
  spec::record::Run run_of(const std::string& name) const {
    return spec::record::assemble(spec::record::read_events(folder(name)));
  }

  Scratch scratch;
};

}  // namespace assay::tests
