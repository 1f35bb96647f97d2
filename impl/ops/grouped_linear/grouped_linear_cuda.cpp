#include <ATen/ATen.h>

#include "impl/metrics/executed_flops.hpp"
#include "impl/ops/cuda_tensor.hpp"
#include "impl/ops/grouped_linear/grouped_gemm.hpp"
#include "impl/ops/grouped_linear/grouped_linear.hpp"

namespace assay::impl::grouped_linear::cuda {

bool has_kernels() {
  static const bool here = available && available();
  return here;
}

namespace {
void launch_on_stream(const Call& call, const at::Tensor& left) {
  const at::Tensor scratch =
      at::empty({static_cast<std::int64_t>(scratch_bytes(call))}, left.options().dtype(at::kByte));
  launch(call, scratch.data_ptr(), impl::cuda::stream());
  metrics::report_gemm(call.R, call.out, call.in);
}
}  // namespace

bool multiply(Part part, const at::Tensor& left, const at::Tensor& right, const at::Tensor& ends,
              at::Tensor result, bool adds) {
  if (!has_kernels()) return false;
  const bool of_weight = part == Part::weight_gradient;
  const at::Tensor& weight = of_weight ? result : right;
  launch_on_stream({.part = part,
                    .X = ends.size(0),
                    .R = left.size(0),
                    .in = weight.size(1),
                    .out = weight.size(0) / ends.size(0),
                    .left = left.const_data_ptr(),
                    .right = right.const_data_ptr(),
                    .result = result.data_ptr(),
                    .adds = adds,
                    .ends = ends.const_data_ptr<std::int32_t>()},
                   left);
  return true;
}

bool multiply(Part part, const quantise::Quantised& left, const quantise::Quantised& right,
              const at::Tensor& ends, at::Tensor result) {
  if (!has_kernels()) return false;
  const bool forward = part == Part::forward;
  launch_on_stream({.part = part,
                    .X = ends.size(0),
                    .R = left.rows(),
                    .in = forward ? right.columns() : right.rows(),
                    .out = (forward ? right.rows() : right.columns()) / ends.size(0),
                    .left = left.codes.const_data_ptr(),
                    .right = right.codes.const_data_ptr(),
                    .result = result.data_ptr(),
                    .ends = ends.const_data_ptr<std::int32_t>(),
                    .left_type = forward ? Type::e4m3 : Type::e5m2,
                    .left_scale = left.scales.const_data_ptr<float>(),
                    .right_scale = right.scales.const_data_ptr<float>()},
                   left.codes);
  return true;
}

}  // namespace assay::impl::grouped_linear::cuda
