#pragma once
#include "impl/ops/cuda_launch.hpp"
#include "impl/ops/permute/visit_rules.hpp"

namespace assay::impl::permute::cuda {

/// Device pointers of impl/ops/permute/visits.hpp; weights as words of 4 bytes, `words` of them each.
ASSAY_KERNEL void launch_visited(const rules::ChoiceView& of, std::int32_t* visited, cudaStream_t stream);
ASSAY_KERNEL void launch_count_visits(const std::int32_t* visit_ends, const std::int32_t* expert_ends,
                                      std::int64_t ranks, std::int64_t each, std::int32_t* counts,
                                      cudaStream_t stream);
/// `most` rows, of which the first ends[ranks - 1] are written.
ASSAY_KERNEL void launch_pack(const rules::ChoiceView& of, const std::int32_t* weights, int words,
                              const std::int32_t* slots, const std::int32_t* ends, std::int64_t most,
                              std::int32_t* packed, cudaStream_t stream);
ASSAY_KERNEL void launch_unpack(std::int64_t M, std::int64_t A, int words, const std::int32_t* packed,
                                std::int32_t* weights, std::int32_t* experts, cudaStream_t stream);
ASSAY_KERNEL void launch_by_choice(const rules::ChoiceView& of, const std::int32_t* visits, bool wide,
                                   const void* of_visits, void* out, cudaStream_t stream);

}  // namespace assay::impl::permute::cuda
