#include <ATen/ATen.h>

#include "impl/ops/bias/bias.hpp"
#include "impl/ops/bias/bias_launch.hpp"
#include "impl/ops/cuda_tensor.hpp"
#include "spec/ops/bias/bias.hpp"

namespace assay::impl::bias::cuda {

void backward(const at::Tensor& dy, at::Tensor dbias) {
  const std::int64_t N = dy.size(0), out = dy.size(1);
  const at::Tensor partial = at::empty({spec::bias::partial_rows(N), out}, dbias.options());
  launch_backward({.dtype = impl::cuda::dtype_of(dy),
                   .N = N,
                   .out = out,
                   .dy = dy.const_data_ptr(),
                   .dbias = dbias.data_ptr(),
                   .partial = partial.data_ptr(),
                   .partial_rows = partial.size(0)},
                  impl::cuda::stream());
}

}  // namespace assay::impl::bias::cuda
