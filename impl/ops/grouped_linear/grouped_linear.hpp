#pragma once
#include <ATen/core/Tensor.h>

#include "impl/ops/linear/linear.hpp"

namespace assay::impl::grouped_linear {

/// A linear of X weights, each for a range of rows: rows [ends[e-1], ends[e]) of x belong to weight e. Any
/// number of rows may belong to a weight, none as well.                      [spec/ops/grouped_linear.md]
/// Shapes: x [R, in], weight [X out, in], ends [X] int32 ascending to R -> y [R, out]. Meaning of R, X, in,
/// out as here in every function. In bf16 on a GPU no size is read back by the CPU.
/// Rows behind the last end belong to none and are not computed.
at::Tensor forward(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& ends);

/// dy [R, out] -> dx [R, in].
at::Tensor backward_input(const at::Tensor& dy, const at::Tensor& weight, const at::Tensor& ends);

/// dweight[e] += dy[rows of e]^T x[rows of e], or = where the sum starts; then those of a weight without
/// rows are 0. dweight [X out, in] as linear::backward_weight.
void backward_weight(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& ends, at::Tensor dweight,
                     linear::GradientSum sum);

/// Whether the GEMMs of such rows read `ends` on the GPU, our own and ATen's grouped ones, which take bf16
/// rows of whole 16 bytes: then all R rows are counted as FLOPs. Of all else the CPU reads `ends` and calls
/// group by group.
bool rows_known_on_device_alone(at::Device device, at::ScalarType type, std::int64_t in, std::int64_t out);

namespace cuda {
enum class Part;
/// One of the three by our own kernels, CUTLASS's, into `result` [R, ...] or [X out, in]; `left` and `right`
/// as grouped_gemm.hpp says, bf16, contiguous, extents of whole 16 bytes. False, nothing written, where this
/// GPU or build has none.
bool multiply(Part part, const at::Tensor& left, const at::Tensor& right, const at::Tensor& ends,
              at::Tensor result, bool adds = false);
}  // namespace cuda

}  // namespace assay::impl::grouped_linear
