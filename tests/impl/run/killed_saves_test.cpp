// labels: unit fault
// SIGKILL in the middle of saves that go on beside the steps, on 4 ranks whose layout changes from trial to
// trial: the last committed checkpoint is always there, whole. 300 trials of processes: ci/kills.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "impl/checkpoint/folder.hpp"
#include "impl/checkpoint/inspect.hpp"
#include "impl/run/saving.hpp"
#include "spec/random/philox.hpp"
#include "tests/impl/comm/thread_ranks.hpp"
#include "tests/impl/params/layout_parity.hpp"
#include "tests/impl/params/layout_state.hpp"
#include "tests/support/scratch.hpp"

namespace assay::impl::run::killed_saves_test {
namespace {

namespace fs = std::filesystem;
using spec::DataParallel;
using tests::RankState;
using tests::StateLayout;

const spec::ModelSpec model = tests::case_model({.seed = 11, .tensor = 4, .vocab = 23});
const StateLayout layouts[] = {{spec::layout_of(DataParallel::shard, 4)},
                               {spec::layout_of(DataParallel::replicate, 4)},
                               {spec::layout_of(DataParallel::shard, 2), 2},
                               {spec::layout_of(DataParallel::hybrid, 4, 2)},
                               {spec::Layout{}, 4},
                               {spec::layout_of(DataParallel::zero1, 4)},
                               {spec::layout_of(DataParallel::zero1, 2), 2}};

/// Saves one step after the other until it is killed; writes each committed one's number to the pipe.
[[noreturn]] void save_for_ever(const spec::RunConfig& config, const StateLayout& layout, std::int64_t first,
                                int committed) {
  at::set_num_threads(1);  // a forked child has no thread pool
  try {
    tests::on_thread_ranks(layout.ranks(), [&](Communicator& communicator) {
      RankState state(model, communicator, layout, Dtype::bf16);
      Saving saving(config, state.groups, [&](const spec::record::Event& event) {
        const auto* saved = std::get_if<spec::record::Checkpoint>(&event);
        if (!saved || write(committed, &saved->step, sizeof saved->step) != sizeof saved->step) _exit(1);
      });
      saving.take_memory(state.buffers);
      for (std::int64_t step = first;; ++step) {
        state.fill(static_cast<std::uint64_t>(step));
        saving.on_the_way(state.buffers, {.step = step, .tokens = step, .config = {}});
        while (saving.active()) saving.between_steps();
      }
    });
  } catch (...) {
  }
  _exit(2);
}

TEST(KilledSavesImpl, TheLastCommittedOneIsThereInAnyLayout) {
  const tests::Scratch scratch;
  spec::RunConfig config;
  config.directory = scratch.path().string(), config.checkpoint_keep = 1;
  const fs::path parent = scratch.path() / "checkpoints";
  // How many kills fall into a save depends on how fast the machine writes: trials go on until two did.
  int in_a_save = 0;
  std::int64_t last = 0;
  std::uint64_t trial = 0;
  for (; trial < 10 || (in_a_save < 2 && trial < 200); ++trial) {
    const StateLayout &saver = layouts[trial % std::size(layouts)],
                      &loader = layouts[(trial + 1) % std::size(layouts)];
    const spec::random::Stream draw(trial, spec::random::Site::test, 10);
    int committed[2];
    ASSERT_EQ(pipe(committed), 0);
    const pid_t child = fork();
    if (child == 0) save_for_ever(config, saver, last + 1, committed[1]);
    close(committed[1]);
    std::int64_t step = 0;
    ASSERT_EQ(read(committed[0], &step, sizeof step), static_cast<ssize_t>(sizeof step)) << trial;
    usleep(static_cast<useconds_t>(draw.below(0, 40000)));
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the child ended by itself: " << WEXITSTATUS(status);
    last = step;
    for (; read(committed[0], &step, sizeof step) == static_cast<ssize_t>(sizeof step);) last = step;
    close(committed[0]);
    for (const auto& entry : fs::directory_iterator(parent))
      in_a_save += entry.path().filename().string().ends_with(".partial");

    const auto newest = checkpoint::newest(config.directory);
    ASSERT_TRUE(newest) << trial;
    EXPECT_EQ(checkpoint::verify_checkpoint(*newest).size(), 1u);
    const std::int64_t there = checkpoint::step_of(*newest);
    EXPECT_GE(there, last) << trial;
    tests::on_thread_ranks(loader.ranks(), [&](Communicator& communicator) {
      RankState state(model, communicator, loader, Dtype::bf16);
      checkpoint::load(*newest, state.buffers, state.groups);
      EXPECT_EQ(state.first_other(static_cast<std::uint64_t>(there)), "") << saver.name() << loader.name();
    });
    last = there;
  }
  EXPECT_GE(in_a_save, 2) << "too few of " << trial << " kills fell into a save to test anything";
}

}  // namespace
}  // namespace assay::impl::run::killed_saves_test
