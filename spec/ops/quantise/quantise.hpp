#pragma once
// FP8: the two formats, scales, and which blocks of a matrix share one. Executable definition of every bit;
// equations, sources and worked examples: spec/ops/quantise/quantise.md.
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "spec/count.hpp"

namespace assay::spec::quantise {

/// E4M3 (the "fn" form: no infinities, largest finite 448) and E5M2 (largest finite 57,344).
enum class Format { e4m3, e5m2 };
const char* to_string(Format format);

double largest(Format format);
/// Below it values are subnormal: their steps no longer shrink. 2^-6 and 2^-14.
double least_normal(Format format);

/// The code of the nearest value, ties to the even one. Finite x beyond the largest finite value becomes that
/// value with x's sign (saturation); infinities and NaN become NaN with the sign bit 0: a value that is not
/// finite must show, not be hidden by saturation.
std::uint8_t encode(Format format, double x);
/// Value of a code; NaN and, for E5M2, infinities included.
double decode(Format format, std::uint8_t code);

/// The most that decode(encode(x)) differs from x, where |x| <= largest: a relative 2^-4 (E4M3) or 2^-3
/// (E5M2) of a normal x, else half the least subnormal value.
double cast_bound(Format format, double x);

/// Entries that share a scale: all of a matrix, a row, 1 x 128, 128 x 128 or 1 x 32 entries (OCP MX). The
/// last block of a row or column may be partial.
enum class Scaling { tensor, row, block_1x128, block_128x128, mx_1x32 };
const char* to_string(Scaling scaling);

/// Extents of a block in a matrix [rows, columns], and of the matrix of scales.
struct Blocks {
  std::int64_t block_rows = 0, block_columns = 0;
  std::int64_t rows = 0, columns = 0;  ///< of the matrix of scales

  /// Of an entry, the index of its scale.
  std::int64_t at(std::int64_t row, std::int64_t column) const {
    return row / block_rows * columns + column / block_columns;
  }
};
Blocks blocks(Scaling scaling, std::int64_t rows, std::int64_t columns);

/// Every scale is a power of two 2^e, so that scaling is exact: only the cast rounds. e is the least exponent
/// with amax <= largest(format) 2^e, at least `least_exponent`; 0 where amax is 0; none where amax is NaN or
/// infinite: then the scale is NaN, and so is every code of the block.
inline constexpr int least_exponent = -126;
std::optional<int> scale_exponent(Format format, double amax);

/// A matrix in FP8: value of entry (r, c) = decode(codes[r * columns + c]) * scale of its block.
struct Matrix {
  Format format = Format::e4m3;
  Scaling scaling = Scaling::tensor;
  std::int64_t rows = 0, columns = 0;
  std::vector<std::uint8_t> codes;  ///< [rows, columns]
  std::vector<double> scales;       ///< [blocks.rows, blocks.columns], 2^e or NaN

  double scale(std::int64_t row, std::int64_t column) const;
  double value(std::int64_t row, std::int64_t column) const;
};

/// Row-major [rows, columns]. Errors: SpecError quantise_c1 (values are not rows * columns).
Matrix quantise(std::span<const double> values, std::int64_t rows, std::int64_t columns, Format format,
                Scaling scaling);

/// compute.linear: what the GEMMs of block linears read. `none`: the compute type, nothing is quantised.
enum class Recipe { none, fp8_tensor, fp8_block, mxfp8 };
const char* to_string(Recipe recipe);

/// How one kind of tensor is quantised. Each orientation that a GEMM reads is quantised on its own, along
/// that GEMM's summed axis; where the scaling is the same both ways (tensor, 128 x 128) one is the transpose
/// of the other.
struct Quantisation {
  Format format = Format::e4m3;
  Scaling scaling = Scaling::tensor;
  bool operator==(const Quantisation&) const = default;
};
enum class Role { activation, weight, gradient };
/// Errors: SpecError quantise_c2 for Recipe::none.
Quantisation quantisation(Recipe recipe, Role role);

/// Whether the codes of a matrix's transpose are the transposed codes: tensor and 128 x 128.
bool same_both_ways(Scaling scaling);

/// What FP8 GEMMs need of a linear's extents: in and out (and the N tokens, the summed axis of the weight's
/// gradient) are multiples of 16; mxfp8: of 32; fp8_block: of 128. Errors: SpecError quantise_c3, naming the
/// extent and the nearest multiples.
void check(Recipe recipe, std::int64_t N, std::int64_t in, std::int64_t out);

/// Compulsory traffic of a matrix quantised in `orientations` (1 or 2) of its two: every entry read once, a
/// byte written for each orientation, and its scales: a byte each for mx_1x32, else 4. `element`: bytes of an
/// entry. Unit: [B].
Count bytes(std::int64_t rows, std::int64_t columns, Scaling scaling, int orientations, std::int64_t element);
/// One product with a scale for each entry and each quantisation of it (not for a transposed copy).
Flops flops(std::int64_t rows, std::int64_t columns, Scaling scaling, int orientations);

}  // namespace assay::spec::quantise
