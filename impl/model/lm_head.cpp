#include "impl/model/lm_head.hpp"

#include <ATen/ATen.h>

#include <algorithm>

#include "impl/metrics/executed_flops.hpp"
#include "impl/ops/cross_entropy.hpp"

namespace assay::impl::lm_head {

namespace {
/// `matrix` with zero rows added at its end, or itself where none are to be added.
at::Tensor with_rows(const at::Tensor& matrix, std::int64_t rows) {
  if (matrix.size(0) == rows) return matrix;
  at::Tensor out = at::empty({rows, matrix.size(1)}, matrix.options());
  out.narrow(0, 0, matrix.size(0)).copy_(matrix);
  out.narrow(0, matrix.size(0), rows - matrix.size(0)).zero_();
  return out;
}
}  // namespace

Forward forward_backward(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& targets,
                         const Normalizer& normalizer, double z, at::Tensor dweight, linear::GradientSum sum,
                         std::int64_t limit) {
  const metrics::FlopScope scope(spec::FlopComponent::head);
  const std::int64_t N = x.size(0), V = weight.size(0);
  const std::int64_t padded = x.is_cuda() ? padded_vocabulary(V, x.element_size()) : V;
  const at::Tensor all_rows = with_rows(weight, padded);
  const at::Tensor d_all_rows =
      padded == V ? dweight : at::empty({padded, weight.size(1)}, dweight.options());
  const auto sum_of = [&](std::int64_t begin) {
    return begin > 0 ? linear::GradientSum::continues : padded == V ? sum : linear::GradientSum::starts;
  };
  const std::int64_t rows = chunk_tokens(N, padded, limit);
  Forward out;
  if (rows < N) out.dx = at::empty_like(x);
  for (std::int64_t begin = 0; begin < N; begin += rows) {
    const std::int64_t count = std::min(rows, N - begin);
    const at::Tensor part = x.narrow(0, begin, count), target = targets.narrow(0, begin, count);
    // The logits of added rows are 0 and stay so as gradients: the loss sees the vocabulary alone.
    const at::Tensor products = linear::forward(part, all_rows), logits = products.narrow(1, 0, V);
    const auto loss = cross_entropy::forward_backward(logits, target, normalizer, z);
    linear::backward_weight(products, part, d_all_rows, sum_of(begin));
    const at::Tensor dx = linear::backward_input(products, all_rows);
    if (rows < N)
      out.dx.narrow(0, begin, count).copy_(dx);
    else
      out.dx = dx;
    out.cross_entropy = begin == 0 ? loss.loss : out.cross_entropy + loss.loss;
    out.z_loss = begin == 0 ? loss.z_loss : out.z_loss + loss.z_loss;
  }
  if (padded != V && sum == linear::GradientSum::starts) dweight.copy_(d_all_rows.narrow(0, 0, V));
  if (padded != V && sum == linear::GradientSum::continues) dweight.add_(d_all_rows.narrow(0, 0, V));
  return out;
}

}  // namespace assay::impl::lm_head
