#pragma once
// What the ranks of a test on GPUs train in each layout, whatever moves their shards.
#include "impl/params/replica_hash.hpp"
#include "tests/impl/comm/cuda/gpu_ranks.hpp"
#include "tests/impl/params/layout_parity.hpp"

namespace assay::tests {

inline constexpr spec::DataParallel gpu_layouts[] = {spec::DataParallel::replicate, spec::DataParallel::zero1,
                                                     spec::DataParallel::shard, spec::DataParallel::hybrid};

/// Over all ranks. Hybrid: in shards of two where the ranks are four or more, else whole copies.
inline spec::Layout gpu_layout(spec::DataParallel data) {
  const std::int64_t ranks = gpu_ranks().world->size();
  return spec::layout_of(data, ranks,
                         data == spec::DataParallel::hybrid ? (ranks % 2 || ranks < 4 ? ranks : 2) : 0);
}

/// Every layout in fp64 takes the reference's steps.
inline void expect_the_references_steps(const spec::Movers& by) {
  impl::Communicator& world = *gpu_ranks().world;
  for (spec::DataParallel data : gpu_layouts)
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      const LayoutCase c{.seed = 300 + seed,
                         .micro = static_cast<std::int64_t>(1 + seed % 2),
                         .accumulation = static_cast<std::int64_t>(1 + seed % 3),
                         .documents = static_cast<Documents>(seed % 2),
                         .ignored = static_cast<Ignored>(seed % 4),
                         .by = by};
      EXPECT_EQ(difference_from_reference(c, gpu_layout(data), world, gpu_ranks().device), "")
          << "rank " << world.rank() << ", " << describe(c, gpu_layout(data));
    }
}

/// The losses of a batch that comes again fall, and what ranks hold copies of has the same bits on each.
inline void expect_copies_of_the_same_bits(const spec::Movers& by) {
  impl::Communicator& world = *gpu_ranks().world;
  const LayoutCase c{.seed = 5, .micro = 1, .accumulation = 2};
  for (spec::DataParallel data : gpu_layouts)
    for (Dtype states : {Dtype::f32, Dtype::bf16})
      for (Dtype wire : {Dtype::f32, Dtype::bf16}) {
        StepRunner runner(tiny_model(c.seed), Dtype::bf16, gpu_ranks().device, world, gpu_layout(data),
                          layout_settings(), c.seed, states, wire, spec::Recompute::norms_swiglu, by);
        double first = 0, last = 0;
        for (int step = 0; step < 6; ++step) {
          const auto whole = whole_batch(c, world.size(), 0);
          const auto result = runner.step(dealt(whole, c, world.size(), world.rank()),
                                          static_cast<double>(whole.valid_tokens()), 1e-2);
          (step == 0 ? first : last) = result.cross_entropy;
        }
        runner.parameters().settle_weights();
        EXPECT_EQ(impl::compare_replicas(runner.buffers(), runner.groups()).odd, "") << spec::to_string(data);
        EXPECT_LT(last, first) << spec::to_string(data);
      }
}

/// The first step in bf16 is replicate's over NCCL but for the order of its sums.
inline void expect_replicates_first_step(const spec::Movers& by) {
  const LayoutCase c{.seed = 7, .micro = 1, .accumulation = 2, .ignored = tests::Ignored::some, .by = by};
  for (spec::DataParallel data : gpu_layouts) {
    if (data == spec::DataParallel::replicate) continue;
    EXPECT_EQ(first_step_off_replicates(c, gpu_layout(data), *gpu_ranks().world, gpu_ranks().device), "")
        << spec::to_string(data);
  }
}

}  // namespace assay::tests
