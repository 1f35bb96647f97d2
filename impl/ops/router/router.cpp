#include "impl/ops/router/router.hpp"

#include "impl/metrics/op_times.hpp"
#include "impl/ops/math_type.hpp"
#include "impl/ops/tensor_check.hpp"

namespace assay::impl::router {

namespace {
void check(const at::Tensor& logits, const spec::Experts& how) {
  TORCH_CHECK(logits.dim() == 2 && logits.size(1) == how.count, "router: logits ", describe(logits), " of ",
              how.count, " experts");
  TORCH_CHECK(logits.scalar_type() == math_type(logits.scalar_type()),
              "router: logits are fp32 or fp64, not ", logits.scalar_type());
  check_contiguous("router", {logits});
}
}  // namespace

Choice forward(at::Tensor logits, const spec::Experts& how, std::int64_t groups, bool keep_logits,
               const at::Tensor& bias) {
  const metrics::OpScope timed(spec::time::StepOp::router, spec::time::StepPass::forward);
  check(logits, how);
  TORCH_CHECK(bias.defined() == how.router_bias,
              "router: a bias is given to a model with a router bias alone");
  if (bias.defined()) {
    TORCH_CHECK(bias.numel() == how.count && bias.scalar_type() == logits.scalar_type(), "router: bias ",
                describe(bias), " of logits ", describe(logits));
    check_contiguous("router", {bias});
  }
  TORCH_CHECK(groups >= 1 && logits.size(0) % groups == 0, "router: ", groups, " groups of logits ",
              describe(logits));
  const at::Tensor kept = keep_logits ? logits.clone() : at::Tensor();
  Choice out = logits.is_cpu() ? cpu::forward(std::move(logits), how, groups, bias)
                               : cuda::forward(std::move(logits), how, groups, bias);
  out.logits = kept;
  return out;
}

at::Tensor losses(const Choice& choice, const spec::Experts& how, const Normalizer& tokens,
                  const at::Tensor& ends, bool probabilities) {
  const metrics::OpScope timed(spec::time::StepOp::router, spec::time::StepPass::forward);
  check(choice.scores, how);
  return choice.scores.is_cpu() ? cpu::losses(choice, how, tokens, ends, probabilities)
                                : cuda::losses(choice, how, tokens, ends, probabilities);
}

at::Tensor backward(const at::Tensor& dweights, const Choice& choice, const spec::Experts& how,
                    at::ScalarType type, const Auxiliary& auxiliary) {
  const metrics::OpScope timed(spec::time::StepOp::router, spec::time::StepPass::backward);
  check(choice.scores, how);
  TORCH_CHECK(dweights.sizes() == choice.weights.sizes(), "router: upstream ", describe(dweights));
  TORCH_CHECK(choice.logits.defined() || !keeps_logits(how, auxiliary.z),
              "router: the z-loss of sigmoids reads the logits, which forward was not asked to keep");
  TORCH_CHECK(!auxiliary.shares.defined() ||
                  (auxiliary.shares.numel() == how.count && auxiliary.shares.scalar_type() == at::kDouble),
              "router: shares ", describe(auxiliary.shares), " of ", how.count, " experts");
  check_contiguous("router", {dweights, choice.weights, choice.experts});
  if (auxiliary.shares.defined()) check_contiguous("router", {auxiliary.shares});
  return dweights.is_cpu() ? cpu::backward(dweights, choice, how, type, auxiliary)
                           : cuda::backward(dweights, choice, how, type, auxiliary);
}

}  // namespace assay::impl::router
