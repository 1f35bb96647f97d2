// labels: unit fault
// Saves that go on beside the steps: what they hold, what steps wait for, what becomes of those that fail.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <limits>
#include <mutex>

#include "impl/checkpoint/folder.hpp"
#include "impl/machine/disk_call.hpp"
#include "impl/run/saving.hpp"
#include "spec/error.hpp"
#include "tests/impl/comm/thread_ranks.hpp"
#include "tests/impl/params/layout_parity.hpp"
#include "tests/impl/params/layout_state.hpp"
#include "tests/support/scratch.hpp"

namespace assay::impl::run::saving_beside_test {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using spec::record::Checkpoint;
using spec::record::Warning;
using tests::RankState;
using tests::StateLayout;

/// No file may grow beyond 2,048 bytes while one lives: a full disk without needing one.
class FullDisk {
 public:
  FullDisk() {
    std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{2048, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FullDisk() { setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_{};
};

const spec::ModelSpec model = tests::case_model({.seed = 11, .tensor = 2, .vocab = 23});
const StateLayout alone{}, shards{spec::layout_of(spec::DataParallel::shard, 2), 2, 1};

class SavingBesideImpl : public testing::Test {
 protected:
  SavingBesideImpl() { config_.directory = scratch_.path().string(); }

  /// Runs on each rank of a layout with a state of its own.
  void on_ranks(const StateLayout& layout, const std::function<void(Saving&, RankState&)>& rank) {
    tests::on_thread_ranks(layout.ranks(), [&](Communicator& communicator) {
      RankState state(model, communicator, layout, Dtype::bf16);
      Saving saving(
          config_, state.groups,
          [&](const spec::record::Event& event) {
            EXPECT_EQ(communicator.rank(), 0);
            said_.push_back(event);
          },
          0ms);
      saving.take_memory(state.buffers);
      rank(saving, state);
    });
  }
  static checkpoint::State at_step(std::int64_t step) { return {.step = step, .tokens = 0, .config = {}}; }
  static void settle(Saving& saving) {
    while (saving.active()) {
      EXPECT_FALSE(saving.between_steps());
      std::this_thread::sleep_for(1ms);
    }
  }
  std::vector<std::int64_t> steps_there() const {
    std::vector<std::int64_t> steps;
    for (const auto& each : checkpoint::committed_checkpoints(scratch_.path() / "checkpoints"))
      steps.push_back(each.step);
    return steps;
  }
  std::string path_of(std::int64_t step) const {
    return (scratch_.path() / "checkpoints" / checkpoint::folder_name(step)).string();
  }

  tests::Scratch scratch_;
  spec::RunConfig config_;
  std::vector<spec::record::Event> said_;
};

TEST_F(SavingBesideImpl, HoldsTheStateOfItsStepWhateverStepsDoMeanwhile) {
  for (const StateLayout& layout : {alone, shards}) {
    on_ranks(layout, [&](Saving& saving, RankState& state) {
      for (std::int64_t step = 1; step <= 3; ++step) {
        state.fill(static_cast<std::uint64_t>(step));
        saving.on_the_way(state.buffers, at_step(step));
        state.fill(99);  // the next step's update
      }
      settle(saving);
    });
    EXPECT_EQ(steps_there(), (std::vector<std::int64_t>{2, 3})) << "checkpoint.keep = 2";
    ASSERT_EQ(said_.size(), 3u);
    on_ranks(layout, [&](Saving&, RankState& state) {
      for (const std::int64_t step : {2, 3}) {
        checkpoint::load(path_of(step), state.buffers, state.groups);
        EXPECT_EQ(state.first_other(static_cast<std::uint64_t>(step)), "") << layout.name();
      }
    });
    std::int64_t expected = 0;
    for (const spec::record::Event& event : said_) {
      const auto& saved = std::get<Checkpoint>(event);
      EXPECT_EQ(saved.step, ++expected);
      EXPECT_EQ(saved.asynchronous, true);
      EXPECT_GT(saved.copy_seconds.value(), 0);
      EXPECT_GT(saved.write_seconds.value(), 0);
      EXPECT_GE(saved.delay_seconds.value(), saved.copy_seconds.value() / 2);
      EXPECT_GE(saved.seconds, saved.write_seconds.value());
      const std::int64_t tensors = 3 * 4 * spec::inventory(model).parameter_count().to_int64();
      EXPECT_GE(saved.host_bytes.value(), tensors);
      EXPECT_LE(saved.host_bytes.value(), 2 * tensors + 65536) << "each rank copies what it writes alone";
    }
    said_.clear();
    fs::remove_all(scratch_.path() / "checkpoints");
  }
}

TEST_F(SavingBesideImpl, OneGoesOnAtATime) {
  on_ranks(shards, [&](Saving& saving, RankState& state) {
    state.fill(1);
    saving.on_the_way(state.buffers, at_step(1));
    EXPECT_TRUE(saving.active());
    saving.on_the_way(state.buffers, at_step(2));
    if (state.groups.all().rank() == 0) {
      EXPECT_EQ(steps_there(), (std::vector<std::int64_t>{1}));
      ASSERT_EQ(said_.size(), 1u) << "the first has ended before the second begins";
      EXPECT_EQ(std::get<Checkpoint>(said_[0]).step, 1);
    }
    settle(saving);
  });
  EXPECT_EQ(steps_there(), (std::vector<std::int64_t>{1, 2}));
}

TEST_F(SavingBesideImpl, TheLastSaveWaitsForTheOneBeside) {
  on_ranks(shards, [&](Saving& saving, RankState& state) {
    state.fill(1);
    saving.on_the_way(state.buffers, at_step(1));
    const StopSignal stop;
    state.fill(2);
    saving.at_last(state.buffers, at_step(2), stop);
    EXPECT_FALSE(saving.active());
  });
  EXPECT_EQ(steps_there(), (std::vector<std::int64_t>{1, 2}));
  ASSERT_EQ(said_.size(), 2u);
  EXPECT_EQ(std::get<Checkpoint>(said_[0]).asynchronous, true);
  EXPECT_EQ(std::get<Checkpoint>(said_[1]).asynchronous, false) << "steps no longer go on";
}

TEST_F(SavingBesideImpl, OneThatFailsIsToldAfterTheNextStepAndMadeUpFor) {
  on_ranks(shards, [&](Saving& saving, RankState& state) {
    Communicator& all = state.groups.all();
    state.fill(1);
    saving.on_the_way(state.buffers, at_step(1));
    settle(saving);
    // Steps after which a failed save is made up for: one, two, four.
    std::optional<FullDisk> full;
    all.barrier();
    if (all.rank() == 0) full.emplace();
    all.barrier();
    std::int64_t step = 2;
    saving.on_the_way(state.buffers, at_step(step));
    for (const std::int64_t expected : {1, 2, 4}) {
      std::int64_t steps = 0;
      bool failed = false;
      while (true) {
        const std::size_t said = said_.size();
        all.barrier();
        ++step;
        const bool due = saving.between_steps();
        all.barrier();
        failed = failed || said_.size() > said;
        steps += failed;
        all.barrier();
        if (due) break;
        std::this_thread::sleep_for(1ms);
      }
      EXPECT_EQ(steps, expected);
      if (expected == 4) break;
      saving.on_the_way(state.buffers, at_step(step));
    }
    all.barrier();
    full.reset();
    all.barrier();
    state.fill(7);
    saving.on_the_way(state.buffers, at_step(step));
    settle(saving);
    if (all.rank() == 0) {
      EXPECT_EQ(steps_there(), (std::vector<std::int64_t>{1, step}));
    }
    checkpoint::load(path_of(step), state.buffers, state.groups);
    EXPECT_EQ(state.first_other(7), "");
  });
  ASSERT_EQ(said_.size(), 5u);
  for (std::size_t i = 1; i < 4; ++i) {
    const auto& warning = std::get<Warning>(said_[i]);
    EXPECT_EQ(warning.code, "not_saved");
    EXPECT_NE(warning.text.find("File too large"), std::string::npos) << warning.text;
    EXPECT_NE(warning.text.find("the next save tries again"), std::string::npos) << warning.text;
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(scratch_.path() / "checkpoints"), {}), 2)
      << "something unfinished was left";
}

TEST_F(SavingBesideImpl, NeverSavesAValueThatIsNotFinite) {
  try {
    on_ranks(shards, [&](Saving& saving, RankState& state) {
      state.fill(1);
      saving.on_the_way(state.buffers, at_step(1));
      settle(saving);
      if (state.groups.all().rank() == 2) state.buffers.moment2.fill_(std::numeric_limits<float>::infinity());
      saving.on_the_way(state.buffers, at_step(2));
      settle(saving);
    });
    FAIL() << "saved";
  } catch (const UserError& error) {
    EXPECT_EQ(error.code(), ExitCode::non_finite);
    EXPECT_NE(std::string(error.what()).find("checkpoint_c5"), std::string::npos) << error.what();
  }
  EXPECT_EQ(steps_there(), (std::vector<std::int64_t>{1}));
}

TEST_F(SavingBesideImpl, StepsWaitWhereAHostLacksTheMemory) {
  tests::on_thread_ranks(2, [&](Communicator& communicator) {
    RankState state(model, communicator, {spec::layout_of(spec::DataParallel::shard, 2)}, Dtype::f32);
    Saving saving(config_, state.groups, [&](const spec::record::Event& event) { said_.push_back(event); });
    saving.take_memory(state.buffers, communicator.rank() == 1 ? 1000 : std::int64_t{1} << 40);
    state.fill(1);
    saving.on_the_way(state.buffers, at_step(1));
    EXPECT_FALSE(saving.active()) << "one host's lack is all ranks'";
  });
  ASSERT_EQ(said_.size(), 2u);
  EXPECT_EQ(std::get<Warning>(said_[0]).code, "checkpoint_memory");
  EXPECT_EQ(std::get<Checkpoint>(said_[1]).asynchronous, false);
  EXPECT_EQ(steps_there(), (std::vector<std::int64_t>{1}));
}

TEST_F(SavingBesideImpl, WhatIsWrittenBesideIsNoCallThatTrainingWaitsFor) {
  on_ranks(alone, [&](Saving& saving, RankState& state) {
    state.fill(1);
    saving.on_the_way(state.buffers, at_step(1));
    const std::uint64_t ended = DiskCall::ended();
    std::this_thread::sleep_for(50ms);  // it writes, and ends
    EXPECT_FALSE(DiskCall::under_way());
    EXPECT_EQ(DiskCall::ended(), ended) << "a rank that hangs would seem to go on";
    settle(saving);
  });
}

/// Of a state whose copy takes a while: steps wait little longer than for the copy.
TEST_F(SavingBesideImpl, StepsWaitForLittleMoreThanTheCopy) {
  spec::ModelSpec large = model;
  large.width = 512, large.ffn = 2048, large.layers = 4;
  double least = 1e9;
  tests::on_thread_ranks(1, [&](Communicator& communicator) {
    RankState state(large, communicator, alone, Dtype::f32);
    Saving saving(config_, state.groups, [&](const spec::record::Event& event) {
      const auto& saved = std::get<Checkpoint>(event);
      least = std::min(least, saved.delay_seconds.value() / saved.copy_seconds.value());
    });
    saving.take_memory(state.buffers);
    for (std::int64_t step = 1; step <= 6; ++step) {
      saving.on_the_way(state.buffers, at_step(step));
      while (saving.active()) {
        std::this_thread::sleep_for(20ms);  // a step
        saving.between_steps();
      }
    }
  });
  EXPECT_LE(least, 1.5);
}

}  // namespace
}  // namespace assay::impl::run::saving_beside_test
