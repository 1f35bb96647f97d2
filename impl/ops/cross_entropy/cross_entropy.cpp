#include "impl/ops/cross_entropy/cross_entropy.hpp"

#include <ATen/ATen.h>

#include "impl/metrics/op_times.hpp"
#include "impl/ops/tensor_check.hpp"
#include "spec/error.hpp"
#include "spec/ops/cross_entropy.hpp"

namespace assay::impl::cross_entropy {

namespace {
void check(const at::Tensor& logits, const at::Tensor& targets, const Normalizer& normalizer, double z) {
  const spec::cross_entropy::Shape shape{.N = logits.size(0), .V = logits.size(1)};
  const double divisor = normalizer.known().value_or(1);
  if (targets.is_cpu()) {
    const auto count = static_cast<std::size_t>(targets.numel());
    return spec::cross_entropy::check(shape, {targets.const_data_ptr<std::int64_t>(), count}, divisor, z);
  }
  // cross_entropy_c1; the loader has checked the values of targets that are on a device
  require(targets.numel() == shape.N, "cross_entropy_c1",
          [&] { return std::to_string(targets.numel()) + " targets for N=" + std::to_string(shape.N); });
  spec::cross_entropy::check({.N = 0, .V = shape.V}, {}, divisor, z);
}

/// Rows may be apart: the entries between them are neither read nor written.
void check_rows(const at::Tensor& logits, const at::Tensor& targets, const at::Tensor& lse) {
  check_contiguous("cross_entropy", {targets, lse});
  const bool in_rows = logits.stride(1) == 1 || logits.size(1) <= 1;
  TORCH_CHECK(in_rows && (logits.stride(0) >= logits.size(1) || logits.size(0) <= 1),
              "cross_entropy: ", describe(logits), " has strides ", logits.strides(),
              "; give rows without gaps inside");
}

at::Tensor to_math(const at::Tensor& x) { return x.scalar_type() == at::kBFloat16 ? x.to(at::kFloat) : x; }
}  // namespace

Forward forward(const at::Tensor& logits, const at::Tensor& targets, const Normalizer& normalizer, double z) {
  const metrics::OpScope timed(spec::time::StepOp::cross_entropy, spec::time::StepPass::forward);
  check(logits, targets, normalizer, z);
  check_rows(logits, targets, {});
  return logits.is_cpu() ? cpu::forward(logits, targets, normalizer, z)
                         : cuda::forward(logits, targets, normalizer, z);
}

at::Tensor backward(at::Tensor logits, const at::Tensor& targets, const at::Tensor& lse,
                    const Normalizer& normalizer, double z) {
  const metrics::OpScope timed(spec::time::StepOp::cross_entropy, spec::time::StepPass::backward);
  check(logits, targets, normalizer, z);
  check_rows(logits, targets, lse);
  return logits.is_cpu() ? cpu::backward(logits, targets, lse, normalizer, z)
                         : cuda::backward(logits, targets, lse, normalizer, z);
}

Forward forward_backward(at::Tensor logits, const at::Tensor& targets, const Normalizer& normalizer,
                         double z) {
  const metrics::OpScope timed(spec::time::StepOp::cross_entropy, spec::time::StepPass::forward);
  check(logits, targets, normalizer, z);
  check_rows(logits, targets, {});
  if (logits.is_cuda()) return cuda::forward_backward(logits, targets, normalizer, z);
  Forward out = cpu::forward(logits, targets, normalizer, z);
  cpu::backward(logits, targets, out.lse, normalizer, z);
  return out;
}

namespace aten {
Forward forward(const at::Tensor& logits, const at::Tensor& targets, const Normalizer& normalizer, double z) {
  const at::Tensor wide = to_math(logits), lse = at::logsumexp(wide, {1});
  const at::Tensor valid = targets.ne(spec::cross_entropy::ignore), index = targets.clamp_min(0).unsqueeze(1);
  const at::Tensor of_target = wide.gather(1, index).squeeze(1).to(at::kDouble), exact = lse.to(at::kDouble);
  const at::Tensor zero = at::zeros({}, exact.options());
  const at::Tensor divisor = normalizer.on(logits.device());
  return {at::where(valid, exact - of_target, zero).sum().div_(divisor),
          at::where(valid, exact.square(), zero).sum().mul_(z).div_(divisor), lse};
}

at::Tensor backward(at::Tensor logits, const at::Tensor& targets, const at::Tensor& lse,
                    const Normalizer& normalizer, double z) {
  at::Tensor gradient = (to_math(logits) - lse.unsqueeze(1)).exp_();
  gradient.mul_((1 + 2 * z * lse).unsqueeze(1));
  const at::Tensor index = targets.clamp_min(0).unsqueeze(1);
  gradient.scatter_add_(1, index, at::full(index.sizes(), -1, gradient.options()));
  const at::Tensor share = normalizer.on(logits.device()).reciprocal().to(gradient.scalar_type());
  gradient.mul_(targets.ne(spec::cross_entropy::ignore).to(gradient.scalar_type()).mul_(share).unsqueeze(1));
  return logits.copy_(gradient);
}
}  // namespace aten

}  // namespace assay::impl::cross_entropy
