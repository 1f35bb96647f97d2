#pragma once
// Grouped GEMMs of bf16, and of FP8 with a scale for each matrix, on GPUs of compute capability 9.0:
// CUTLASS's kernels whose sizes are read on the device.
#include "impl/ops/cuda_launch.hpp"

namespace assay::impl::grouped_linear::cuda {

/// What of a grouped linear is computed; X experts, R rows.
enum class Part {
  forward,          ///< left x [R, in], right weight [X out, in], result y [R, out] bf16
  input_gradient,   ///< left dy [R, out], right weight [X out, in], result dx [R, in] bf16
  weight_gradient,  ///< left dy [R, out], right x [R, in], result dweight [X out, in] fp32
};

enum class Type { bf16, e4m3, e5m2 };

struct Call {
  Part part;
  std::int64_t X, R, in, out;  ///< in and out multiples of 16 bytes
  const void *left, *right;    ///< bf16, on 16 bytes, or codes
  void* result;
  bool adds = false;         ///< the weight gradient is added to what is there
  const std::int32_t* ends;  ///< [X] rows behind the last of each expert
  /// Forward in FP8: left and right E4M3. Input gradient: left E5M2, right E4M3, transposed: [in, X out].
  Type left_type = Type::bf16;
  const float *left_scale = nullptr, *right_scale = nullptr;  ///< [1], of FP8
};

/// Whether this GPU runs them. Null where they are not compiled: for other GPUs, or without CUTLASS's
/// headers.
ASSAY_KERNEL bool available();

/// Bytes of scratch that a call takes.
ASSAY_KERNEL std::size_t scratch_bytes(const Call& call);

/// `scratch` on 256 bytes. Errors: UserError(bug) where CUTLASS refuses the call.
ASSAY_KERNEL void launch(const Call& call, void* scratch, cudaStream_t stream);

}  // namespace assay::impl::grouped_linear::cuda
