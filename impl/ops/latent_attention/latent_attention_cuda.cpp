#include <ATen/ATen.h>

#include "impl/ops/cuda_tensor.hpp"
#include "impl/ops/latent_attention/latent_attention.hpp"
#include "impl/ops/latent_attention/latent_attention_launch.hpp"

namespace assay::impl::latent_attention::cuda {

namespace {
Arguments arguments(const at::Tensor& query, const at::Tensor& key_value, const at::Tensor& shared_key,
                    const at::Tensor& qkv, const Shape& s, Pairs pairs, const rope::Table& table,
                    const at::Tensor& positions) {
  return {.dtype = impl::cuda::dtype_of(qkv),
          .tokens = s.B * s.T,
          .T = s.T,
          .H = s.H,
          .E = s.E,
          .R = s.R,
          .W = s.W,
          .neighbours = pairs == Pairs::neighbours,
          .query = query.data_ptr(),
          .key_value = key_value.data_ptr(),
          .shared_key = shared_key.data_ptr(),
          .qkv = qkv.data_ptr(),
          .cosine = table.cosine.const_data_ptr(),
          .sine = table.sine.const_data_ptr(),
          .positions = positions.defined() ? positions.const_data_ptr<std::int32_t>() : nullptr};
}
}  // namespace

at::Tensor expand(const at::Tensor& query, const at::Tensor& key_value, const at::Tensor& shared_key,
                  const Shape& s, Pairs pairs, const rope::Table& table, const at::Tensor& positions) {
  at::Tensor qkv = at::empty({s.B * s.T, s.H * (2 * s.E + s.W)}, query.options());
  launch_forward(arguments(query, key_value, shared_key, qkv, s, pairs, table, positions),
                 impl::cuda::stream());
  return qkv;
}

Gradient expand_backward(const at::Tensor& dqkv, const Shape& s, Pairs pairs, const rope::Table& table,
                         const at::Tensor& positions) {
  const std::int64_t N = s.B * s.T;
  Gradient out{at::empty({N, s.H * s.E}, dqkv.options()),
               at::empty({N, s.H * (s.E - s.R + s.W)}, dqkv.options()), at::empty({N, s.R}, dqkv.options())};
  launch_backward(arguments(out.query, out.key_value, out.shared_key, dqkv, s, pairs, table, positions),
                  impl::cuda::stream());
  return out;
}

}  // namespace assay::impl::latent_attention::cuda
