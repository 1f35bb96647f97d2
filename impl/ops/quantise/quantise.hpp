#pragma once
// Matrices in FP8 on a device: codes and scales as GEMMs read them. [spec/ops/quantise/quantise.md]
#include <ATen/core/Tensor.h>

#include "spec/ops/quantise/quantise.hpp"

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

/// Largest |x|, fp32 [1] on x's device; not finite where any entry is not. x [R, C], contiguous. fp64 is
/// rounded up, which changes no scale's exponent; beyond fp32's range it is infinite, as scales are fp32.
at::Tensor amax(const at::Tensor& x);
/// `amax` = the larger of itself and amax(x), so that several parts of a matrix find that of the whole.
void raise_amax(const at::Tensor& x, const at::Tensor& amax);

/// x [R, C] contiguous (bf16, fp32 or fp64) in FP8, the bits of spec::quantise::quantise for `rows` and of
/// the transpose for `columns`. `amax`: for Scaling::tensor, where the kernel that made x has it already
/// (amax(x)); otherwise it is found here.
Twins quantise(const at::Tensor& x, const Quantisation& quantisation, Orientation orientation,
               const at::Tensor& amax = {});

/// Both orientations of x into the memory of `into`, which is made where it is not there yet. `amax`: as of
/// `quantise`.
void quantise_into(const at::Tensor& x, const Quantisation& quantisation, Twins& into,
                   const at::Tensor& amax = {});

/// Part of a matrix with one scale: the codes of x [R, C] and the matrix's scale into the memory of `rows`.
/// `amax`: of the whole matrix. x may be empty.
void quantise_part(const at::Tensor& x, const Quantisation& quantisation, const at::Tensor& amax,
                   const Quantised& rows);

/// The other orientation of a matrix with one scale, which both share: bit for bit that of quantise.
Quantised transposed(const Quantised& x);

/// Values [rows, columns] in `type`, rounded only where `type` lacks the exponent (bf16 and fp32 have the 4
/// significant bits; a value may be as large as 2^128 and as small as 2^-142).
at::Tensor dequantise(const Quantised& x, at::ScalarType type);

/// The scales as a matrix [blocks.rows, blocks.columns] of doubles on the CPU, for comparison with the spec.
at::Tensor scale_matrix(const Quantised& x);

/// Codes and scales to be written, padding of the scales zero; of a tensor, both orientations share its
/// scale.
Quantised unwritten(std::int64_t rows, std::int64_t columns, const Quantisation& quantisation,
                    at::Device device);
Twins unwritten_twins(std::int64_t R, std::int64_t C, const Quantisation& quantisation,
                      Orientation orientation, at::Device device);

/// The implementations behind these functions: `cpu` are loops for CPU tensors, `cuda` kernels for CUDA
/// tensors, arguments unchecked. `write` fills the codes and scales of those orientations that are defined;
/// amax is given where the scaling is that of a tensor. The kernels read bf16 and fp32, and know no
/// Scaling::row: no recipe has it.
namespace cpu {
decltype(quantise::raise_amax) raise_amax;
/// Bytes [R, C] to [C, R].
void transpose(const at::Tensor& rows, const at::Tensor& columns);
decltype(quantise::dequantise) dequantise;
void write(const at::Tensor& x, const Quantisation& quantisation, const at::Tensor& amax, const Twins& twins);
}  // namespace cpu
namespace cuda {
decltype(quantise::raise_amax) raise_amax;
void transpose(const at::Tensor& rows, const at::Tensor& columns);
void write(const at::Tensor& x, const Quantisation& quantisation, const at::Tensor& amax, const Twins& twins);
}  // namespace cuda

}  // namespace assay::impl::quantise
