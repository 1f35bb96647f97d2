#pragma once
// What the step's template asks of an op set. The trainer's op set computes (impl/model/tensor_ops.hpp), the
// paper op set counts (spec/step/paper/paper_ops.hpp). Meaning, shapes and the reasons for the types:
// spec/step/step.md.
#include <concepts>
#include <cstdint>
#include <utility>

#include "spec/model/model_spec.hpp"
#include "spec/model/recompute.hpp"
#include "spec/step/parameters.hpp"
#include "spec/step/site.hpp"

namespace assay::spec::step {

/// Result of a norm: what GEMMs read, and the statistic that backward reads.
template <class Ops>
struct Normed {
  typename Ops::Operand y;
  typename Ops::Tensor rstd;
};

/// Backward of a norm: dx with the gradient of its input, and forward's value where the step reads it.
template <class Ops>
struct NormGradient {
  typename Ops::Tensor dx;
  typename Ops::Operand value;
};

/// The residual stream [N/t, D] on its way to the norm behind: x, and the residual that is still to be added
/// to it where x is the sum of several tensor ranks, else undefined.
template <class Ops>
struct ResidualStream {
  typename Ops::Tensor x, residual;
};

/// Result of qk_norm with rope behind it.
template <class Ops>
struct QkNormed {
  typename Ops::Tensor qkv, rstd;
};

/// Backward of the gated activation: the gradient of its input and the value of its forward, kept or made
/// again.
template <class Ops>
struct GateGradient {
  typename Ops::Operand d_gate_up, gated;
};

/// The same of rows that are weighted, with the gradient of their weights.
template <class Ops>
struct WeightedGateGradient {
  typename Ops::Operand d_gate_up, gated;
  typename Ops::Tensor d_weights;
};

/// Backward of the shared experts, whose first weight's gradient waits for the norm's value.
template <class Ops>
struct SharedGradient {
  typename Ops::Operand d_gate_up;
  typename Ops::Tensor d_normed;
};

/// The projection down of keys and values: what its norm reads, and the key that all heads share.
template <class Ops>
struct LatentSplit {
  typename Ops::Tensor key_value, shared_key;
};

/// Gradients of what q | k | v of latent attention are made of.
template <class Ops>
struct LatentGradient {
  typename Ops::Tensor query, key_value, shared_key;
};

/// Whether the step reads the value of forward that an op's backward can make again.
enum class ForwardValue { read, unread };

/// Which GEMMs read a value of forward: that of its linear, its weight's gradient in backward, or both. In
/// FP8 each reads a twin of its own (spec/ops/quantise/quantise.md).
enum class ReadBy { forward, weight_gradient, both };

template <class Ops>
using DecoderWeights = DecoderParameters<typename Ops::Weight, typename Ops::Vector>;
template <class Ops>
using DecoderGradients = DecoderParameters<typename Ops::Gradient, typename Ops::VectorGradient>;

/// Which GEMMs read a value of forward that backward needs again: where it is not kept, backward makes its
/// own.
constexpr ReadBy readers(bool kept) { return kept ? ReadBy::both : ReadBy::forward; }

/// Tokens [begin, begin + count) of the head's work. `times`: how many such chunks this one stands for, 1
/// where each is computed.
struct Chunk {
  std::int64_t begin = 0, count = 0, times = 1;
  bool first = true;
};

/// Four kinds of tensors, so that mixing them up does not compile: Tensor, activations and gradients;
/// Operand, what a GEMM reads, in the type and layout that it reads; Weight, a matrix of the model; Gradient,
/// where a weight's gradient is summed. Vector: a gain or bias; VectorGradient: where its gradient is summed.
/// Heads: q, k and v as attention reads them, HeadGradients: their gradients, side by side or apart.
/// Attention: y and lse of attention's forward with what its backward needs beside them. Routing: which
/// experts each token visits, how much each counts, and where its rows stand among those of each expert.
template <class Ops>
concept OpSet = requires(Ops& ops, const Site& site, const typename Ops::Tensor& x,
                         typename Ops::Tensor& into, typename Ops::Tensor taken,
                         const typename Ops::Operand& operand, typename Ops::Operand kept,
                         const typename Ops::Weight& weight, const typename Ops::Gradient& gradient,
                         const typename Ops::Vector& vector, const typename Ops::VectorGradient& dvector,
                         const typename Ops::Attention& attention, typename Ops::Attention attended,
                         typename Ops::Heads heads, typename Ops::HeadGradients head_gradients,
                         const typename Ops::Routing& routing) {
  { ops.model() } -> std::same_as<const ModelSpec&>;

  // Parameters by block: the verbs of a layout. gradients_ready is called once per block and micro-batch, in
  // the order L+1, L, ..., 0.
  { ops.acquire(0) } -> std::same_as<BlockParameters<typename Ops::Weight, typename Ops::Vector>>;
  { ops.gradients(0) } -> std::same_as<BlockParameters<typename Ops::Gradient, typename Ops::VectorGradient>>;
  ops.release(0);
  ops.gradients_ready(0);

  // The gradient of a weight, computed from what the closure owns: at once, or behind the next collective
  // that begins (spec/step/deferred.hpp); and the end of a backward pass, behind which none is left.
  ops.defer([] {});
  ops.run_deferred();

  // Context: a name for what runs from here on, and that what runs in a scope is forward again.
  ops.moment("forward of block", 1, "");
  ops.recompute();

  // Tensor parallelism: t ranks, each with 1/t of every matrix, and N/t of the rows of the residual stream.
  // Collectives begin and are waited for apart, so that other work may run between; with one rank both give
  // back what they were given. A rank's rows are neighbours, in the order of the ranks.
  { ops.tensor_ranks() } -> std::same_as<std::int64_t>;
  { ops.wait(ops.begin_all_gather(site, x)) } -> std::same_as<typename Ops::Tensor>;
  { ops.wait(ops.begin_all_gather(site, operand)) } -> std::same_as<typename Ops::Operand>;
  { ops.wait(ops.begin_reduce_scatter(site, taken)) } -> std::same_as<typename Ops::Tensor>;

  // Shared by all.
  // Where a tensor becomes what GEMMs read. The weight that they read beside it says in which type: compute
  // type or FP8. An upstream gradient is read by the input's and the weight's gradient.
  { ops.gradient_operand(site, x, weight) } -> std::same_as<typename Ops::Operand>;
  // What the weight's gradient reads of a value of forward: all that is kept for backward.
  { ops.kept(operand) } -> std::same_as<typename Ops::Operand>;
  { ops.zeros_like(site, x) } -> std::same_as<typename Ops::Tensor>;
  ops.add(site, into, x);  // of two gradients, into the first

  { ops.embedding(site, weight) } -> std::same_as<typename Ops::Tensor>;
  ops.embedding_backward(site, x, gradient);

  { ops.rms_norm(site, x, vector, weight, ReadBy::both) } -> std::same_as<Normed<Ops>>;
  // The same of the sum: into += x in the norm's pass.
  { ops.rms_norm_of_sum(site, into, x, vector, weight, ReadBy::both) } -> std::same_as<Normed<Ops>>;
  // dx + gradient of the norm's input, in dx's memory where nothing else holds that; and forward's value for
  // the weight's gradient: `kept`, or made again where the step reads it.
  {
    ops.rms_norm_backward(site, taken, x, vector, x, taken, dvector, weight, kept, ForwardValue::read)
    } -> std::same_as<NormGradient<Ops>>;

  { ops.linear(site, operand, weight) } -> std::same_as<typename Ops::Tensor>;
  // The GEMM adds the bias in its write-back; an undefined one is none.
  { ops.linear(site, operand, weight, vector) } -> std::same_as<typename Ops::Tensor>;
  { ops.linear_residual(site, x, operand, weight) } -> std::same_as<typename Ops::Tensor>;
  { ops.linear_input_gradient(site, operand, weight) } -> std::same_as<typename Ops::Tensor>;
  ops.linear_weight_gradient(site, operand, operand, gradient);
  ops.bias_gradient(site, x, dvector);

  // q and k turned by rope: normalised first and into a new tensor, or as they are and in place.
  { ops.qk_norm_rope(site, x, vector, vector) } -> std::same_as<QkNormed<Ops>>;
  ops.qk_norm_rope_backward(site, into, x, vector, vector, x, dvector, dvector);
  ops.rope(site, into);
  // q, k and v of all heads as views of q | k | v of each token.
  { ops.heads(taken) } -> std::same_as<typename Ops::Heads>;
  { ops.attention(site, heads) } -> std::same_as<typename Ops::Attention>;
  { ops.attention_operand(site, attention, weight, ReadBy::both) } -> std::same_as<typename Ops::Operand>;
  { ops.attention_backward(site, taken, heads, attended) } -> std::same_as<typename Ops::HeadGradients>;
  // The gradients of q | k | v of each token: as they are, or with q and k turned back.
  { ops.together(head_gradients) } -> std::same_as<typename Ops::Tensor>;
  { ops.rope_backward(site, head_gradients) } -> std::same_as<typename Ops::Tensor>;

  // Latent attention. [N, Ckv + R] in its two parts, and their gradients side by side; q | k | v of all heads
  // from the projections up and the shared key, and back.
  { ops.latent_split(site, x) } -> std::same_as<LatentSplit<Ops>>;
  { ops.latent_join(site, taken, taken) } -> std::same_as<typename Ops::Tensor>;
  { ops.latent_expand(site, x, x, x) } -> std::same_as<typename Ops::Tensor>;
  { ops.latent_expand_backward(site, taken) } -> std::same_as<LatentGradient<Ops>>;

  { ops.gate(site, x, weight, ReadBy::both) } -> std::same_as<typename Ops::Operand>;
  // Weights: gate_up, which reads the gradient, and down, which reads forward's value.
  { ops.gate_backward(site, taken, taken, kept, weight, weight) } -> std::same_as<GateGradient<Ops>>;

  // A mixture of experts. `route`: by the router's weight and its bias, undefined where the model has none.
  // Rows [N A, ...] stand by expert, `permute` takes each token's row there, `combine`
  // adds the rows of each token to its row of a tensor [N, D], or to nothing where that is undefined.
  { ops.route(site, operand, weight, vector) } -> std::same_as<typename Ops::Routing>;
  // Adds what the router's auxiliary losses and loads are of this micro-batch to the op set's.
  ops.router_losses(site, routing);
  // The gradient of the logits from that of the weights of rows and from auxiliary losses, as GEMMs with the
  // router's weight read it.
  { ops.router_gradient(site, taken, routing, weight) } -> std::same_as<typename Ops::Operand>;
  { ops.permute(site, operand, routing, Pass::forward) } -> std::same_as<typename Ops::Operand>;
  { ops.combine(site, x, x, routing, Pass::forward) } -> std::same_as<typename Ops::Tensor>;
  // Expert parallelism: e ranks, of which each holds 1/e of the experts. A token goes once to every rank that
  // holds one of its experts: [N, D] of this rank's tokens becomes [M, D] of those that visit this rank, in
  // the order of the ranks that they come from. `route` has exchanged their choices, so that permute, combine
  // and the grouped GEMMs work on what arrived, with this rank's experts. What comes back, [S, D] of the S
  // visits of this rank's tokens, add_returned adds up for each token. With one rank each of the other three
  // gives back what it was given, and add_returned is not called.
  { ops.expert_ranks() } -> std::same_as<std::int64_t>;
  {
    ops.wait(ops.begin_dispatch(site, operand, routing, Pass::forward))
    } -> std::same_as<typename Ops::Operand>;
  { ops.wait(ops.begin_return(site, taken, routing)) } -> std::same_as<typename Ops::Tensor>;
  { ops.add_returned(site, x, x, routing, Pass::forward) } -> std::same_as<typename Ops::Tensor>;
  // What there is of each choice of an expert, [S, A] of which each rank gave its own, as [N, A].
  { ops.returned_weights(site, taken, routing) } -> std::same_as<typename Ops::Tensor>;
  { ops.grouped_linear(site, operand, weight, routing) } -> std::same_as<typename Ops::Tensor>;
  { ops.grouped_input_gradient(site, operand, weight, routing) } -> std::same_as<typename Ops::Tensor>;
  ops.grouped_weight_gradient(site, operand, operand, gradient, routing);
  { ops.weighted_gate(site, x, routing, weight, ReadBy::both) } -> std::same_as<typename Ops::Operand>;
  {
    ops.weighted_gate_backward(site, taken, taken, kept, routing, weight, weight)
    } -> std::same_as<WeightedGateGradient<Ops>>;
};

/// What the LM head asks beside it: it stays in the compute type where blocks do not.
template <class Ops>
concept HeadOpSet = OpSet<Ops> &&
    requires(Ops& ops, const Site& site, const typename Ops::Tensor& x, typename Ops::Tensor& into,
             const typename Ops::Operand& operand, const typename Ops::Weight& weight,
             const typename Ops::Gradient& gradient, const Chunk& chunk) {
  // Rows up to what fast GEMMs take; the weight and its gradient themselves where no row is added. Without a
  // gradient, of the weight alone.
  { ops.padded_head(weight, gradient) } -> std::same_as<typename Ops::PaddedHead>;
  ops.add_padded_gradient(std::declval<typename Ops::PaddedHead>(), gradient);
  { ops.head_tokens(operand) } -> std::same_as<std::int64_t>;
  { ops.chunk_logits() } -> std::same_as<std::int64_t>;  // most logits that exist at a time
  ops.chunks(0, 0);                                      // a range of Chunk
  { ops.rows(operand, chunk) } -> std::same_as<typename Ops::Operand>;
  { ops.empty_like(site, operand) } -> std::same_as<typename Ops::Tensor>;
  ops.copy_rows(into, chunk, x);
  // Adds the chunk's loss to the op set's; the logits become their gradient. The result lives until the
  // chunk is done.
  { ops.cross_entropy(site, into, chunk) } -> std::same_as<typename Ops::ChunkLoss>;
  // Writes the loss of each of the chunk's tokens to its place in `into`, [N] in fp64, which the first chunk
  // makes. Nothing is added to the op set's losses.
  ops.token_losses(site, x, chunk, into);
};

/// Norm of the stream, which is complete behind it.
template <OpSet Ops>
Normed<Ops> rms_norm(Ops& ops, const Site& site, ResidualStream<Ops>& stream,
                     const typename Ops::Vector& gain, const typename Ops::Weight& weight, ReadBy readers) {
  if (!stream.residual.defined()) return ops.rms_norm(site, stream.x, gain, weight, readers);
  Normed<Ops> norm = ops.rms_norm_of_sum(site, stream.x, stream.residual, gain, weight, readers);
  stream.residual = typename Ops::Tensor{};
  return norm;
}

}  // namespace assay::spec::step
