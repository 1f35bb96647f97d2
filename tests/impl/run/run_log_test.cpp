// labels: unit
// What a run keeps of its steps until its last event.
#include "impl/run/run_log.hpp"

#include <gtest/gtest.h>
#include <malloc.h>

#include <chrono>
#include <filesystem>
#include <future>
#include <iostream>
#include <sstream>

#include "impl/checkpoint/folder.hpp"
#include "impl/machine/output_folder.hpp"
#include "spec/record/read.hpp"
#include "spec/record/run.hpp"
#include "tests/impl/support/on_flush.hpp"
#include "tests/support/example_run.hpp"
#include "tests/support/scratch.hpp"

namespace assay::impl::run::run_log_test {
namespace {

using namespace spec::record;

Step step_of(std::int64_t number) {
  Step step = tests::example_step(number);
  step.loss = static_cast<double>(number);
  step.tokens = 10, step.seconds = 0.5;
  return step;
}

/// Bytes that are allocated, large blocks included.
std::size_t allocated() {
  const auto all = mallinfo2();
  return all.uordblks + all.hblkhd;
}

/// Every rank counts its steps, for as long as the run lasts.
TEST(RunLogImpl, MemoryDoesNotGrowWithTheSteps) {
  RunLog log;
  log.begin(tests::example_start(), "/nowhere");
  for (std::int64_t number = 1; number <= 100; ++number) log.step(step_of(number));
  const std::size_t before = allocated();
  for (std::int64_t number = 101; number <= 20'000; ++number) log.step(step_of(number));
  EXPECT_LT(allocated(), before + 20'000);
}

/// The final loss is the mean of the last ten steps, also where there were fewer.
TEST(RunLogImpl, TheEndSaysWhatAllStepsCameTo) {
  for (const std::int64_t steps : {1, 3, 10, 25}) {
    const tests::Scratch scratch;
    std::ostringstream printed;
    std::streambuf *const out = std::cout.rdbuf(printed.rdbuf()), *const err =
                                                                      std::cerr.rdbuf(printed.rdbuf());
    {
      RunLog log;
      log.begin(tests::example_start(), scratch.path().string());
      log.open(1000);
      log.say(log.start());
      for (std::int64_t number = 1; number <= steps; ++number) log.step(step_of(number));
      log.say(Warning{.step = {}, .code = "slow_rank", .text = "written down alone"}, /*aloud=*/false);
      log.end(EndReason::done, ExitCode::done, {});
    }
    std::cout.rdbuf(out), std::cerr.rdbuf(err);
    const spec::record::Run run = assemble(read_events((scratch.path() / "run.jsonl").string()));
    const std::int64_t last = std::min<std::int64_t>(steps, 10);
    ASSERT_TRUE(run.end);
    EXPECT_EQ(run.end->steps, steps);
    EXPECT_EQ(run.end->tokens, 10 * steps);
    EXPECT_EQ(run.end->seconds, 0.5 * static_cast<double>(steps));
    EXPECT_EQ(run.end->final_steps, last);
    EXPECT_EQ(run.end->final_loss, static_cast<double>(2 * steps - last + 1) / 2);
    ASSERT_EQ(run.warnings.size(), steps == 25 ? 2u : 1u) << "25 steps end above log V = 5.545";
    EXPECT_EQ(run.warnings.front().code, "slow_rank");
    EXPECT_EQ(run.warnings.back().code, steps == 25 ? "final_loss" : "slow_rank");
    EXPECT_EQ(run.end->gap_closed.has_value(), steps < 25) << "no negative share of the gap";
    EXPECT_EQ(printed.str().find("gap closed") != std::string::npos, steps < 25);
    double elapsed = 0;
    for (const Step& step : run.steps) {
      ASSERT_TRUE(step.elapsed_seconds);
      EXPECT_GE(*step.elapsed_seconds, elapsed);
      elapsed = *step.elapsed_seconds;
    }
    EXPECT_EQ(printed.str().find("written down alone"), std::string::npos);
  }
}

/// The trainer's thread may end a step, or fail, after the watch has found that a rank is lost.
TEST(RunLogImpl, NothingFollowsTheLossOfARankInTheRecord) {
  const tests::Scratch scratch;
  std::ostringstream printed;
  std::streambuf *const out = std::cout.rdbuf(printed.rdbuf()), *const err = std::cerr.rdbuf(printed.rdbuf());
  {
    RunLog log;
    log.begin(tests::example_start(), scratch.path().string());
    log.open(1000);
    log.say(log.start());
    log.step(step_of(1));
    log.record_lost_rank("rank 1 left");
    log.step(step_of(2));
    log.record_failure(UserError(ExitCode::peer_lost, "a collective has failed"));
  }
  std::cout.rdbuf(out), std::cerr.rdbuf(err);
  const std::vector<Event> events = read_events((scratch.path() / "run.jsonl").string());
  ASSERT_EQ(events.size(), 3u) << "start, step 1, end";
  ASSERT_TRUE(std::holds_alternative<RunEnd>(events.back()));
  EXPECT_EQ(std::get<RunEnd>(events.back()).message, "rank 1 left");
}

/// The watch's thread may warn of a slow rank at any moment.
TEST(RunLogImpl, NoLineIsWrittenWhileTheEndIsFlushed) {
  const tests::Scratch scratch;
  std::ostringstream printed;
  std::streambuf *const out = std::cout.rdbuf(printed.rdbuf()), *const err = std::cerr.rdbuf(printed.rdbuf());
  bool written = false;
  {
    RunLog log;
    log.begin(tests::example_start(), scratch.path().string());
    log.open(1000);
    log.say(log.start());
    std::future<void> watch;
    tests::on_flush() = [&](const std::filesystem::path&) {
      if (watch.valid()) return true;
      watch = std::async(std::launch::async, [&] {
        log.say(Warning{.step = {}, .code = "slow_rank", .text = "rank 1"}, /*aloud=*/false);
      });
      written = watch.wait_for(std::chrono::milliseconds(500)) == std::future_status::ready;
      return true;
    };
    log.end(EndReason::done, ExitCode::done, {});
    tests::on_flush() = nullptr;
    ASSERT_TRUE(watch.valid()) << "nothing was flushed";
    watch.get();
  }
  std::cout.rdbuf(out), std::cerr.rdbuf(err);
  EXPECT_FALSE(written);
}

/// A committed checkpoint that was saved behind a line of some record.
std::filesystem::path checkpoint_of_a_record(const std::filesystem::path& folder) {
  const auto path = folder / "checkpoints/step_00000002";
  std::filesystem::create_directories(path);
  checkpoint::Manifest manifest;
  manifest.step = 2, manifest.record = "0123456789abcdef";
  checkpoint::write_manifest(OutputFolder(path), manifest);
  return path;
}

/// A checkpoint says that there was one.
TEST(RunLogImpl, AMissingRecordIsSaidToBeMissing) {
  const tests::Scratch scratch;
  checkpoint_of_a_record(scratch.path());
  RunLog log;
  log.begin(tests::example_start(), scratch.path().string());
  log.open(1000);
  ASSERT_EQ(log.damage().size(), 1u);
  EXPECT_NE(log.damage()[0].find("run.jsonl: the record is missing"), std::string::npos) << log.damage()[0];
  EXPECT_NE(log.damage()[0].find("step_00000002"), std::string::npos) << log.damage()[0];
}

/// The record is whole: it is the checkpoint that belongs elsewhere.
TEST(RunLogImpl, ACheckpointOfAnotherRunHidesNoEarlierStart) {
  for (const bool linked : {false, true}) {
    const tests::Scratch scratch, other;
    std::ostringstream printed;
    std::streambuf *const out = std::cout.rdbuf(printed.rdbuf()), *const err =
                                                                      std::cerr.rdbuf(printed.rdbuf());
    std::vector<std::string> damage;
    for (int start = 1; start <= 2; ++start) {
      RunLog log;
      log.begin(tests::example_start(), scratch.path().string());
      log.open(1000);
      damage = log.damage();
      log.say(log.start());
      log.step(step_of(start));
      log.end(EndReason::done, ExitCode::done, {});
      if (start > 1) continue;
      std::filesystem::create_directory(scratch.path() / "checkpoints");
      if (linked)
        std::filesystem::create_directory_symlink(checkpoint_of_a_record(other.path()),
                                                  scratch.path() / "checkpoints/step_00000002");
      else
        checkpoint_of_a_record(scratch.path());
    }
    std::cout.rdbuf(out), std::cerr.rdbuf(err);
    EXPECT_EQ(damage.size(), linked ? 0u : 1u);
    const std::vector<Event> events = read_events((scratch.path() / "run.jsonl").string());
    const auto* end = std::get_if<RunEnd>(&events.back());
    ASSERT_TRUE(end && end->run_goodput) << linked;
    EXPECT_EQ(end->run_goodput->starts, 2);
  }
}

}  // namespace
}  // namespace assay::impl::run::run_log_test
