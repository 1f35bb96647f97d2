#include <ATen/ATen.h>

#include "impl/ops/cuda_tensor.hpp"
#include "impl/ops/rope/rope.hpp"
#include "impl/ops/rope/rope_launch.hpp"

namespace assay::impl::rope::cuda {

void rotate(at::Tensor x, std::int64_t rotated, const Table& table, const at::Tensor& positions,
            bool inverse) {
  launch({.dtype = impl::cuda::dtype_of(x),
          .tokens = x.size(0) * x.size(1),
          .T = x.size(1),
          .heads = x.size(2),
          .rotated = rotated,
          .E = x.size(3),
          .x = x.data_ptr(),
          .cosine = table.cosine.const_data_ptr(),
          .sine = table.sine.const_data_ptr(),
          .positions = positions.defined() ? positions.const_data_ptr<std::int32_t>() : nullptr,
          .inverse = inverse},
         impl::cuda::stream());
}

at::Tensor joined_backward(const at::Tensor& dq, const at::Tensor& dk, const at::Tensor& dv,
                           const Table& table, const at::Tensor& positions) {
  if (dq.stride(3) != 1 || dk.stride(3) != 1 || dv.stride(3) != 1)
    return aten::joined_backward(dq, dk, dv, table, positions);
  const auto part = [](const at::Tensor& x) {
    return Part{x.const_data_ptr(), x.size(2), x.stride(0), x.stride(1), x.stride(2)};
  };
  at::Tensor dqkv =
      at::empty({dq.size(0), dq.size(1), dq.size(2) + dk.size(2) + dv.size(2), dq.size(3)}, dq.options());
  launch({.dtype = impl::cuda::dtype_of(dq),
          .tokens = dq.size(0) * dq.size(1),
          .T = dq.size(1),
          .E = dq.size(3),
          .parts = {part(dq), part(dk), part(dv)},
          .out = dqkv.data_ptr(),
          .cosine = table.cosine.const_data_ptr(),
          .sine = table.sine.const_data_ptr(),
          .positions = positions.defined() ? positions.const_data_ptr<std::int32_t>() : nullptr},
         impl::cuda::stream());
  return dqkv;
}

}  // namespace assay::impl::rope::cuda
