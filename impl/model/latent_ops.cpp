// The trainer's ops of latent attention.
#include <ATen/ATen.h>

#include <utility>

#include "impl/model/tensor_ops.hpp"
#include "impl/ops/latent_attention/latent_attention.hpp"
#include "spec/ops/latent_attention/latent_attention.hpp"
#include "spec/ops/rope/rope.hpp"

namespace assay::impl {

spec::step::LatentSplit<TensorOps> TensorOps::latent_split(const Site& site, const Tensor& down) {
  auto parts = run(site, {}, [&] { return latent_attention::split(down, model().latent->rope_dim); });
  return {std::move(parts.key_value), std::move(parts.shared_key)};
}

at::Tensor TensorOps::latent_join(const Site& site, Tensor key_value, Tensor shared_key) {
  return run(site, {}, [&] { return latent_attention::join(key_value, shared_key); });
}

at::Tensor TensorOps::latent_expand(const Site& site, const Tensor& query, const Tensor& key_value,
                                    const Tensor& shared_key) {
  return run(site, {}, [&] {
    return latent_attention::expand(
        query, key_value, shared_key,
        spec::latent_attention::shape_of(model(), context_.batch.B, context_.batch.T),
        spec::rope::form_of(model()).pairs, context_.rope_table, context_.batch.positions);
  });
}

spec::step::LatentGradient<TensorOps> TensorOps::latent_expand_backward(const Site& site, Tensor d_qkv) {
  auto d = run(site, {}, [&] {
    return latent_attention::expand_backward(
        d_qkv, spec::latent_attention::shape_of(model(), context_.batch.B, context_.batch.T),
        spec::rope::form_of(model()).pairs, context_.rope_table, context_.batch.positions);
  });
  return {std::move(d.query), std::move(d.key_value), std::move(d.shared_key)};
}

}  // namespace assay::impl
