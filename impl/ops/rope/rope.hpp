#pragma once
#include <ATen/core/Tensor.h>

#include <optional>
#include <vector>

namespace assay::impl::rope {

/// cos and sin of every angle, computed in double and rounded once. [spec/ops/rope/rope.md]
struct Table {
  at::Tensor cosine, sine;  ///< [positions, E/2], fp32 for bf16 compute, else the compute dtype
};

/// `inverse_frequencies` [E/2] from spec::rope::inverse_frequencies; angles position * inverse frequency.
/// Cosines and sines are multiplied by `factor` (spec::rope::Form), so that every kernel applies it.
Table table(const std::vector<double>& inverse_frequencies, std::int64_t positions, at::ScalarType compute,
            at::Device device, double factor = 1);

/// Errors: SpecError as rotate.
void check(const at::Tensor& x, std::int64_t rotated, const Table& table, const at::Tensor& positions);

/// Rotates heads [0, rotated) of x in place by the angle of each token's position, entries paired (e, e +
/// E/2). Shapes: x [B, T, heads, E] contiguous, positions [B, T] int32 or undefined (position of token t is
/// t). `inverse` rotates back, which is the backward pass. Errors: SpecError rope_c1, rope_c3, rope_c5,
/// rope_c6 (a position beyond the table).
void rotate(at::Tensor x, std::int64_t rotated, const Table& table, const at::Tensor& positions,
            bool inverse);

/// The gradient of qkv [B, T, H + 2K, E] before rope from those of its parts after it: dq [B, T, H, E] and dk
/// [B, T, K, E] rotated back, dv [B, T, K, E] as it is, side by side. Strides of the first three extents are
/// free. The same numbers as joining the parts and `rotate` give, in one pass over memory.
at::Tensor joined_backward(const at::Tensor& dq, const at::Tensor& dk, const at::Tensor& dv,
                           const Table& table, const at::Tensor& positions);

/// The implementations behind these functions, of the same meaning, arguments unchecked: `cpu` are fused
/// loops for CPU tensors, `cuda` our kernels and vendor libraries for CUDA tensors, `aten` is written in ATen
/// calls and runs on any device.
namespace cpu {
decltype(rope::rotate) rotate;
decltype(rope::joined_backward) joined_backward;
}  // namespace cpu
namespace cuda {
decltype(rope::rotate) rotate;
decltype(rope::joined_backward) joined_backward;
}  // namespace cuda
namespace aten {
decltype(rope::rotate) rotate;
decltype(rope::joined_backward) joined_backward;
}  // namespace aten

}  // namespace assay::impl::rope
