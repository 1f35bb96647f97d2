#include <ATen/ATen.h>

#include "impl/ops/cuda_tensor.hpp"
#include "impl/ops/router/router.hpp"
#include "impl/ops/router/router_launch.hpp"

namespace assay::impl::router::cuda {

using impl::cuda::stream;

Choice forward(at::Tensor logits, const spec::Experts& how, std::int64_t groups) {
  const std::int64_t N = logits.size(0), A = how.active;
  TORCH_CHECK(how.count <= most_experts, "router: ", how.count, " experts, the kernels take ", most_experts);
  Choice out{.scores = logits,
             .experts = at::empty({N, A}, logits.options().dtype(at::kInt)),
             .weights = at::empty({N, A}, logits.options()),
             .counts = at::zeros({groups, how.count}, logits.options().dtype(at::kInt)),
             .lse = at::empty({N}, logits.options()),
             .logits = {}};
  auto* experts = out.experts.data_ptr<std::int32_t>();
  launch_forward(logits.scalar_type() == at::kDouble, N, how, logits.data_ptr(), experts,
                 out.weights.data_ptr(), out.lse.data_ptr(), stream());
  launch_counts(N, groups, how, experts, out.counts.data_ptr<std::int32_t>(), stream());
  return out;
}

at::Tensor losses(const Choice& choice, const spec::Experts& how, const Normalizer& tokens) {
  const std::int64_t N = choice.scores.size(0), X = how.count;
  const auto numbers = choice.scores.options().dtype(at::kDouble);
  const at::Tensor terms = at::empty({3, N}, numbers);
  launch_losses(choice.scores.scalar_type() == at::kDouble, N, choice.counts.size(0), how,
                choice.scores.const_data_ptr(), choice.counts.const_data_ptr<std::int32_t>(),
                choice.lse.const_data_ptr(), terms.data_ptr<double>(), stream());
  at::Tensor out = at::empty({3 + X}, numbers);
  out.narrow(0, 0, 3).copy_(terms.sum(1).div_(tokens.on(terms.device())));
  out.narrow(0, 3, X).copy_(choice.counts.sum(0));
  return out;
}

at::Tensor backward(const at::Tensor& dweights, const Choice& choice, const spec::Experts& how,
                    at::ScalarType type, const Auxiliary& auxiliary) {
  at::Tensor dlogits = at::empty(choice.scores.sizes(), dweights.options().dtype(type));
  const at::Tensor tokens = auxiliary.tokens.on(dweights.device());
  launch_backward(how,
                  {.dtype = impl::cuda::dtype_of(dlogits),
                   .N = dweights.size(0),
                   .groups = choice.counts.size(0),
                   .dweights = dweights.const_data_ptr(),
                   .scores = choice.scores.const_data_ptr(),
                   .weights = choice.weights.const_data_ptr(),
                   .lse = choice.lse.const_data_ptr(),
                   .logits = choice.logits.defined() ? choice.logits.const_data_ptr() : nullptr,
                   .experts = choice.experts.const_data_ptr<std::int32_t>(),
                   .counts = choice.counts.const_data_ptr<std::int32_t>(),
                   .balance = auxiliary.balance,
                   .z = auxiliary.z,
                   .tokens = tokens.const_data_ptr<double>(),
                   .dlogits = dlogits.data_ptr()},
                  stream());
  return dlogits;
}

}  // namespace assay::impl::router::cuda
