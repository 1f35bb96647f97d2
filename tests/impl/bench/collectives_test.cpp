// labels: unit property
// What `assay bench ceilings --ranks` measures: sizes, calls, and rows that every rank agrees on. Ranks are
// threads here; tests/cli/bench/bench_collectives_test.cpp has processes.
#include "impl/bench/collectives.hpp"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <mutex>
#include <set>

#include "impl/bench/overlap.hpp"
#include "impl/bench/rank_times.hpp"
#include "tests/impl/comm/thread_ranks.hpp"
#include "tests/support/tiny_models.hpp"

namespace assay::impl::bench::collectives_bench_test {
namespace {

using spec::Collective;

RC_GTEST_PROP(BenchCollectivesImplProperty, SizesAreThoseOfThePartitionWithinTheMemory, ()) {
  const spec::ModelSpec model = tests::tiny_model(*rc::gen::inRange<std::uint64_t>(0, 1u << 30));
  const std::int64_t ranks = *rc::gen::inRange<std::int64_t>(2, 9),
                     element = *rc::gen::element<std::int64_t>(2, 4, 8),
                     most = *rc::gen::inRange<std::int64_t>(ranks * 64 * element, std::int64_t{1} << 26);
  const spec::Partition partition = spec::partition(spec::inventory(model), ranks);
  const auto collective =
      *rc::gen::element(Collective::all_reduce, Collective::all_gather, Collective::all_to_all);
  const auto sizes = buffer_sizes(collective, partition, element, most, {1, 16});
  RC_ASSERT(sizes.size() == (collective == Collective::all_to_all ? 2u : 5u));
  std::int64_t last = 0;
  for (const BufferSize& size : sizes) {
    RC_ASSERT(size.elements > 0);
    RC_ASSERT(size.elements % (ranks * 64) == 0);
    RC_ASSERT(size.elements * element <= most);
    RC_ASSERT(size.elements >= last);
    last = size.elements;
    const bool cut = size.name.starts_with("part of ");
    if (cut) RC_ASSERT((size.elements + ranks * 64) * element > most);
    if (size.name == "all parameters") RC_ASSERT(size.elements == partition.inventory.flat_size);
    if (size.name == "decoder block") RC_ASSERT(size.elements == partition.block_size(1));
    if (size.name == "1 MiB" || size.name == "16 MiB") {
      const std::int64_t bytes = (size.name == "1 MiB" ? 1 : 16) << 20;
      RC_ASSERT(size.elements * element >= bytes);
      RC_ASSERT(size.elements * element < bytes + ranks * 64 * element);
    }
  }
}

RC_GTEST_PROP(BenchCollectivesImplProperty, CollectivesLastUntilTheLastGemmEvenAtHalfSpeed, ()) {
  const std::int64_t repeats = *rc::gen::inRange<std::int64_t>(1, 200);
  const double gemm = 1e-6 * *rc::gen::inRange(1, 30'000), collective = 1e-6 * *rc::gen::inRange(10, 10'000);
  const OverlapCounts counts = overlap_counts(repeats, gemm, collective);
  RC_ASSERT(counts.gemms >= 1);
  RC_ASSERT(counts.collectives >= 2);
  RC_ASSERT(counts.collectives <= 512);
  if (counts.collectives < 512)
    RC_ASSERT(static_cast<double>(counts.collectives) * collective >=
              2 * static_cast<double>(counts.gemms) * gemm);
}

TEST(BenchCollectivesImpl, GemmsAreFewerWhereCollectivesWouldNotFitAndMoreWhereTheyAreShort) {
  EXPECT_EQ(overlap_counts(20, 1e-3, 1e-3), (OverlapCounts{20, 42}));
  EXPECT_LT(overlap_counts(20, 16e-3, 1e-3).gemms, 20);
  EXPECT_EQ(overlap_counts(20, 1e-5, 1e-3).gemms, 512);
}

TEST(BenchCollectivesImpl, GradientsAreSummedInFp32BesideBf16Weights) {
  EXPECT_EQ(element_dtype(Collective::all_reduce, Dtype::bf16), Dtype::f32);
  EXPECT_EQ(element_dtype(Collective::reduce_scatter, Dtype::bf16), Dtype::f32);
  EXPECT_EQ(element_dtype(Collective::all_gather, Dtype::bf16), Dtype::bf16);
  EXPECT_EQ(element_dtype(Collective::all_to_all, Dtype::bf16), Dtype::bf16);
  EXPECT_EQ(element_dtype(Collective::reduce_scatter, Dtype::f64), Dtype::f64);
}

TEST(BenchCollectivesImpl, CallsAreAtLeastTheRepeatsAndLastTheSeconds) {
  EXPECT_EQ(calls_of({.repeats = 20}, 1e-3), 20);
  EXPECT_EQ(calls_of({.repeats = 20, .seconds = 1}, 1e-3), 1000);
  EXPECT_EQ(calls_of({.repeats = 20, .seconds = 1}, 10), 20);
}

TEST(BenchCollectivesImpl, EachCallIsTheCollectiveOfItsName) {
  for (const Collective collective : spec::ring_collectives)
    tests::on_thread_ranks(3, [&](Communicator& world) {
      const c10::InferenceMode no_autograd;
      const at::Tensor whole = at::full({6}, world.rank() + 1, at::kFloat);
      const auto begin = collective_call(world, collective, whole);
      world.wait(begin());
      const std::vector<float> all(whole.data_ptr<float>(), whole.data_ptr<float>() + 6);
      const auto own = 2 * static_cast<std::size_t>(world.rank());
      if (collective == Collective::all_gather) {
        EXPECT_EQ(all, (std::vector<float>{1, 1, 2, 2, 3, 3}));
      } else if (collective == Collective::all_to_all) {
        EXPECT_EQ(all, std::vector<float>(6, static_cast<float>(world.rank() + 1))) << "what was sent";
      } else {
        EXPECT_EQ(all[own], 6) << to_string(collective);
      }
      if (collective == Collective::all_reduce) {
        EXPECT_EQ(all, std::vector<float>(6, 6));
      }
    });
}

TEST(BenchCollectivesImpl, TheSlowestRanksTimeCounts) {
  tests::on_thread_ranks(4, [](Communicator& world) {
    EXPECT_EQ(slowest(world, 0.1 + world.rank()), 3.1);
    EXPECT_EQ(slowest(world, 1e-9 / (1 + world.rank())), 1e-9);
  });
}

TEST(BenchCollectivesImpl, EveryRankGetsTheSameRows) {
  std::mutex mutex;
  std::vector<std::vector<CollectiveRow>> seen;
  tests::on_thread_ranks(3, [&](Communicator& world) {
    Plan plan;
    plan.setting.model = spec::find_model("tiny-llama");
    plan.setting.micro = 1, plan.setting.sequence_length = 16, plan.setting.dtype = Dtype::bf16;
    plan.patience = {.repeats = 2};
    std::vector<CollectiveRow> rows;
    measure_collectives(plan, world, [&](const CollectiveRow& row) { rows.push_back(row); });
    const CollectiveSubject subject = collective_subject(plan, world);
    EXPECT_EQ(subject.ranks, 3);
    EXPECT_EQ(subject.hosts, 1);
    EXPECT_EQ(subject.engine, "threads");
    const std::scoped_lock lock(mutex);
    seen.push_back(std::move(rows));
  });
  ASSERT_EQ(seen.size(), 3u);
  ASSERT_EQ(seen[0].size(), 17u) << "five of what moves parameters, two all-to-alls";
  for (const auto& rows : seen)
    for (std::size_t i = 0; i < rows.size(); ++i) {
      EXPECT_EQ(rows[i].seconds, seen[0][i].seconds);
      EXPECT_EQ(rows[i].bytes, seen[0][i].bytes);
      EXPECT_GT(rows[i].fastest, 0);
      EXPECT_LE(rows[i].fastest, rows[i].seconds);
    }
}

TEST(BenchCollectivesImpl, CollectivesBesideGemmsAreRatedByHowManyEnd) {
  EXPECT_DOUBLE_EQ(seconds_of_one({0.1, 0.2, 0.3, 0.4}, 0, 1), 0.1);
  // Held up by a GEMM, then let go of together: two in 2 s, not one in a microsecond.
  EXPECT_DOUBLE_EQ(seconds_of_one({1.0, 3.0 - 1e-6, 3.0}, 1.5, 4), 1.0);
  EXPECT_DOUBLE_EQ(seconds_of_one({2.0}, 1.9, 2.1), 2.0) << "begun at 0, not at 1.9";
  EXPECT_DOUBLE_EQ(seconds_of_one({1.0, 5.0}, 1.5, 4), 0) << "none ended";
  EXPECT_DOUBLE_EQ(seconds_of_one({}, 0, 1), 0);
}

TEST(BenchCollectivesImpl, GemmsBesideThemTakeTheirMean) {
  constexpr double for_ever = 1e9;
  // One of four waits for all collectives: the others' time alone would hide it.
  EXPECT_DOUBLE_EQ(mean_of_spans({{1, 2}, {2, 3}, {3, 9}, {9, 10}}, for_ever), 9.0 / 4);
  EXPECT_DOUBLE_EQ(mean_of_spans({{1, 2}, {2, 3}, {3, 9}, {9, 10}}, 9.5), 8.0 / 3)
      << "the last had none beside it";
  EXPECT_DOUBLE_EQ(mean_of_spans({{1, 2}}, 1.5), 0);
  EXPECT_DOUBLE_EQ(mean_of_spans({}, for_ever), 0);
}

TEST(BenchCollectivesImpl, WhyThereIsNoOverlapOnACpuIsSaid) {
  EXPECT_NE(overlap_left_out(at::kCPU).find("measured on GPUs"), std::string::npos);
  EXPECT_EQ(overlap_left_out(at::Device(at::kCUDA, 0)), "");
}

}  // namespace
}  // namespace assay::impl::bench::collectives_bench_test
