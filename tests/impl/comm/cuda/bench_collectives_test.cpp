// labels: gpu multigpu
// ranks: 2 4
// `assay bench ceilings --ranks` between GPUs: rows of collectives, and of a GEMM beside them.
#include <gtest/gtest.h>

#include <iostream>

#include "impl/bench/collectives.hpp"
#include "impl/bench/overlap.hpp"
#include "tests/impl/comm/cuda/gpu_ranks.hpp"

namespace assay::impl::bench::cuda_collectives_test {
namespace {

Plan plan_of(const char* model, std::int64_t micro, std::int64_t tokens) {
  Plan plan;
  plan.setting.model = spec::find_model(model);
  plan.setting.micro = micro, plan.setting.sequence_length = tokens, plan.setting.dtype = Dtype::bf16;
  plan.device = tests::gpu_ranks().device;
  plan.patience = {.repeats = 10};
  return plan;
}

TEST(BenchCollectivesCuda, LargeCollectivesAreFasterThanSmallOnes) {
  ASSAY_NEEDS_GPU_RANKS();
  Communicator& world = *tests::gpu_ranks().world;
  double small = 0, large = 0;
  int rows = 0;
  measure_collectives(plan_of("llama-1.36b", 1, 2048), world, [&](const CollectiveRow& row) {
    ++rows;
    const double rate = spec::metrics::bus_bandwidth(row.collective, row.bytes, row.seconds, world.size());
    EXPECT_LT(rate, 2e12) << row.size << ": faster than any link";
    if (row.size == "1 MiB") small = rate;
    if (row.size == "all parameters") {
      large = rate;
      EXPECT_GT(large, small) << to_string(row.collective);
    }
    if (world.rank() == 0)
      std::cout << to_string(row.collective) << " " << row.size << ": " << rate * 1e-9 << " GB/s bus"
                << std::endl;
  });
  EXPECT_EQ(rows, 3 * (6 + 3) + 6) << "six sizes of each collective, and three of what moves parameters";
}

/// 0.97 is chosen, not derived: the clock moves between the runs alone and beside. Seen on two H200s: -2.6 %
/// in a measurement of 24 sequences, 14 to 17 % here.
TEST(BenchCollectivesCuda, AGemmIsNotFasterBesideACollective) {
  ASSAY_NEEDS_GPU_RANKS();
  Communicator& world = *tests::gpu_ranks().world;
  int rows = 0;
  measure_overlap(plan_of("llama-1.36b", 8, 2048), world, [&](const OverlapRow& row) {
    ++rows;
    EXPECT_GT(row.alone_seconds, 0);
    EXPECT_GT(row.beside_seconds, 0.97 * row.alone_seconds) << to_string(row.beside.collective);
    EXPECT_GT(row.beside.seconds, 0) << "no collective ended while GEMMs ran";
    if (world.rank() == 0)
      std::cout << "gate_up beside " << to_string(row.beside.collective) << ": "
                << 100 * (row.beside_seconds / row.alone_seconds - 1) << " % slower" << std::endl;
  });
  EXPECT_EQ(rows, std::ssize(spec::ring_collectives));
}

/// GEMMs that end before a collective does: many are run.
TEST(BenchCollectivesCuda, ATinyGemmHasItsRowsToo) {
  ASSAY_NEEDS_GPU_RANKS();
  int rows = 0;
  measure_overlap(plan_of("tiny-llama", 1, 128), *tests::gpu_ranks().world, [&](const OverlapRow& row) {
    ++rows;
    EXPECT_GT(row.alone_seconds, 0);
  });
  EXPECT_EQ(rows, std::ssize(spec::ring_collectives));
}

}  // namespace
}  // namespace assay::impl::bench::cuda_collectives_test
