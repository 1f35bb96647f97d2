#pragma once
// How GEMMs of FP8 matrices sum their products, and how far that is from the exact sum: the accumulators as
// functions, and bounds of their error. Sources and derivation: spec/ops/fp8_gemm/fp8_gemm.md.
#include <cstdint>
#include <vector>

#include "spec/ops/quantise/quantise.hpp"

namespace assay::spec::fp8_gemm {

/// What a running sum is kept in.
enum class Accumulation {
  fp32,         ///< on paper: every addition rounded to fp32
  hopper,       ///< tensor cores of sm_90, partial sums of 128 products added in fp32
  hopper_fast,  ///< the same, all of K in the tensor core's register
  blackwell     ///< tcgen05 of sm_100
};
const char* to_string(Accumulation accumulation);

/// A tensor core adds a group of products to its register at once: it cuts each of them and the register's
/// value off `alignment_bits` below the largest one's exponent, adds exactly, and cuts the sum off
/// `register_bits` below its own exponent. Every `promoted` products (0: never) the register is added to an
/// fp32 sum and cleared.
struct TensorCore {
  std::int64_t group = 32;
  int alignment_bits = 0, register_bits = 0;
  std::int64_t promoted = 0;
};
/// Errors: SpecError fp8_gemm_c1 for Accumulation::fp32.
TensorCore tensor_core(Accumulation accumulation);

/// What a GEMM reads of one matrix for an entry of its result: K values along the summed axis.
struct Operand {
  std::vector<double> values;      ///< decode(code) * scale
  std::vector<double> magnitudes;  ///< max(|value|, least normal * scale), 0 where the value is 0: tensor
                                   ///< cores align a subnormal value as if it were the least normal one
};
/// Row `row` of a matrix.
Operand operand(const quantise::Matrix& matrix, std::int64_t row);

/// sum_k a_k b_k as the accumulation computes it, k ascending. Errors: SpecError fp8_gemm_c2 (lengths).
double sum(Accumulation accumulation, const Operand& a, const Operand& b);

/// |sum - exact| of any inputs, in any order of groups and of fp32 additions: coefficient(K) times
/// `magnitudes`, the sum over k of the products of a's and b's magnitudes. The result's own rounding (to bf16
/// or fp32) is not in it.
double gemm_bound(Accumulation accumulation, std::int64_t K, double magnitudes);

/// |sum - exact| of these inputs, k ascending: follows the register's size instead of bounding it by all of
/// K, which makes it tighter by an order of magnitude. Errors: SpecError fp8_gemm_c2 (lengths).
double running_bound(Accumulation accumulation, const Operand& a, const Operand& b);

}  // namespace assay::spec::fp8_gemm
