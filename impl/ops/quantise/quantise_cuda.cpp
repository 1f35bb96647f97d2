#include <ATen/ATen.h>

#include "impl/ops/cuda_tensor.hpp"
#include "impl/ops/quantise/quantise.hpp"
#include "impl/ops/quantise/quantise_target.hpp"

namespace assay::impl::quantise::cuda {

using impl::cuda::dtype_of;
using impl::cuda::stream;

void raise_amax(const at::Tensor& x, const at::Tensor& amax) {
  const Target target{.amax = amax.data_ptr<float>()};
  launch_amax(MatrixSource{dtype_of(x), x.const_data_ptr()}, {x.size(0), x.size(1), &target, 1, stream()});
}

void transpose(const at::Tensor& rows, const at::Tensor& columns) {
  const Target target{.width = rows.size(1), .columns = static_cast<std::uint8_t*>(columns.data_ptr())};
  launch_transpose(rows.const_data_ptr(), {rows.size(0), rows.size(1), &target, 1, stream()});
}

void write(const at::Tensor& x, const Quantisation& quantisation, const at::Tensor& amax,
           const Twins& twins) {
  const std::int64_t R = x.size(0), C = x.size(1);
  const Target target = target_of(twins, quantisation.format, C, 0, amax);
  launch_quantise(MatrixSource{dtype_of(x), x.const_data_ptr()}, quantisation.scaling,
                  {R, C, &target, 1, stream()});
}

}  // namespace assay::impl::quantise::cuda
