#include "impl/ops/router/router.hpp"

#include "impl/metrics/op_times.hpp"
#include "impl/ops/math_type.hpp"
#include "impl/ops/tensor_check.hpp"

namespace assay::impl::router {

namespace {
void check(const at::Tensor& logits, const spec::Experts& how) {
  TORCH_CHECK(logits.dim() == 2 && logits.size(1) == how.count, "router: logits ", describe(logits), " of ",
              how.count, " experts");
  TORCH_CHECK(how.groups == 1 && !how.router_bias,
              "router: groups and a correction of scores are not computed");
  TORCH_CHECK(logits.scalar_type() == math_type(logits.scalar_type()),
              "router: logits are fp32 or fp64, not ", logits.scalar_type());
  check_contiguous("router", {logits});
}
}  // namespace

Choice forward(at::Tensor logits, const spec::Experts& how) {
  const metrics::OpScope timed(spec::time::StepOp::router, spec::time::StepPass::forward);
  check(logits, how);
  return logits.is_cpu() ? cpu::forward(std::move(logits), how) : cuda::forward(std::move(logits), how);
}

at::Tensor backward(const at::Tensor& dweights, const Choice& choice, const spec::Experts& how,
                    at::ScalarType type) {
  const metrics::OpScope timed(spec::time::StepOp::router, spec::time::StepPass::backward);
  check(choice.scores, how);
  TORCH_CHECK(dweights.sizes() == choice.weights.sizes(), "router: upstream ", describe(dweights));
  check_contiguous("router", {dweights, choice.weights, choice.experts});
  return dweights.is_cpu() ? cpu::backward(dweights, choice, how, type)
                           : cuda::backward(dweights, choice, how, type);
}

}  // namespace assay::impl::router
