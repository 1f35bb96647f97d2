#pragma once
// The LM head and the loss together, in chunks of tokens: of the logits, V numbers for every token, only a
// chunk exists at any time. A chunk's gradient is taken while its logits are there, so that nothing is
// computed twice.
#include "spec/memory/head.hpp"
#include "spec/step/op_set.hpp"

namespace assay::spec::step {

/// Loss of the logits x W^T, summed in the op set, and its gradients: returns that of x [N, D], adds the
/// weight's to `gradient`. x [N, D].
template <HeadOpSet Ops>
typename Ops::Tensor head_forward_backward(Ops& ops, const typename Ops::Operand& x,
                                           const typename Ops::Weight& weight,
                                           const typename Ops::Gradient& gradient) {
  const typename Ops::PaddedHead padded = ops.padded_head(weight, gradient);
  const std::int64_t N = ops.head_tokens(x), most = memory::chunk_tokens(N, padded.rows, ops.chunk_logits());
  const bool whole = most == N;
  const Site& at = whole ? site::head : site::head_chunk;
  typename Ops::Tensor dx;
  if (!whole) dx = ops.empty_like(site::head, x);
  for (const Chunk& chunk : ops.chunks(N, most)) {
    const typename Ops::Operand part = ops.rows(x, chunk);
    typename Ops::Tensor logits = ops.linear(at, part, padded.weight);
    const typename Ops::ChunkLoss loss = ops.cross_entropy(site::cross_entropy, logits, chunk);
    const typename Ops::Operand d_logits = ops.gradient_operand(at, logits, padded.weight);
    ops.linear_weight_gradient(at, d_logits, part,
                               chunk.first ? padded.gradient : padded.gradient.continued());
    typename Ops::Tensor d_part = ops.linear_input_gradient(at, d_logits, padded.weight);
    if (whole)
      dx = std::move(d_part);
    else
      ops.copy_rows(dx, chunk, d_part);
  }
  ops.add_padded_gradient(padded, gradient);
  return dx;
}

/// Losses of all tokens [N] of the logits x W^T, of which a chunk exists at a time; no gradient. x [N, D].
template <HeadOpSet Ops>
typename Ops::Tensor head_token_losses(Ops& ops, const typename Ops::Operand& x,
                                       const typename Ops::Weight& weight) {
  const typename Ops::PaddedHead padded = ops.padded_head(weight, typename Ops::Gradient{});
  const std::int64_t N = ops.head_tokens(x), most = memory::chunk_tokens(N, padded.rows, ops.chunk_logits());
  typename Ops::Tensor losses;
  for (const Chunk& chunk : ops.chunks(N, most)) {
    const typename Ops::Operand part = ops.rows(x, chunk);
    const typename Ops::Tensor logits =
        ops.linear(most == N ? site::head : site::head_chunk, part, padded.weight);
    ops.token_losses(site::cross_entropy, logits, chunk, losses);
  }
  return losses;
}

}  // namespace assay::spec::step
