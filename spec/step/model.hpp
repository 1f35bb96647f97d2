#pragma once
// The whole step of one micro-batch, written once: embedding, L decoder blocks, final norm, head and loss;
// then backward through all of it. What an op set must bring: spec/step/op_set.hpp.
#include "spec/step/decoder.hpp"
#include "spec/step/head.hpp"

namespace assay::spec::step {

/// Residual stream [N, D] after the last block. `saved` may be null where no backward follows.
template <OpSet Ops>
ResidualStream<Ops> hidden(Ops& ops, Recompute recompute, Activations<Ops>* saved) {
  const std::int64_t L = ops.model().layers;
  ops.moment("forward of the embedding");
  ResidualStream<Ops> x{
      own_rows(ops, site::embedding, ops.embedding(site::embedding, ops.acquire(0).embedding)), {}};
  ops.release(0);
  if (saved) saved->blocks.resize(static_cast<std::size_t>(L));
  for (std::int64_t block = 1; block <= L; ++block) {
    ops.moment("forward of block", block);
    BlockActivations<Ops> discarded;
    BlockActivations<Ops>& kept = saved ? saved->blocks[static_cast<std::size_t>(block - 1)] : discarded;
    x = decoder_forward(ops, x, ops.acquire(block).decoder, saved ? recompute : Recompute::block, kept,
                        saved ? Losses::added : Losses::none);
    ops.release(block);
  }
  return x;
}

/// Forward of a micro-batch. The loss's gradient is taken at once, as far as the head, whose own is added to
/// the parameters'.
template <HeadOpSet Ops>
void forward(Ops& ops, Recompute recompute, Activations<Ops>& saved) {
  const std::int64_t end = ops.model().layers + 1;
  ResidualStream<Ops> stream = hidden(ops, recompute, &saved);
  ops.moment("the head");
  const auto weights = ops.acquire(end);
  Normed<Ops> norm = rms_norm(ops, site::norm_final, stream, weights.norm, weights.head, ReadBy::both);
  saved.x_final = std::move(stream.x);
  saved.rstd_final = norm.rstd;
  const typename Ops::Operand x = all_rows(ops, site::head, std::exchange(norm.y, {}));
  saved.d_normed_final =
      own_rows(ops, site::head, head_forward_backward(ops, x, weights.head, ops.gradients(end).head));
  ops.release(end);
}

/// Adds the gradients of one micro-batch's loss to the parameters' and consumes `saved`.
template <OpSet Ops>
void backward(Ops& ops, Activations<Ops> saved) {
  const std::int64_t end = ops.model().layers + 1;
  ops.moment("backward of the final norm");
  typename Ops::Tensor dx = ops.zeros_like(site::norm_final, saved.x_final);
  const auto final_weights = ops.acquire(end);
  const auto final_gradients = ops.gradients(end);
  dx = ops.rms_norm_backward(site::norm_final, std::exchange(saved.d_normed_final, {}),
                             std::exchange(saved.x_final, {}), final_weights.norm, saved.rstd_final,
                             std::move(dx), final_gradients.norm, final_weights.head, typename Ops::Operand{},
                             ForwardValue::unread)
           .dx;
  ops.release(end);
  ops.gradients_ready(end);
  for (std::int64_t block = end - 1; block >= 1; --block) {
    auto& own = saved.blocks[static_cast<std::size_t>(block - 1)];
    // Before the block's weights are acquired, which may begin to gather those of the next one.
    Upstream<Ops> upstream = begin_upstream(ops, block, dx, own);
    const auto weights = ops.acquire(block);
    dx = decoder_backward(ops, block, std::move(dx), std::move(upstream), weights.decoder,
                          ops.gradients(block).decoder, std::move(own));
    ops.release(block);
    ops.gradients_ready(block);
  }
  ops.moment("backward of the embedding");
  dx = all_rows(ops, site::embedding, std::move(dx));
  ops.embedding_backward(site::embedding, dx, ops.gradients(0).embedding);
  ops.gradients_ready(0);
  ops.run_deferred();
}

/// Logits of those rows of a batch that `read` takes of all [N, D], of this rank's part of the vocabulary;
/// nothing kept.
template <OpSet Ops, class Read>
typename Ops::Tensor logits(Ops& ops, const Read& read) {
  const std::int64_t end = ops.model().layers + 1;
  ResidualStream<Ops> x = hidden<Ops>(ops, Recompute::block, nullptr);
  ops.moment("logits");
  const auto weights = ops.acquire(end);
  const Normed<Ops> norm = rms_norm(ops, site::norm_final, x, weights.norm, weights.head, ReadBy::forward);
  const typename Ops::Operand rows = read(all_rows(ops, site::head, norm.y));
  typename Ops::Tensor out = ops.linear(site::head, rows, weights.head);
  ops.release(end);
  return out;
}
/// Logits [N, V] of all rows.
template <OpSet Ops>
typename Ops::Tensor logits(Ops& ops) {
  return logits(ops, [](typename Ops::Operand rows) { return rows; });
}

/// Cross-entropy of each token [N] of a micro-batch, 0 where its target is ignored: forward alone, of which
/// nothing is kept.
template <HeadOpSet Ops>
typename Ops::Tensor token_losses(Ops& ops) {
  const std::int64_t end = ops.model().layers + 1;
  ResidualStream<Ops> x = hidden<Ops>(ops, Recompute::block, nullptr);
  ops.moment("the head");
  const auto weights = ops.acquire(end);
  Normed<Ops> norm = rms_norm(ops, site::norm_final, x, weights.norm, weights.head, ReadBy::forward);
  x = {};
  const typename Ops::Operand rows = all_rows(ops, site::head, std::exchange(norm.y, {}));
  typename Ops::Tensor losses = head_token_losses(ops, rows, weights.head);
  ops.release(end);
  return losses;
}

}  // namespace assay::spec::step
