#include <ATen/ATen.h>

#include "impl/metrics/executed_flops.hpp"
#include "impl/ops/cuda_tensor.hpp"
#include "impl/ops/grouped_linear/grouped_gemm.hpp"
#include "impl/ops/grouped_linear/grouped_linear.hpp"

namespace assay::impl::grouped_linear::cuda {

#ifdef ASSAY_CUTLASS

bool has_kernels() {
  static const bool here = available();
  return here;
}

bool multiply(Part part, const at::Tensor& left, const at::Tensor& right, const at::Tensor& ends,
              at::Tensor result, bool adds) {
  if (!has_kernels()) return false;
  const bool of_weight = part == Part::weight_gradient;
  const at::Tensor& weight = of_weight ? result : right;
  const Call call{.part = part,
                  .X = ends.size(0),
                  .R = left.size(0),
                  .in = weight.size(1),
                  .out = weight.size(0) / ends.size(0),
                  .left = left.const_data_ptr(),
                  .right = right.const_data_ptr(),
                  .result = result.data_ptr(),
                  .adds = adds,
                  .ends = ends.const_data_ptr<std::int32_t>()};
  const at::Tensor scratch =
      at::empty({static_cast<std::int64_t>(scratch_bytes(call))}, left.options().dtype(at::kByte));
  launch(call, scratch.data_ptr(), impl::cuda::stream());
  metrics::report_gemm(call.R, call.out, call.in);
  return true;
}

#else

bool has_kernels() { return false; }

bool multiply(Part, const at::Tensor&, const at::Tensor&, const at::Tensor&, at::Tensor, bool) {
  return false;
}

#endif

}  // namespace assay::impl::grouped_linear::cuda
