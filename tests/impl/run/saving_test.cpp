// labels: unit fault
// A save that the disk does not take: what is told, when it is tried again, when it is given up.
#include "impl/run/saving.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include "impl/checkpoint/disk_space.hpp"
#include "impl/checkpoint/folder.hpp"
#include "spec/error.hpp"
#include "spec/model/inventory.hpp"
#include "tests/support/scratch.hpp"

namespace assay::impl::run::saving_test {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

class SavingImpl : public testing::Test {
 protected:
  SavingImpl() {
    model_.name = "tiny", model_.vocab = 11, model_.width = 8, model_.layers = 1, model_.heads = 2;
    model_.kv_heads = 1, model_.head_dim = 4, model_.ffn = 12, model_.context = 8;
    config_.directory = scratch_.path().string();
  }

  Saving saving(std::chrono::milliseconds patience) {
    return Saving(
        config_, *alone_, [this](const spec::record::Event& event) { said_.push_back(event); }, patience);
  }
  static checkpoint::State at_step(std::int64_t step) { return {.step = step, .tokens = 0, .config = {}}; }
  std::string warning(std::size_t index) const {
    return std::get<spec::record::Warning>(said_.at(index)).text;
  }
  /// A file where the folder of checkpoints belongs: nothing can be saved until it is gone.
  void block() {
    fs::rename(parent_, scratch_.path() / "aside");
    std::ofstream(parent_) << "in the way";
  }
  void unblock() {
    fs::remove(parent_);
    fs::rename(scratch_.path() / "aside", parent_);
  }

  tests::Scratch scratch_;
  const fs::path parent_ = scratch_.path() / "checkpoints";
  spec::ModelSpec model_;
  spec::RunConfig config_;
  std::unique_ptr<Communicator> alone_ = make_self_communicator();
  std::vector<spec::record::Event> said_;
};

TEST_F(SavingImpl, ASaveOnTheWayThatFailsIsAWarningAndTheNextOneSaves) {
  const ParameterBuffers buffers = allocate(model_, Dtype::f32, at::kCPU);
  Saving saving = this->saving(0ms);
  saving.on_the_way(buffers, at_step(1));
  block();
  saving.on_the_way(buffers, at_step(2));
  unblock();
  saving.on_the_way(buffers, at_step(3));
  ASSERT_EQ(said_.size(), 3u);
  EXPECT_NE(warning(1).find("step_00000002: cannot make the folder"), std::string::npos) << warning(1);
  EXPECT_NE(warning(1).find("it is a file; move it away"), std::string::npos) << warning(1);
  for (const char* of_full_disks : {"it needs", "are free", "free space"})
    EXPECT_EQ(warning(1).find(of_full_disks), std::string::npos) << warning(1);
  EXPECT_NE(warning(1).find("the next save tries again"), std::string::npos) << warning(1);
  EXPECT_EQ(warning(1).find('\n'), std::string::npos) << warning(1);
  ASSERT_EQ(checkpoint::committed_checkpoints(parent_).size(), 2u);
  EXPECT_EQ(checkpoint::committed_checkpoints(parent_)[1].step, 3);
}

TEST_F(SavingImpl, TheLastSaveIsTriedAgainUntilItSucceeds) {
  const ParameterBuffers buffers = allocate(model_, Dtype::f32, at::kCPU);
  Saving saving = this->saving(60s);
  saving.on_the_way(buffers, at_step(1));
  block();
  const StopSignal stop;
  std::jthread later([this] {
    std::this_thread::sleep_for(200ms);
    unblock();
  });
  saving.at_last(buffers, at_step(2), stop);
  ASSERT_EQ(said_.size(), 3u) << "told once, however often it is tried";
  EXPECT_NE(warning(1).find("tried again for 60.0 s"), std::string::npos) << warning(1);
  EXPECT_EQ(std::get<spec::record::Checkpoint>(said_[2]).step, 2);
}

TEST_F(SavingImpl, WhenItIsGivenUpTheCheckpointThatIsLeftIsNamed) {
  const ParameterBuffers buffers = allocate(model_, Dtype::f32, at::kCPU);
  Saving saving = this->saving(0ms);
  const StopSignal stop;
  const auto refusal = [&] {
    try {
      saving.at_last(buffers, at_step(7), stop);
    } catch (const UserError& error) {
      EXPECT_EQ(error.code(), ExitCode::io);
      return std::string(error.what());
    }
    return std::string("saved");
  };
  std::ofstream(parent_) << "in the way";
  EXPECT_NE(refusal().find("no earlier checkpoint is there"), std::string::npos) << refusal();
  fs::remove(parent_);
  saving.on_the_way(buffers, at_step(5));
  // Only the new one has no room: its unfinished folder cannot be made.
  std::ofstream(parent_ / ".step_00000007.partial") << "in the way";
  fs::permissions(parent_, fs::perms::owner_read | fs::perms::owner_exec);
  if (::access(parent_.c_str(), W_OK) == 0) {
    fs::permissions(parent_, fs::perms::owner_all);
    return;  // root writes anywhere: tests/cli/full_disk_test.cpp has this case
  }
  const std::string text = refusal();
  fs::permissions(parent_, fs::perms::owner_all);
  EXPECT_NE(text.find("step_00000005 is intact"), std::string::npos) << text;
  EXPECT_NE(text.find("`assay resume "), std::string::npos) << text;
}

TEST_F(SavingImpl, ASignalEndsTheWaiting) {
  const ParameterBuffers buffers = allocate(model_, Dtype::f32, at::kCPU);
  std::ofstream(parent_) << "in the way";
  Saving saving = this->saving(60s);
  const StopSignal stop;
  std::jthread later([] {
    std::this_thread::sleep_for(100ms);
    std::raise(SIGINT);
  });
  const auto start = std::chrono::steady_clock::now();
  EXPECT_THROW(saving.at_last(buffers, at_step(1), stop), UserError);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 30s);
}

