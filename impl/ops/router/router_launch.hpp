#pragma once
#include "impl/ops/cuda_launch.hpp"
#include "spec/model/model_spec.hpp"

namespace assay::impl::router::cuda {

/// The most experts whose choice fits the kernels' marks.
constexpr std::int64_t most_experts = 2048;

/// Device pointers of impl/ops/router/router.hpp: scores [N, X] hold the logits and, on return, the scores;
/// experts and weights [N, A]. `wide`: fp64, else fp32.
void launch_forward(bool wide, std::int64_t N, const spec::Experts& how, void* scores, std::int32_t* experts,
                    void* weights, cudaStream_t stream);
/// dlogits [N, X] of `dtype`, whose arithmetic type the others have.
void launch_backward(Dtype dtype, std::int64_t N, const spec::Experts& how, const void* dweights,
                     const void* scores, const std::int32_t* experts, const void* weights, void* dlogits,
                     cudaStream_t stream);

}  // namespace assay::impl::router::cuda
