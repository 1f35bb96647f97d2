#pragma once
#include <ATen/core/Tensor.h>

#include "impl/ops/linear/linear.hpp"
#include "impl/ops/quantise/quantise.hpp"

namespace assay::impl::grouped_linear {

/// A linear of X weights, each for a range of rows: rows [ends[e-1], ends[e]) of x belong to weight e. Any
/// number of rows may belong to a weight, none as well. [spec/ops/grouped_linear/grouped_linear.md] Shapes: x
/// [R, in], weight [X out, in], ends [X] int32 ascending to R -> y [R, out]. Meaning of R, X, in, out as here
/// in every function. The CPU does not wait for `ends` in bf16 with in and out multiples of 8 on GPUs of
/// compute capability 9.0 (our kernels, or ATen's in a build without CUTLASS) and 10.0 (ATen's). Elsewhere it
/// reads `ends` and calls one GEMM an expert: so does ATen's grouped GEMM on other GPUs. Rows behind the last
/// end belong to none and are not computed.
at::Tensor forward(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& ends);

/// dy [R, out] -> dx [R, in].
at::Tensor backward_input(const at::Tensor& dy, const at::Tensor& weight, const at::Tensor& ends);

/// The same of matrices in FP8 with a scale for each (Scaling::tensor): x [R, in] and weight [X out, in] in
/// E4M3; of the input's gradient dy [R, out] in E5M2 and `transposed` [in, X out] in E4M3. -> `type`. On GPUs
/// of compute capability 9.0 to bf16 by kernels of our own, extents multiples of 16; elsewhere exact products
/// of the FP8 values, summed as `type` sums, which the trainer takes on CPUs alone. Weights' gradients sum
/// over an expert's rows, which no FP8 GEMM takes at any number: they read values.
at::Tensor forward(const quantise::Quantised& x, const quantise::Quantised& weight, const at::Tensor& ends,
                   at::ScalarType type);
at::Tensor backward_input(const quantise::Quantised& dy, const quantise::Quantised& transposed,
                          const at::Tensor& ends, at::ScalarType type);

/// dweight[e] += dy[rows of e]^T x[rows of e], or = where the sum starts; then those of a weight without
/// rows are 0. dweight [X out, in] as linear::backward_weight.
void backward_weight(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& ends, at::Tensor dweight,
                     linear::GradientSum sum);

/// Whether such rows are given to a grouped GEMM, our own or ATen's, which take bf16 rows of whole 16 bytes:
/// then all R rows are counted as FLOPs. Of all else the GEMMs are called expert by expert here.
bool rows_known_on_device_alone(at::Device device, at::ScalarType type, std::int64_t in, std::int64_t out);

namespace cuda {
/// Whether this GPU (of compute capability 9.0) and this build (with CUTLASS) have kernels of our own. They
/// add weight gradients in fp32; ATen's grouped GEMM rounds each to bf16 first.
bool has_kernels();

enum class Part;
/// One of the three by our own kernels, CUTLASS's, into `result` [R, ...] or [X out, in]; `left` and `right`
/// as grouped_gemm.hpp says, bf16, contiguous, extents of whole 16 bytes. False, nothing written, without
/// kernels.
bool multiply(Part part, const at::Tensor& left, const at::Tensor& right, const at::Tensor& ends,
              at::Tensor result, bool adds = false);
/// Forward or the input's gradient in FP8, `result` bf16.
bool multiply(Part part, const quantise::Quantised& left, const quantise::Quantised& right,
              const at::Tensor& ends, at::Tensor result);
}  // namespace cuda

}  // namespace assay::impl::grouped_linear
