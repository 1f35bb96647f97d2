#include <ATen/ATen.h>

#include "impl/ops/cuda_tensor.hpp"
#include "impl/ops/router/router.hpp"
#include "impl/ops/router/router_launch.hpp"

namespace assay::impl::router::cuda {

using impl::cuda::stream;

Choice forward(at::Tensor logits, const spec::Experts& how) {
  const std::int64_t N = logits.size(0), A = how.active;
  TORCH_CHECK(how.count <= most_experts, "router: ", how.count, " experts, the kernels take ", most_experts);
  Choice out{.scores = logits,
             .experts = at::empty({N, A}, logits.options().dtype(at::kInt)),
             .weights = at::empty({N, A}, logits.options())};
  launch_forward(logits.scalar_type() == at::kDouble, N, how, logits.data_ptr(),
                 out.experts.data_ptr<std::int32_t>(), out.weights.data_ptr(), stream());
  return out;
}

at::Tensor backward(const at::Tensor& dweights, const Choice& choice, const spec::Experts& how,
                    at::ScalarType type) {
  at::Tensor dlogits = at::empty(choice.scores.sizes(), dweights.options().dtype(type));
  launch_backward(impl::cuda::dtype_of(dlogits), dweights.size(0), how, dweights.const_data_ptr(),
                  choice.scores.const_data_ptr(), choice.experts.const_data_ptr<std::int32_t>(),
                  choice.weights.const_data_ptr(), dlogits.data_ptr(), stream());
  return dlogits;
}

}  // namespace assay::impl::router::cuda
