#include "impl/ops/cross_entropy/cross_entropy.hpp"

#include <ATen/ATen.h>

#include <cmath>

#include "impl/metrics/op_times.hpp"
#include "impl/ops/tensor_check.hpp"
#include "spec/error.hpp"
#include "spec/ops/cross_entropy/cross_entropy.hpp"
#include "spec/ops/embedding/vocabulary.hpp"

namespace assay::impl::cross_entropy {

namespace {
void check(const at::Tensor& logits, const at::Tensor& targets, const Normalizer& normalizer,
           const Terms& terms, spec::Vocabulary columns) {
  const spec::cross_entropy::Shape shape{.N = logits.size(0), .V = logits.size(1)};
  const double divisor = normalizer.known().value_or(1);
  if (targets.is_cpu()) {
    const auto count = static_cast<std::size_t>(targets.numel());
    return spec::cross_entropy::check(shape, {targets.const_data_ptr<std::int64_t>(), count}, divisor,
                                      terms.z, columns);
  }
  // cross_entropy_c1; the loader has checked the values of targets that are on a device
  require(targets.numel() == shape.N, "cross_entropy_c1",
          [&] { return std::to_string(targets.numel()) + " targets for N=" + std::to_string(shape.N); });
  spec::cross_entropy::check({.N = 0, .V = shape.V}, {}, divisor, terms, columns);
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

Forward forward(const at::Tensor& logits, const at::Tensor& targets, const Normalizer& normalizer,
                const Terms& terms) {
  const metrics::OpScope timed(spec::time::StepOp::cross_entropy, spec::time::StepPass::forward);
  check(logits, targets, normalizer, terms, spec::Vocabulary::whole);
  check_rows(logits, targets, {});
  return logits.is_cpu() ? cpu::forward(logits, targets, normalizer, terms)
                         : cuda::forward(logits, targets, normalizer, terms);
}

at::Tensor backward(at::Tensor logits, const at::Tensor& targets, const at::Tensor& lse,
                    const Normalizer& normalizer, const Terms& terms) {
  const metrics::OpScope timed(spec::time::StepOp::cross_entropy, spec::time::StepPass::backward);
  check(logits, targets, normalizer, terms, spec::Vocabulary::slice);
  check_rows(logits, targets, lse);
  return logits.is_cpu() ? cpu::backward(logits, targets, lse, normalizer, terms)
                         : cuda::backward(logits, targets, lse, normalizer, terms);
}

Forward forward_backward(at::Tensor logits, const at::Tensor& targets, const Normalizer& normalizer,
                         const Terms& terms) {
  const metrics::OpScope timed(spec::time::StepOp::cross_entropy, spec::time::StepPass::forward);
  check(logits, targets, normalizer, terms, spec::Vocabulary::whole);
  check_rows(logits, targets, {});
  if (logits.is_cuda()) return cuda::forward_backward(logits, targets, normalizer, terms);
  Forward out = cpu::forward(logits, targets, normalizer, terms);
  cpu::backward(logits, targets, out.lse, normalizer, terms);
  return out;
}

Partial partial(const at::Tensor& logits, const at::Tensor& own_targets, const Terms& terms) {
  const metrics::OpScope timed(spec::time::StepOp::cross_entropy, spec::time::StepPass::forward);
  check(logits, own_targets, 1, terms, spec::Vocabulary::slice);
  check_rows(logits, own_targets, {});
  return logits.is_cpu() ? cpu::partial(logits, own_targets, terms)
                         : cuda::partial(logits, own_targets, terms);
}

void rescale(Partial& own, const at::Tensor& top) {
  const metrics::OpScope timed(spec::time::StepOp::cross_entropy, spec::time::StepPass::forward);
  own.sum.mul_(own.top.sub(top).exp_());
  own.top = top;
}

Forward combine(const Partial& all, const at::Tensor& targets, const Normalizer& normalizer,
                const Terms& terms) {
  const metrics::OpScope timed(spec::time::StepOp::cross_entropy, spec::time::StepPass::forward);
  check_contiguous("cross_entropy", {all.top, all.sum, all.of_target, targets});
  return all.top.is_cpu() ? cpu::combine(all, targets, normalizer, terms)
                          : cuda::combine(all, targets, normalizer, terms);
}

at::Tensor row_losses(const at::Tensor& lse, const at::Tensor& of_target, const at::Tensor& targets) {
  const at::Tensor losses = lse.to(at::kDouble, /*non_blocking=*/false, /*copy=*/true).sub_(of_target);
  return losses.masked_fill_(targets.eq(spec::cross_entropy::ignore), 0);
}

namespace aten {
namespace {
Forward losses(const at::Tensor& lse, const at::Tensor& of_target, const at::Tensor& targets,
               const Normalizer& normalizer, const Terms& terms) {
  const at::Tensor valid = targets.ne(spec::cross_entropy::ignore), exact = lse.to(at::kDouble);
  const at::Tensor zero = at::zeros({}, exact.options()), divisor = normalizer.on(lse.device());
  return {at::where(valid, exact - of_target.to(at::kDouble), zero).sum().div_(divisor),
          at::where(valid, exact.square(), zero).sum().mul_(terms.z).div_(divisor), lse};
}

/// The logit of each row's target; any entry of the row where the target is none of its columns.
at::Tensor of_targets(const at::Tensor& logits, const at::Tensor& targets) {
  return logits.gather(1, targets.clamp_min(0).unsqueeze(1)).squeeze(1);
}
}  // namespace

Forward forward(const at::Tensor& logits, const at::Tensor& targets, const Normalizer& normalizer,
                const Terms& terms) {
  const at::Tensor wide = to_math(logits);
  return losses(at::logsumexp(wide, {1}), of_targets(wide, targets), targets, normalizer, terms);
}

Partial partial(const at::Tensor& logits, const at::Tensor& own_targets, const Terms&) {
  const at::Tensor wide = to_math(logits), sums = at::zeros({2, wide.size(0)}, wide.options());
  Partial own{at::full({wide.size(0)}, -INFINITY, wide.options()), sums[0], sums[1], sums};
  if (wide.size(1) == 0) return own;
  own.top = wide.amax(1);
  own.sum.copy_((wide - own.top.unsqueeze(1)).exp_().sum(1));
  own.of_target.copy_(of_targets(wide, own_targets).masked_fill_(own_targets.lt(0), 0));
  return own;
}

Forward combine(const Partial& all, const at::Tensor& targets, const Normalizer& normalizer,
                const Terms& terms) {
  return losses(all.sum.log().add_(all.top), all.of_target, targets, normalizer, terms);
}

at::Tensor backward(at::Tensor logits, const at::Tensor& targets, const at::Tensor& lse,
                    const Normalizer& normalizer, const Terms& terms) {
  if (logits.size(1) == 0) return logits;
  at::Tensor gradient = (to_math(logits) - lse.unsqueeze(1)).exp_();
  gradient.mul_((1 + 2 * terms.z * lse).unsqueeze(1));
  gradient.scatter_add_(1, targets.clamp_min(0).unsqueeze(1),
                        targets.ge(0).to(gradient.scalar_type()).neg_().unsqueeze(1));
  const at::Tensor share = normalizer.on(logits.device()).reciprocal().to(gradient.scalar_type());
  gradient.mul_(targets.ne(spec::cross_entropy::ignore).to(gradient.scalar_type()).mul_(share).unsqueeze(1));
  return logits.copy_(gradient);
}
}  // namespace aten

}  // namespace assay::impl::cross_entropy
