#pragma once
// Rounding facts from which every tolerance of the project is derived. Limits set beforehand stand in
// CONTRIBUTING.md.
//
// Classes (quoted by spec/ops/*.md):
//   T0  exact: integers, FLOP counts, copies, same-machine A/B
//   T1  k correctly rounded operations in a chain: |y' - y| <= gamma_k * |y|
//   T2  a sum of n terms t_i, each with k roundings: |y' - y| <= gamma_{n+k} * sum_i |t_i|
// Source: N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., lemma 3.1 and eq. (3.4),
// (3.5).
#include <cstdint>

namespace assay {

enum class Dtype { f64, f32, bf16 };

/// Unit roundoff u = 2^-p of round-to-nearest arithmetic with p significant bits (53, 24, 8). Dimensionless.
constexpr double unit_roundoff(Dtype dtype) {
  switch (dtype) {
    case Dtype::f64:
      return 0x1p-53;
    case Dtype::f32:
      return 0x1p-24;
    case Dtype::bf16:
      return 0x1p-8;
  }
  return 0;
}

/// "bf16"
constexpr const char* to_string(Dtype dtype) {
  switch (dtype) {
    case Dtype::f64:
      return "f64";
    case Dtype::f32:
      return "f32";
    case Dtype::bf16:
      return "bf16";
  }
  return "";
}

/// Bytes of one element. Unit: [B].
constexpr std::int64_t element_bytes(Dtype dtype) {
  switch (dtype) {
    case Dtype::f64:
      return 8;
    case Dtype::f32:
      return 4;
    case Dtype::bf16:
      return 2;
  }
  return 0;
}

/// gamma_n = n*u / (1 - n*u): the relative bound for n roundings with unit roundoff u (Higham, lemma 3.1).
/// Returns +infinity when n*u >= 1, where no bound exists.
constexpr double gamma(double n, double u) { return n * u < 1 ? n * u / (1 - n * u) : 1.0 / 0.0; }

}  // namespace assay
