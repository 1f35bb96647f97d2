// labels: property
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "reference/model/model.hpp"
#include "spec/flops/exact.hpp"
#include "spec/ops/attention/attention.hpp"
#include "spec/ops/bias/bias.hpp"
#include "spec/ops/cross_entropy/cross_entropy.hpp"
#include "spec/ops/embedding/embedding.hpp"
#include "spec/ops/grouped_linear/grouped_linear.hpp"
#include "spec/ops/latent_attention/latent_attention.hpp"
#include "spec/ops/linear/linear.hpp"
#include "spec/ops/permute/permute.hpp"
#include "spec/ops/qk_norm/qk_norm.hpp"
#include "spec/ops/rms_norm/rms_norm.hpp"
#include "spec/ops/rope/rope.hpp"
#include "spec/ops/router/router.hpp"
#include "spec/ops/shared_expert/shared_expert.hpp"
#include "spec/ops/swiglu/swiglu.hpp"
#include "tests/support/draw.hpp"
#include "tests/support/model_parameters.hpp"
#include "tests/support/tiny_models.hpp"

// The whole model executes the arithmetic of its ops, and the sums that join them, and nothing else.

namespace assay::reference::flops_test {
namespace {

struct Passes {
  Flops forward, backward;
  Passes operator+(const Passes& other) const { return {forward + other.forward, backward + other.backward}; }
};

/// n additions in each pass.
Passes sums(Count forward, Count backward) { return {{0, forward}, {0, backward}}; }

Passes linear(Index N, Index in, Index out) {
  const spec::linear::Shape shape{.N = N, .in = in, .out = out};
  return {spec::linear::forward_flops(shape), spec::linear::backward_flops(shape)};
}

Passes rms_norm(Index N, Index D) {
  const spec::rms_norm::Shape shape{.N = N, .D = D};
  return {spec::rms_norm::forward_flops(shape), spec::rms_norm::backward_flops(shape)};
}

Passes rope(const Batch& batch, Index heads, Index E) {
  const spec::rope::Shape shape{.B = batch.B, .T = batch.T, .H = heads, .E = E};
  return {spec::rope::forward_flops(shape), spec::rope::backward_flops(shape)};
}

Passes attention_of(const spec::ModelSpec& m, const Batch& batch) {
  const spec::attention::Shape shape{
      .B = batch.B, .T = batch.T, .H = m.heads, .K = m.kv_heads, .E = m.head_dim};
  const spec::attention::Mask mask{batch.documents, m.window};
  return {spec::attention::forward_flops(shape, mask),
          spec::attention::backward_flops(shape, mask) + spec::attention::recomputed_flops(shape, mask)};
}

Passes qk_norm_of(const spec::ModelSpec& m, const Batch& batch) {
  if (!m.qk_norm) return {};
  const spec::qk_norm::Shape shape{.B = batch.B,
                                   .T = batch.T,
                                   .H = m.heads,
                                   .K = m.kv_heads,
                                   .E = m.head_dim,
                                   .across_heads = m.qk_norm_across_heads};
  return {spec::qk_norm::forward_flops(shape), spec::qk_norm::backward_flops(shape)};
}

Passes biases_of(const spec::ModelSpec& m, const Batch& batch) {
  if (!m.qkv_bias) return {};
  const spec::bias::Shape shape{.N = batch.B * batch.T, .out = (m.heads + 2 * m.kv_heads) * m.head_dim};
  return {spec::bias::forward_flops(shape), spec::bias::backward_flops(shape)};
}

Passes swiglu_of(const spec::ModelSpec& m, Index N, Index F) {
  const spec::swiglu::Shape shape{.N = N, .F = F};
  const auto activation = spec::swiglu::activation_of(m.mlp);
  return {spec::swiglu::forward_flops(shape, activation), spec::swiglu::backward_flops(shape, activation)};
}

Passes grouped_linear(Index R, Index in, Index out, Index X) {
  const spec::grouped_linear::Shape shape{.R = R, .in = in, .out = out, .X = X};
  return {spec::grouped_linear::forward_flops(shape), spec::grouped_linear::backward_flops(shape)};
}

/// A drop-less mixture of experts without auxiliary losses.
Passes experts_of(const spec::ModelSpec& m, const Batch& batch) {
  const spec::Experts& e = *m.experts;
  const Index N = batch.B * batch.T, D = m.width, R = N * e.active;
  const spec::router::Shape router{.N = N, .D = D};
  Passes all{spec::router::forward_flops(router, e), spec::router::backward_flops(router, e, {})};
  all = all + Passes{{}, spec::permute::backward_flops(R, D)} +
        Passes{spec::permute::unpermute_forward_flops(R, D), spec::permute::unpermute_backward_flops(R, D)};
  all = all + grouped_linear(R, D, 2 * e.width, e.count) + swiglu_of(m, R, e.width) +
        grouped_linear(R, e.width, D, e.count);
  // The router's gradient of x is added to the experts', and so is the shared expert's.
  all = all + sums(0, Count(N) * D);
  if (e.shared_width == 0) return all;
  const spec::shared_expert::Shape shared{.N = N, .D = D, .S = e.shared_width};
  const auto activation = spec::swiglu::activation_of(m.mlp);
  return all + sums(0, Count(N) * D) +
         Passes{spec::shared_expert::forward_flops(shared, activation),
                spec::shared_expert::backward_flops(shared, activation)};
}

Passes mlp_of(const spec::ModelSpec& m, const Batch& batch) {
  const Index N = batch.B * batch.T, D = m.width, F = m.ffn;
  return linear(N, D, F) + linear(N, D, F) + linear(N, F, D) + swiglu_of(m, N, F);
}

/// Latent attention, with the scores that its backward makes again.
Passes latent_attention_of(const spec::ModelSpec& m, const Batch& batch) {
  const auto shape = spec::latent_attention::shape_of(m, batch.B, batch.T);
  const spec::attention::Mask mask{batch.documents, m.window};
  return {spec::latent_attention::forward_flops(shape, mask),
          spec::latent_attention::backward_flops(shape, mask) +
              spec::attention::recomputed_flops(spec::latent_attention::attention_of(shape), mask)};
}

/// From the normed input to the output projection's input.
Passes attended_by(const spec::ModelSpec& m, const Batch& batch) {
  const Index N = batch.B * batch.T, D = m.width, H = m.heads, K = m.kv_heads, E = m.head_dim;
  if (m.latent) return latent_attention_of(m, batch);
  const Passes projected = linear(N, D, H * E) + linear(N, D, K * E) + linear(N, D, K * E);
  return projected + biases_of(m, batch) + qk_norm_of(m, batch) + rope(batch, H, E) + rope(batch, K, E) +
         attention_of(m, batch);
}

Passes block_of(const spec::ModelSpec& m, const Batch& batch, bool sparse) {
  const Index N = batch.B * batch.T, D = m.width;
  Passes all = rms_norm(N, D) + attended_by(m, batch) + linear(N, m.heads * m.value_dim(), D);
  all = all + rms_norm(N, D) + (sparse ? experts_of(m, batch) : mlp_of(m, batch));
  // Two residual sums in each pass. q, k and v are one GEMM, gate and up another: no sums of their dx.
  return all + sums(2 * Count(N) * D, 2 * Count(N) * D);
}

Passes model_of(const spec::ModelSpec& m, const Batch& batch) {
  const Index N = batch.B * batch.T, D = m.width, V = m.vocab, valid = batch.valid_tokens();
  const spec::embedding::Shape embedding{.N = N, .V = V, .D = D};
  const spec::cross_entropy::Shape loss{.N = N, .V = V};
  Passes all;
  for (Index layer = 0; layer < m.layers; ++layer) all = all + block_of(m, batch, m.sparse(layer));
  all = all + rms_norm(N, D) + linear(N, D, V);
  all = all + Passes{spec::embedding::forward_flops(embedding), spec::embedding::backward_flops(embedding)};
  all = all + Passes{spec::cross_entropy::forward_flops(loss, valid),
                     spec::cross_entropy::backward_flops(loss, valid)};
  // The two gradients of a tied embedding are added.
  return all + sums(0, m.tied_embeddings ? Count(V) * D : Count(0));
}

void expect_the_flops_of_the_ops(const spec::ModelSpec& model, std::uint64_t seed) {
  const auto batch = tests::tiny_batch(model, seed);
  Parameters<Counted> parameters;
  for (const auto& [name, tensor] : tests::drawn_parameters(model, seed))
    parameters[name] = tests::counted(tensor);

  const model::Loss loss{.normalizer = 7, .z_loss = 1e-3};
  model::Forward<Counted> saved;
  const Count forward = tests::operations_of([&] { saved = model::forward(parameters, model, batch, loss); });
  const Count backward =
      tests::operations_of([&] { model::backward(saved, parameters, model, batch, loss); });
  const Passes expected = model_of(model, batch);
  RC_ASSERT(forward == expected.forward.matmul + expected.forward.vector);
  RC_ASSERT(backward == expected.backward.matmul + expected.backward.vector);
}

RC_GTEST_PROP(ModelFlopsReference, TheModelExecutesExactlyItsOpsAndTheSumsBetweenThem, (std::uint64_t seed)) {
  expect_the_flops_of_the_ops(tests::tiny_model(seed), seed);
}

RC_GTEST_PROP(ModelFlopsReference, SoDoesAMixtureOfExperts, (std::uint64_t seed)) {
  expect_the_flops_of_the_ops(tests::routed_model(seed), seed);
}

RC_GTEST_PROP(ModelFlopsReference, SoDoesOneOfLatentAttention, (std::uint64_t seed)) {
  expect_the_flops_of_the_ops(*rc::gen::elementOf(tests::latent_models()), seed);
}

RC_GTEST_PROP(ModelFlopsReference, MatmulFlopsWithoutRecomputeAreTheExactCountOfMfu, (std::uint64_t seed)) {
  const auto m = *rc::gen::arbitrary<bool>() ? tests::tiny_model(seed) : tests::routed_model(seed);
  const auto B = *rc::gen::inRange<Index>(1, 4), T = *rc::gen::inRange<Index>(1, 10);
  const auto batch = tests::tiny_batch(m, B, T, tests::Documents::whole, tests::Ignored::some, seed);
  const auto exact = spec::exact_flops(m, T);
  const spec::attention::Shape shape{.B = B, .T = T, .H = m.heads, .K = m.kv_heads, .E = m.head_dim};
  const Count recomputed = m.layers * spec::attention::recomputed_flops(shape, {.window = m.window}).matmul;
  const Passes executed = model_of(m, batch);
  RC_ASSERT(executed.forward.matmul == B * exact.of(spec::Pass::forward));
  RC_ASSERT(executed.backward.matmul == B * exact.of(spec::Pass::backward) + recomputed);
}

}  // namespace
}  // namespace assay::reference::flops_test
