#include <ATen/ATen.h>

#include "impl/ops/cuda_tensor.hpp"
#include "impl/ops/qk_norm/qk_norm.hpp"
#include "impl/ops/qk_norm/qk_norm_launch.hpp"

namespace assay::impl::qk_norm::cuda {

namespace {
Arguments arguments(const at::Tensor& qkv, const at::Tensor& q_gain, const at::Tensor& k_gain,
                    std::int64_t heads, std::int64_t kv_heads, const rope::Table& table,
                    const at::Tensor& positions) {
  return {.dtype = impl::cuda::dtype_of(qkv),
          .N = qkv.size(0) * qkv.size(1),
          .T = qkv.size(1),
          .heads = heads,
          .kv_heads = kv_heads,
          .E = qkv.size(3),
          .across_heads = q_gain.numel() != qkv.size(3) || k_gain.numel() != qkv.size(3),
          .qkv = qkv.const_data_ptr(),
          .q_gain = q_gain.const_data_ptr(),
          .k_gain = k_gain.const_data_ptr(),
          .cosine = table.cosine.const_data_ptr(),
          .sine = table.sine.const_data_ptr(),
          .positions = positions.defined() ? positions.const_data_ptr<std::int32_t>() : nullptr};
}
}  // namespace

Forward forward_rope(const at::Tensor& qkv, const at::Tensor& q_gain, const at::Tensor& k_gain,
                     std::int64_t heads, std::int64_t kv_heads, double eps, const rope::Table& table,
                     const at::Tensor& positions) {
  const Arguments given = arguments(qkv, q_gain, k_gain, heads, kv_heads, table, positions);
  if (!fits(given, given.qkv))
    return aten::forward_rope(qkv, q_gain, k_gain, heads, kv_heads, eps, table, positions);
  const auto statistic = qkv.options().dtype(impl::cuda::math_type(qkv.scalar_type()));
  Forward out{at::empty_like(qkv),
              at::empty({qkv.size(0), qkv.size(1), given.across_heads ? 2 : heads + kv_heads}, statistic)};
  launch_forward(given, eps, out.qkv.data_ptr(), out.rstd.data_ptr(), impl::cuda::stream());
  return out;
}

void backward_rope(at::Tensor dqkv, const at::Tensor& qkv, const at::Tensor& q_gain, const at::Tensor& k_gain,
                   const at::Tensor& rstd, std::int64_t heads, std::int64_t kv_heads, at::Tensor dq_gain,
                   at::Tensor dk_gain, const rope::Table& table, const at::Tensor& positions) {
  const Arguments given = arguments(qkv, q_gain, k_gain, heads, kv_heads, table, positions);
  if (!fits(given, dqkv.const_data_ptr()))
    return aten::backward_rope(dqkv, qkv, q_gain, k_gain, rstd, heads, kv_heads, dq_gain, dk_gain, table,
                               positions);
  const at::Tensor partial =
      given.across_heads ? at::empty({token_partial_rows, q_gain.numel() + k_gain.numel()}, rstd.options())
                         : at::empty({head_partial_rows, qkv.size(3)}, rstd.options());
  launch_backward(given, dqkv.data_ptr(), rstd.const_data_ptr(), partial.data_ptr(), dq_gain.data_ptr(),
                  dk_gain.data_ptr(), impl::cuda::stream());
}

}  // namespace assay::impl::qk_norm::cuda
