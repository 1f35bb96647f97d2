#pragma once
#include "impl/ops/cuda_launch.hpp"

namespace assay::impl::permute::cuda {

/// Slots that a warp counts and places.
constexpr std::int64_t chunk = 1024;
inline std::int64_t chunks(std::int64_t slots) { return (slots + chunk - 1) / chunk; }

/// Device pointers of impl/ops/permute/permute.hpp. A slot of an expert below 0 has no row. experts, slots
/// and rows [slot_count], ends [X]; `counts` [chunks(slot_count), X] is scratch.
ASSAY_KERNEL void launch_order(std::int64_t slot_count, std::int64_t X, const std::int32_t* experts,
                               std::int32_t* counts, std::int32_t* slots, std::int32_t* rows,
                               std::int32_t* ends, cudaStream_t stream);
/// An order, and that of the rows that are kept of it. `firsts` [3, G, X] is scratch.
struct Limit {
  std::int64_t slot_count, G, X, most;
  const std::int32_t *experts, *choices, *all_rows, *all_ends;
  std::int32_t *firsts, *slots, *rows, *ends;
};
ASSAY_KERNEL void launch_limit(const Limit& limit, cudaStream_t stream);
/// x [N, D] -> y [N A, D], rows [N, A] of each token.
ASSAY_KERNEL void launch_gather(Dtype dtype, std::int64_t N, std::int64_t D, std::int64_t A, const void* x,
                                const std::int32_t* rows, void* y, cudaStream_t stream);
/// y [N, D] = base [N, D], or none where it is null, + A rows of each token.
ASSAY_KERNEL void launch_combine(Dtype dtype, std::int64_t N, std::int64_t D, std::int64_t A,
                                 const void* base, const void* from, const std::int32_t* rows, void* y,
                                 cudaStream_t stream);

}  // namespace assay::impl::permute::cuda
