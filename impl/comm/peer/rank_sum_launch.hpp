#pragma once
#include "impl/ops/cuda_launch.hpp"

namespace assay::impl::rank_sum::cuda {

/// sum[i] = the numbers i of all ranks, added in the order of the ranks, for i < n: in fp32 where elements
/// are bf16, rounded once at the end. `own`: this rank's n numbers; `others`: those of the other ranks, one
/// rank's behind the other's in their order. sum may be own, otherwise the three are apart. No number is
/// added to a zero first, so that two ranks get what one addition gives.
void launch(Dtype dtype, std::int64_t n, int rank, int ranks, const void* own, const void* others, void* sum,
            cudaStream_t stream);

}  // namespace assay::impl::rank_sum::cuda
