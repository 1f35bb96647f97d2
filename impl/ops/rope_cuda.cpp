#include <ATen/ATen.h>

#include "impl/ops/cuda_tensor.hpp"
#include "impl/ops/rope.hpp"
#include "impl/ops/rope_launch.hpp"

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

}  // namespace assay::impl::rope::cuda
