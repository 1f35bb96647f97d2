#include <ATen/ATen.h>

#include "impl/ops/cuda_tensor.hpp"
#include "impl/ops/qk_norm/qk_norm.hpp"
#include "impl/ops/qk_norm/qk_norm_launch.hpp"

namespace assay::impl::qk_norm::cuda {

namespace {
Heads part(const at::Tensor& qkv, std::int64_t normed, std::int64_t first, std::int64_t count) {
  return {.dtype = impl::cuda::dtype_of(qkv),
          .N = qkv.size(0) * qkv.size(1),
          .all = qkv.size(2),
          .normed = normed,
          .first = first,
          .count = count,
          .E = qkv.size(3)};
}
}  // namespace

Forward forward(const at::Tensor& qkv, const at::Tensor& q_gain, const at::Tensor& k_gain, std::int64_t heads,
                std::int64_t kv_heads, double eps) {
  if (qkv.size(3) > longest_head) return aten::forward(qkv, q_gain, k_gain, heads, kv_heads, eps);
  const std::int64_t normed = heads + kv_heads;
  const auto statistic = qkv.options().dtype(impl::cuda::math_type(qkv.scalar_type()));
  Forward out{at::empty_like(qkv), at::empty({qkv.size(0), qkv.size(1), normed}, statistic)};
  const auto launch = [&](std::int64_t first, std::int64_t count, const at::Tensor& gain) {
    launch_forward(part(qkv, normed, first, count), eps, qkv.const_data_ptr(), gain.const_data_ptr(),
                   out.qkv.data_ptr(), out.rstd.data_ptr(), impl::cuda::stream());
  };
  launch(0, heads, q_gain);
  launch(heads, kv_heads, k_gain);
  out.qkv.narrow(2, normed, kv_heads).copy_(qkv.narrow(2, normed, kv_heads));
  return out;
}

void backward(at::Tensor dqkv, const at::Tensor& qkv, const at::Tensor& q_gain, const at::Tensor& k_gain,
              const at::Tensor& rstd, std::int64_t heads, std::int64_t kv_heads, at::Tensor dq_gain,
              at::Tensor dk_gain) {
  if (qkv.size(3) > longest_head)
    return aten::backward(dqkv, qkv, q_gain, k_gain, rstd, heads, kv_heads, dq_gain, dk_gain);
  const at::Tensor partial = at::empty({partial_rows, qkv.size(3)}, rstd.options());
  const auto launch = [&](std::int64_t first, std::int64_t count, const at::Tensor& gain, at::Tensor dgain) {
    launch_backward(part(qkv, heads + kv_heads, first, count), dqkv.data_ptr(), qkv.const_data_ptr(),
                    gain.const_data_ptr(), rstd.const_data_ptr(), partial.data_ptr(), dgain.data_ptr(),
                    impl::cuda::stream());
  };
  launch(0, heads, q_gain, dq_gain);
  launch(heads, kv_heads, k_gain, dk_gain);
}

}  // namespace assay::impl::qk_norm::cuda
