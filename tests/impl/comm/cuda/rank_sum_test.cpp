// labels: unit parity gpu
// ranks: 1
// The kernel that adds up what was copied from other ranks, on one GPU.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "impl/comm/peer/rank_sum_launch.hpp"
#include "impl/ops/cuda_tensor.hpp"
#include "tests/support/gpu.hpp"

namespace assay::impl::rank_sum_test {
namespace {

/// Sums in the order of the ranks, to the bit, for every rank of several; by whole vectors and, where they do
/// not fit, by single numbers; apart and in place.
TEST(RankSumImpl, AddsInTheOrderOfTheRanks) {
  ASSAY_NEEDS_GPU();
  for (const auto type : {at::kDouble, at::kFloat, at::kBFloat16})
    for (const int ranks : {2, 3, 5})
      for (int rank = 0; rank < ranks; ++rank)
        for (const std::int64_t n : {1, 64, 1003, 300'032})
          for (const std::int64_t off : {0, 1}) {
            const at::Tensor parts = at::randn({ranks, n}).mul_(1e3).to(type),
                             wide = type == at::kBFloat16 ? parts.to(at::kFloat) : parts;
            at::Tensor expected = wide[0].clone();
            std::vector<at::Tensor> others;
            for (int r = 0; r < ranks; ++r) {
              if (r > 0) expected += wide[r];
              if (r != rank) others.push_back(parts[r]);
            }
            expected = expected.to(type);
            const at::Tensor memory = at::zeros({n + off}, parts.options().device(at::kCUDA)),
                             own = memory.narrow(0, off, n), staging = at::cat(others).to(at::kCUDA);
            own.copy_(parts[rank]);
            const at::Tensor apart = at::zeros_like(own);
            for (const at::Tensor& sum : {apart, own}) {
              rank_sum::cuda::launch(cuda::dtype_of(own), n, rank, ranks, own.const_data_ptr(),
                                     staging.const_data_ptr(), sum.data_ptr(), cuda::stream());
              EXPECT_TRUE(at::equal(sum.cpu(), expected)) << at::toString(type) << " rank " << rank << " of "
                                                          << ranks << " n=" << n << " off=" << off;
            }
          }
}

}  // namespace
}  // namespace assay::impl::rank_sum_test
