#include <ATen/ATen.h>

#include "impl/ops/cuda_tensor.hpp"
#include "impl/ops/router/router.hpp"
#include "impl/ops/router/router_launch.hpp"
#include "spec/ops/load_balancing/load_balancing.hpp"

namespace assay::impl::router::cuda {

using impl::cuda::stream;

Choice forward(at::Tensor logits, const spec::Experts& how, std::int64_t groups, const at::Tensor& bias) {
  const std::int64_t N = logits.size(0), A = how.active;
  TORCH_CHECK(how.count <= most_experts, "router: ", how.count, " experts, the kernels take ", most_experts);
  Choice out{.scores = logits,
             .experts = at::empty({N, A}, logits.options().dtype(at::kInt)),
             .weights = at::empty({N, A}, logits.options()),
             .counts = at::zeros({groups, how.count}, logits.options().dtype(at::kInt)),
             .lse = at::empty({N}, logits.options()),
             .logits = {}};
  auto* experts = out.experts.data_ptr<std::int32_t>();
  launch_forward(logits.scalar_type() == at::kDouble, N, how,
                 bias.defined() ? bias.const_data_ptr() : nullptr, logits.data_ptr(), experts,
                 out.weights.data_ptr(), out.lse.data_ptr(), stream());
  launch_counts(N, groups, how, experts, out.counts.data_ptr<std::int32_t>(), stream());
  return out;
}

at::Tensor losses(const Choice& choice, const spec::Experts& how, const Normalizer& tokens,
                  const at::Tensor& ends, bool probabilities) {
  using spec::load_balancing::numbers_before_loads;
  const std::int64_t N = choice.scores.size(0), X = how.count;
  const auto numbers = choice.scores.options().dtype(at::kDouble);
  const at::Tensor terms = at::empty({probabilities ? 4 : 3, N}, numbers),
                   partial = probabilities ? at::empty({sums(N), X}, numbers) : at::Tensor(),
                   Z = tokens.on(terms.device());
  launch_losses(choice.scores.scalar_type() == at::kDouble, N, choice.counts.size(0), how,
                choice.scores.const_data_ptr(), choice.counts.const_data_ptr<std::int32_t>(),
                choice.lse.const_data_ptr(), terms.data_ptr<double>(),
                probabilities ? partial.data_ptr<double>() : nullptr, stream());
  at::Tensor out = at::empty({numbers_before_loads + (probabilities ? 2 : 1) * X}, numbers);
  out.narrow(0, 0, 3).copy_(terms.narrow(0, 0, 3).sum(1).div_(Z));
  if (ends.defined())
    out.narrow(0, 3, 1).copy_(ends.narrow(0, X - 1, 1).neg().add_(choice.experts.numel()));
  else
    out.narrow(0, 3, 1).zero_();
  out.narrow(0, numbers_before_loads, X).copy_(choice.counts.sum(0));
  if (probabilities) out.narrow(0, numbers_before_loads + X, X).copy_(partial.sum(0).div_(Z));
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
                   .shares = auxiliary.shares.defined() ? auxiliary.shares.const_data_ptr<double>() : nullptr,
                   .tokens = tokens.const_data_ptr<double>(),
                   .dlogits = dlogits.data_ptr()},
                  stream());
  return dlogits;
}

}  // namespace assay::impl::router::cuda
