#include <ATen/ATen.h>

#include "impl/ops/cuda_tensor.hpp"
#include "impl/ops/embedding/embedding.hpp"
#include "impl/ops/embedding/embedding_launch.hpp"
#include "spec/ops/embedding/vocabulary.hpp"

namespace assay::impl::embedding::cuda {

at::Tensor forward(const at::Tensor& table, const at::Tensor& ids) {
  at::Tensor y = at::empty({ids.numel(), table.size(1)}, table.options());
  launch_forward({.dtype = impl::cuda::dtype_of(table),
                  .N = ids.numel(),
                  .D = table.size(1),
                  .foreign = spec::foreign,
                  .table = table.const_data_ptr(),
                  .ids = ids.const_data_ptr<std::int64_t>(),
                  .y = y.data_ptr()},
                 impl::cuda::stream());
  return y;
}

void backward(const at::Tensor& dy, const at::Tensor& ids, at::Tensor dtable) {
  TORCH_CHECK(dtable.scalar_type() == impl::cuda::math_type(dy.scalar_type()), "embedding gradient of ",
              dy.scalar_type(), " cannot be summed in ", dtable.scalar_type());
  const auto [sorted, places] = at::sort(ids.flatten(), /*stable=*/true, 0, /*descending=*/false);
  launch_backward({.dtype = impl::cuda::dtype_of(dy),
                   .N = ids.numel(),
                   .D = dy.size(1),
                   .foreign = spec::foreign,
                   .dy = dy.const_data_ptr(),
                   .ids = sorted.const_data_ptr<std::int64_t>(),
                   .places = places.const_data_ptr<std::int64_t>(),
                   .dtable = dtable.data_ptr()},
                  impl::cuda::stream());
}

}  // namespace assay::impl::embedding::cuda
