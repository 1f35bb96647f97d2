#pragma once
// Matrices in FP8 on a device: codes and scales as GEMMs read them.              [spec/ops/quantise.md]
#include <ATen/core/Tensor.h>

#include "spec/ops/quantise.hpp"

namespace assay::impl::quantise {

using spec::quantise::Format;
using spec::quantise::Quantisation;
using spec::quantise::Scaling;

/// One orientation of a matrix in FP8. Value of an entry = code * scale of its block.
struct Quantised {
  at::Tensor codes;  ///< [rows, columns], contiguous, Float8_e4m3fn or Float8_e5m2; the summed axis last
  /// In the order in which cuBLASLt reads them on a GPU, which is that of every device here:
  /// tensor: fp32 [1]; row: fp32 [rows]; block_1x128: fp32 [ceil(columns / 128), rows padded to 4];
  /// block_128x128: fp32 [rows / 128, columns / 128 padded to 4]; mx_1x32: UE8M0 bytes (kByte), tiles of 128
  /// rows by 4 scales.
  at::Tensor scales;
  Scaling scaling = Scaling::tensor;

  bool defined() const { return codes.defined(); }
  std::int64_t rows() const { return codes.size(0); }
  std::int64_t columns() const { return codes.size(1); }
};

/// Both orientations of x [R, C]: `rows` is [R, C], `columns` is its transpose [C, R]. Either may be
/// undefined.
struct Twins {
  Quantised rows, columns;
};

enum class Orientation { rows, columns, both };

/// Largest |x|, fp32 [1] on x's device; not finite where any entry is not. x [R, C], contiguous.
at::Tensor amax(const at::Tensor& x);

/// x [R, C] contiguous (bf16, fp32 or fp64) in FP8, the bits of spec::quantise::quantise for `rows` and of
/// the transpose for `columns`. `amax`: for Scaling::tensor, where the kernel that made x has it already
/// (amax(x)); otherwise it is found here.
Twins quantise(const at::Tensor& x, const Quantisation& quantisation, Orientation orientation,
               const at::Tensor& amax = {});

/// Values [rows, columns] in `type`, which must hold them exactly (bf16 does: 4 significant bits and a power
/// of two).
at::Tensor dequantise(const Quantised& x, at::ScalarType type);

/// The scales as a matrix [blocks.rows, blocks.columns] of doubles on the CPU, for comparison with the spec.
at::Tensor scale_matrix(const Quantised& x);

}  // namespace assay::impl::quantise
