#include "impl/model/lm_head.hpp"

#include <ATen/ATen.h>

#include <algorithm>

#include "impl/metrics/executed_flops.hpp"
#include "impl/ops/cross_entropy.hpp"
#include "impl/ops/linear.hpp"

namespace assay::impl::lm_head {

std::int64_t chunk_tokens(std::int64_t N, std::int64_t V, std::int64_t limit) {
  const std::int64_t most = std::max<std::int64_t>(1, limit / V), chunks = (N + most - 1) / most;
  if (chunks == 1) return N;
  constexpr std::int64_t tile = 128;  // rows of a matrix product's tile
  const std::int64_t even = (N + chunks - 1) / chunks;
  return most < tile ? most : std::min(most / tile * tile, (even + tile - 1) / tile * tile);
}

Forward forward_backward(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& targets,
                         double normalizer, double z, at::Tensor dweight, std::int64_t limit) {
  const metrics::FlopScope scope(spec::FlopComponent::head);
  const std::int64_t N = x.size(0), rows = chunk_tokens(N, weight.size(0), limit);
  Forward out;
  if (rows < N) out.dx = at::empty_like(x);
  for (std::int64_t begin = 0; begin < N; begin += rows) {
    const std::int64_t count = std::min(rows, N - begin);
    const at::Tensor part = x.narrow(0, begin, count), target = targets.narrow(0, begin, count);
    at::Tensor logits = linear::forward(part, weight);
    const auto loss = cross_entropy::forward(logits, target, normalizer, z);
    const at::Tensor d_logits = cross_entropy::backward(logits, target, loss.lse, normalizer, z);
    linear::backward_weight(d_logits, part, dweight);
    const at::Tensor dx = linear::backward_input(d_logits, weight);
    if (rows < N)
      out.dx.narrow(0, begin, count).copy_(dx);
    else
      out.dx = dx;
    out.cross_entropy = begin == 0 ? loss.loss : out.cross_entropy + loss.loss;
    out.z_loss = begin == 0 ? loss.z_loss : out.z_loss + loss.z_loss;
  }
  return out;
}

}  // namespace assay::impl::lm_head