TEST_F(SavingImpl, WhatCheckpointsTakeIsCountedBeforeTraining) {
  spec::RunConfig config;
  config.steps = 100, config.checkpoint_keep = 2;
  const std::int64_t one = checkpoint::size_on_disk(spec::inventory(model_), Dtype::f32);
  std::int64_t written = 0;  // by a real save: the tensors, and headers of a few thousand bytes
  saving(0ms).on_the_way(allocate(model_, Dtype::f32, at::kCPU), at_step(1));
  for (const auto& entry : fs::recursive_directory_iterator(parent_))
    if (entry.is_regular_file()) written += static_cast<std::int64_t>(entry.file_size());
  EXPECT_GE(written, one);
  EXPECT_LE(written, one + 16384);

  const auto most = [&](std::int64_t every, std::int64_t present, std::int64_t done) {
    config.checkpoint_every = every;
    return disk_need(config, model_, present, done).most / one;
  };
  EXPECT_EQ(most(0, 0, 0), 1);   // the last alone
  EXPECT_EQ(most(50, 0, 0), 2);  // at 50 and 100
  EXPECT_EQ(most(10, 0, 0), 3);  // two kept, and the one being written
  EXPECT_EQ(most(10, 2, 90), 1);
  EXPECT_EQ(most(10, 1, 50), 2);
  EXPECT_EQ(most(10, 5, 50), 1);  // more are there than will be kept
  EXPECT_EQ(checkpoint::size_on_disk(spec::inventory(model_), Dtype::f64), 2 * one);
  config.checkpoint_every = 0, config.dtype = Dtype::bf16;
  EXPECT_EQ(disk_need(config, model_, 0, 0).checkpoint, one) << "master weights and moments in fp32";
  config.states = Dtype::bf16;
  EXPECT_EQ(disk_need(config, model_, 0, 0).checkpoint, one / 2);
}

/// Nothing is held for saves that do not come, nor asked of the disk.
TEST_F(SavingImpl, ARunThatIsNeverSavedNeedsNoRoom) {
  spec::RunConfig config;
  EXPECT_TRUE(config.saves_on_the_way());
  config.checkpoint_minutes = 0;
  EXPECT_FALSE(config.saves_on_the_way());
  for (const auto& set : {+[](spec::RunConfig& c) { c.checkpoint_every = 5; },
                          +[](spec::RunConfig& c) { c.checkpoint_minutes = 1; },
                          +[](spec::RunConfig& c) { c.keep_best = true; }}) {
    spec::RunConfig saved = config;
    set(saved);
    EXPECT_TRUE(saved.saves_on_the_way());
  }
}

}  // namespace
}  // namespace assay::impl::run::saving_test
