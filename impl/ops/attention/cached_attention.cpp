#include "impl/ops/attention/cached_attention.hpp"

#include <ATen/ATen.h>

#include <limits>

#include "impl/metrics/executed_flops.hpp"

namespace assay::impl::attention {

at::Tensor of_newest(const at::Tensor& q, const at::Tensor& keys, const at::Tensor& values,
                     const at::Tensor& positions, std::int64_t window, double scale) {
  using enum spec::FlopComponent;
  const std::int64_t B = q.size(0), H = q.size(1), E = q.size(2), K = keys.size(1), S = keys.size(2),
                     W = values.size(3);
  metrics::FlopScope scope(attention_scores);
  // The H/K query heads of a key head are the rows of one GEMM.
  at::Tensor scores =
      at::bmm(q.to(keys.scalar_type()).reshape({B * K, H / K, E}), keys.view({B * K, S, E}).transpose(1, 2))
          .mul_(scale);
  const at::Tensor token = at::arange(S, positions.options()).view({1, 1, 1, S}),
                   newest = positions.view({B, 1, 1, 1});
  at::Tensor hidden = token.gt(newest);
  if (window > 0) hidden.logical_or_(token.le(newest - window));
  scores.view({B, K, H / K, S}).masked_fill_(hidden, -std::numeric_limits<double>::infinity());
  scope.enter(attention_values);
  return at::bmm(at::softmax(scores, -1), values.view({B * K, S, W})).view({B, 1, H, W}).to(q.scalar_type());
}

}  // namespace assay::impl::attention
