// labels: unit property fault
#include "impl/data/loader.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "impl/data/grammar_data.hpp"
#include "spec/error.hpp"
#include "tests/impl/data/token_bytes.hpp"

namespace assay::impl::data::loader_test {
namespace {

using namespace std::chrono_literals;

// Sample i is the tokens i, i + 1, ..; counts its reads, may take its time, may fail at one sample.
class Probe final : public SampleSource {
 public:
  explicit Probe(std::int64_t samples) : samples_(samples) {}
  std::int64_t samples() const override { return samples_; }
  std::int64_t sequence_length() const override { return 2; }
  void read(std::int64_t sample, std::span<std::int32_t> ids) const override {
    check_request(sample, ids);
    if (sample == failing)
      throw UserError(ExitCode::bad_data, "sample " + std::to_string(sample) + " is broken");
    std::this_thread::sleep_for(delay);
    for (std::size_t t = 0; t < ids.size(); ++t)
      ids[t] = static_cast<std::int32_t>(sample) + static_cast<std::int32_t>(t);
    ++reads;
  }
  std::string description() const override { return "probe"; }

  mutable std::atomic<std::int64_t> reads = 0;
  std::int64_t failing = -1;
  std::chrono::milliseconds delay = 0ms;

 private:
  std::int64_t samples_;
};

LoaderPlan plan(std::int64_t sequences, spec::data::BatchSplit split = {1, 1}) {
  LoaderPlan plan;
  plan.seed = 5;
  plan.sequences = sequences;
  plan.split = split;
  return plan;
}

bool same(const StepBatches& a, const StepBatches& b) {
  if (a.step != b.step || a.sample_hash != b.sample_hash || a.micro_batches.size() != b.micro_batches.size())
    return false;
  for (std::size_t m = 0; m < a.micro_batches.size(); ++m)
    if (a.micro_batches[m].sample_ids != b.micro_batches[m].sample_ids ||
        a.micro_batches[m].inputs != b.micro_batches[m].inputs ||
        a.micro_batches[m].targets != b.micro_batches[m].targets ||
        a.micro_batches[m].documents != b.micro_batches[m].documents)
      return false;
  return true;
}

RC_GTEST_PROP(LoaderImpl, GivesTheSamplesOfTheOrderToEachRankInStepOrder, (std::uint64_t seed)) {
  const spec::data::BatchSplit split{*rc::gen::inRange<std::int64_t>(1, 4),
                                     *rc::gen::inRange<std::int64_t>(1, 5)};
  const auto accumulation = *rc::gen::inRange<std::int64_t>(1, 4);
  const auto source = std::make_shared<Probe>(*rc::gen::inRange<std::int64_t>(1, 50));
  LoaderPlan plan;
  plan.seed = seed;
  plan.sequences = accumulation * split.micro * split.ranks;
  plan.split = split;
  plan.start_step = *rc::gen::inRange<std::int64_t>(0, 1000);
  plan.prefetch = *rc::gen::inRange<std::int64_t>(0, 4);
  const spec::data::SampleOrder order{seed, source->samples(), plan.sequences};
  for (plan.rank = 0; plan.rank < split.ranks; ++plan.rank) {
    Loader loader(source, plan);
    for (std::int64_t step = plan.start_step; step < plan.start_step + 3; ++step) {
      const StepBatches got = loader.next();
      RC_ASSERT(got.step == step);
      RC_ASSERT(got.sample_hash == spec::data::sample_hash(spec::data::step_samples(order, step)));
      RC_ASSERT(static_cast<std::int64_t>(got.micro_batches.size()) == accumulation);
      for (std::int64_t m = 0; m < accumulation; ++m) {
        const MicroBatch& batch = got.micro_batches[static_cast<std::size_t>(m)];
        const auto samples = spec::data::micro_batch_samples(order, split, step, plan.rank, m);
        RC_ASSERT(batch.sample_ids == samples);
        for (std::size_t b = 0; b < samples.size(); ++b) RC_ASSERT(batch.inputs[2 * b] == samples[b]);
      }
    }
  }
}

RC_GTEST_PROP(LoaderImpl, StartStepIsAllThatAResumeNeeds, (std::uint64_t seed)) {
  const auto source = std::make_shared<GrammarData>(seed, 16, 37);
  LoaderPlan whole = plan(6, {2, 1});
  whole.seed = seed;
  whole.end_of_document = '\n';
  LoaderPlan rest = whole;
  rest.start_step = *rc::gen::inRange<std::int64_t>(0, 10);
  rest.prefetch = 5;
  Loader first(source, whole), resumed(source, rest);
  for (std::int64_t step = 0; step < rest.start_step; ++step) first.next();
  for (int i = 0; i < 3; ++i) RC_ASSERT(same(first.next(), resumed.next()));
}

TEST(LoaderImpl, AnErrorArrivesInsteadOfItsStepAndStays) {
  const auto source = std::make_shared<Probe>(40);
  source->failing =
      spec::data::sample({5, 40, 4}, 6, 2);  // the order's epoch of 10 steps reads each sample once
  Loader loader(source, plan(4));
  for (std::int64_t step = 0; step < 6; ++step) EXPECT_EQ(loader.next().step, step);
  for (int again = 0; again < 3; ++again) {
    const auto refused = tests::user_refusal([&] { loader.next(); });
    EXPECT_EQ(refused.code, 65);
    EXPECT_TRUE(refused.says("is broken"));
  }
}

TEST(LoaderImpl, AnErrorThatNobodyAsksForIsDropped) {
  const auto source = std::make_shared<Probe>(40);
  source->failing = spec::data::sample({5, 40, 4}, 1, 0);
  Loader loader(source, plan(4));
  EXPECT_EQ(loader.next().step, 0);
  std::this_thread::sleep_for(
      20ms);  // the thread has met the broken sample by now, or meets it while it is stopped
}

TEST(LoaderImpl, TellsOfEachStepBeforeItGivesIt) {
  for (std::int64_t prefetch : {0, 2}) {
    LoaderPlan some = plan(3);
    some.prefetch = prefetch;
    std::vector<std::uint64_t> hashes;  // read by this thread only after next() gave that step
    hashes.reserve(100);
    Loader loader(std::make_shared<Probe>(1000), some,
                  [&](const StepBatches& batches) { hashes.push_back(batches.sample_hash); });
    for (std::size_t step = 0; step < 6; ++step) {
      const StepBatches given = loader.next();
      EXPECT_EQ(hashes.data()[step], given.sample_hash);
    }
  }
}

TEST(LoaderImpl, AnErrorOfTheListenerIsAnErrorOfItsStep) {
  Loader loader(std::make_shared<Probe>(1000), plan(3), [](const StepBatches& batches) {
    if (batches.step == 2) throw UserError(ExitCode::bad_data, "no room for step 2");
  });
  for (std::int64_t step = 0; step < 2; ++step) EXPECT_EQ(loader.next().step, step);
  EXPECT_TRUE(tests::user_refusal([&] { loader.next(); }).says("no room for step 2"));
}

TEST(LoaderImpl, ReadsNoFurtherAheadThanItMay) {
  for (std::int64_t prefetch : {0, 1, 2, 5}) {
    const auto source = std::make_shared<Probe>(1000);
    LoaderPlan limited = plan(3);
    limited.prefetch = prefetch;
    Loader loader(source, limited);
    for (std::int64_t taken = 0; taken <= 3; ++taken) {
      for (int wait = 0; wait < 2000 && source->reads < 3 * (taken + prefetch); ++wait)
        std::this_thread::sleep_for(1ms);
      std::this_thread::sleep_for(5ms);  // time to overstep
      EXPECT_EQ(source->reads, 3 * (taken + prefetch)) << prefetch;
      EXPECT_EQ(loader.next().step, taken);
    }
  }
}

TEST(LoaderImpl, WaitIsTheTimeThatTheTrainerStoodStill) {
  const auto source = std::make_shared<Probe>(1000);
  source->delay = 20ms;
  LoaderPlan on_demand = plan(2);
  on_demand.prefetch = 0;  // nothing is read before next() asks, so it waits for both reads
  Loader loader(source, on_demand);
  const auto begin = std::chrono::steady_clock::now();
  const double waited = loader.next().wait_seconds;
  EXPECT_GE(waited, 0.04);
  EXPECT_LE(waited, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
}

TEST(LoaderImpl, AStepReadAheadCostsNoWait) {
  double least =
      1;  // of several, since a busy machine may put this thread aside for longer than a read takes
  for (int trial = 0; trial < 5; ++trial) {
    const auto source = std::make_shared<Probe>(1000);
    source->delay = 20ms;
    Loader loader(source, plan(2));
    while (source->reads < 4) std::this_thread::sleep_for(1ms);
    std::this_thread::sleep_for(5ms);
    least = std::min(least, loader.next().wait_seconds);
  }
  EXPECT_LT(least, 0.02);
}

TEST(LoaderImpl, StopsAtAnyMomentWithoutReadingOn) {
  for (int after = 0; after < 30; ++after) {
    const auto source = std::make_shared<Probe>(100000);
    source->delay = 1ms;
    const auto begin = std::chrono::steady_clock::now();
    {
      LoaderPlan large = plan(10000, {1, 1});  // a step takes 10 s and more: it must be given up
      Loader loader(source, large);
      std::this_thread::sleep_for(std::chrono::microseconds(100 * after));
    }
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 3s);
  }
  const auto idle = std::make_shared<Probe>(10);
  Loader full(idle, plan(1));  // stopped while its thread waits for room
  full.next();
}

TEST(LoaderImpl, RefusesAPlanThatDoesNotFitBeforeItStarts) {
  const auto source = std::make_shared<Probe>(10);
  EXPECT_THROW(Loader(source, plan(5, {2, 1})), SpecError);
  EXPECT_THROW(Loader(source, plan(0)), SpecError);
  LoaderPlan beyond = plan(4, {2, 2});
  beyond.rank = 2;
  EXPECT_THROW(Loader(source, beyond), SpecError);
  LoaderPlan none = plan(4);
  none.prefetch = -1;
  EXPECT_EQ(tests::user_refusal([&] { Loader(source, none); }).code, 2);
  none.prefetch = 2;
  none.start_step = -1;
  EXPECT_THROW(Loader(source, none), SpecError);
}

}  // namespace
}  // namespace assay::impl::data::loader_test
