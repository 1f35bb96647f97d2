#include <ATen/ATen.h>

#include "impl/ops/cross_entropy/cross_entropy.hpp"
#include "impl/ops/cross_entropy/cross_entropy_launch.hpp"
#include "impl/ops/cuda_tensor.hpp"
#include "spec/ops/cross_entropy/cross_entropy.hpp"

namespace assay::impl::cross_entropy::cuda {

using impl::cuda::dtype_of;
using impl::cuda::math_type;
using impl::cuda::stream;

namespace {
/// [N] or [2, N] numbers about rows of `logits`.
at::Tensor of_rows(const at::Tensor& logits, at::IntArrayRef sizes) {
  return at::empty(sizes, logits.options().dtype(math_type(logits.scalar_type())));
}

/// terms [2, N] as launch_forward and launch_combine leave them.
void sum_up(const at::Tensor& terms, const at::Tensor& divisor, const Terms& of, Forward& out) {
  const at::Tensor sums = terms.sum(1);
  out.loss = sums[0].div(divisor);
  out.z_loss = sums[1].mul(of.z).div_(divisor);
}

RowArguments rows_of(const at::Tensor& logits, const at::Tensor& targets, const Terms& of) {
  return {.dtype = dtype_of(logits),
          .N = logits.size(0),
          .V = logits.size(1),
          .apart = logits.stride(0),
          .ignore = spec::cross_entropy::ignore,
          .of = of,
          .logits = logits.const_data_ptr(),
          .targets = targets.const_data_ptr<std::int64_t>()};
}

/// What forward gives, and where its kernel writes.
struct Rows {
  Forward out;
  at::Tensor terms;
  ForwardArguments arguments;
  Rows(const at::Tensor& logits, const at::Tensor& targets, const Terms& of)
      : terms(at::empty({2, logits.size(0)}, logits.options().dtype(at::kDouble))) {
    out.lse = of_rows(logits, {logits.size(0)});
    arguments = {
        .rows = rows_of(logits, targets, of), .lse = out.lse.data_ptr(), .terms = terms.data_ptr<double>()};
  }
  Forward summed(const at::Tensor& divisor) {
    sum_up(terms, divisor, arguments.rows.of, out);
    return out;
  }
};
}  // namespace

Forward forward(const at::Tensor& logits, const at::Tensor& targets, const Normalizer& normalizer,
                const Terms& of) {
  Rows rows(logits, targets, of);
  launch_forward(rows.arguments, stream());
  return rows.summed(normalizer.on(logits.device()));
}

Partial partial(const at::Tensor& logits, const at::Tensor& own_targets, const Terms& of) {
  const std::int64_t N = logits.size(0);
  const at::Tensor sums = of_rows(logits, {2, N});
  const Partial own{of_rows(logits, {N}), sums[0], sums[1], sums};
  launch_partial({.rows = rows_of(logits, own_targets, of),
                  .top = own.top.data_ptr(),
                  .sum = own.sum.data_ptr(),
                  .of_target = own.of_target.data_ptr()},
                 stream());
  return own;
}

Forward combine(const Partial& all, const at::Tensor& targets, const Normalizer& normalizer,
                const Terms& of) {
  Forward out;
  out.lse = at::empty_like(all.top);
  const at::Tensor terms = at::empty({2, all.top.numel()}, all.top.options().dtype(at::kDouble));
  launch_combine({.dtype = dtype_of(all.top),
                  .N = all.top.numel(),
                  .ignore = spec::cross_entropy::ignore,
                  .top = all.top.const_data_ptr(),
                  .sum = all.sum.const_data_ptr(),
                  .of_target = all.of_target.const_data_ptr(),
                  .targets = targets.const_data_ptr<std::int64_t>(),
                  .lse = out.lse.data_ptr(),
                  .terms = terms.data_ptr<double>()},
                 stream());
  sum_up(terms, normalizer.on(all.top.device()), of, out);
  return out;
}

Forward forward_backward(at::Tensor logits, const at::Tensor& targets, const Normalizer& normalizer,
                         const Terms& of) {
  Rows rows(logits, targets, of);
  const at::Tensor divisor = normalizer.on(logits.device());
  launch_forward_backward(rows.arguments, logits.data_ptr(), divisor.const_data_ptr<double>(), stream());
  return rows.summed(divisor);
}

at::Tensor backward(at::Tensor logits, const at::Tensor& targets, const at::Tensor& lse,
                    const Normalizer& normalizer, const Terms& of) {
  const at::Tensor divisor = normalizer.on(logits.device());
  launch_backward({.rows = rows_of(logits, targets, of),
                   .logits = logits.data_ptr(),
                   .lse = lse.const_data_ptr(),
                   .normalizer = divisor.const_data_ptr<double>()},
                  stream());
  return logits;
}

}  // namespace assay::impl::cross_entropy::cuda
