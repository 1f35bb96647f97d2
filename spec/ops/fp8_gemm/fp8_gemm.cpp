#include "spec/ops/fp8_gemm/fp8_gemm.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "spec/error.hpp"
#include "spec/tolerance.hpp"

namespace assay::spec::fp8_gemm {

namespace {

constexpr double u32 = unit_roundoff(Dtype::f32);

void check_lengths(const Operand& a, const Operand& b) {
  // fp8_gemm_c2
  const std::size_t K = a.values.size();
  require(b.values.size() == K && a.magnitudes.size() == K && b.magnitudes.size() == K, "fp8_gemm_c2", [&] {
    return "a has " + std::to_string(K) + " values and " + std::to_string(a.magnitudes.size()) +
           " magnitudes, b " + std::to_string(b.values.size()) + " and " +
           std::to_string(b.magnitudes.size());
  });
}

/// 2^bits below the exponent of `of`.
double quantum(double of, int bits) { return std::ldexp(1, std::ilogb(of) - bits); }

/// Toward zero to a multiple of the power of two `q`.
double cut_off(double x, double q) { return std::trunc(x / q) * q; }

/// The exponent that decides the alignment, as its power of two: of a product that of its factors' exponents
/// added, not that of the product.
double alignment(double a_magnitude, double b_magnitude) {
  return a_magnitude == 0 || b_magnitude == 0
             ? 0
             : std::ldexp(1, std::ilogb(a_magnitude) + std::ilogb(b_magnitude));
}

/// Calls visit(begin, end, whether the register is cleared behind it) for each group of [0, K).
template <class Visit>
void each_group(const TensorCore& core, std::int64_t K, const Visit& visit) {
  const std::int64_t chunk = core.promoted == 0 ? K : core.promoted;
  for (std::int64_t begin = 0; begin < K; begin += core.group) {
    const std::int64_t end = std::min(begin + core.group, K);
    visit(begin, end, end == K || end % chunk == 0);
  }
}

}  // namespace

const char* to_string(Accumulation accumulation) {
  switch (accumulation) {
    case Accumulation::fp32:
      return "fp32";
    case Accumulation::hopper:
      return "hopper";
    case Accumulation::hopper_fast:
      return "hopper_fast";
    case Accumulation::blackwell:
      return "blackwell";
  }
  return "";
}

TensorCore tensor_core(Accumulation accumulation) {
  // fp8_gemm_c1
  require(accumulation != Accumulation::fp32, "fp8_gemm_c1",
          [] { return std::string("fp32 is summed on paper, by no tensor core"); });
  if (accumulation == Accumulation::blackwell)
    return {.group = 32, .alignment_bits = 25, .register_bits = 23, .promoted = 0};
  return {.group = 32,
          .alignment_bits = 13,
          .register_bits = 13,
          .promoted = accumulation == Accumulation::hopper ? 128 : 0};
}

Operand operand(const quantise::Matrix& matrix, std::int64_t row) {
  Operand out;
  for (std::int64_t k = 0; k < matrix.columns; ++k) {
    const double value = matrix.value(row, k);
    const double least = quantise::least_normal(matrix.format) * matrix.scale(row, k);
    out.values.push_back(value);
    out.magnitudes.push_back(value == 0 ? 0 : std::max(std::abs(value), least));
  }
  return out;
}

double sum(Accumulation accumulation, const Operand& a, const Operand& b) {
  check_lengths(a, b);
  const auto K = static_cast<std::int64_t>(a.values.size());
  if (accumulation == Accumulation::fp32) {
    float total = 0;
    for (std::size_t k = 0; k < a.values.size(); ++k)
      total = static_cast<float>(total + a.values[k] * b.values[k]);
    return total;
  }
  const TensorCore core = tensor_core(accumulation);
  float promoted = 0;
  double in_register = 0;
  each_group(core, K, [&](std::int64_t begin, std::int64_t end, bool last) {
    double largest = in_register == 0 ? 0 : quantum(in_register, 0);
    for (auto k = static_cast<std::size_t>(begin); k < static_cast<std::size_t>(end); ++k)
      largest = std::max(largest, alignment(a.magnitudes[k], b.magnitudes[k]));
    if (largest > 0) {
      const double q = quantum(largest, core.alignment_bits);
      double added = cut_off(in_register, q);
      for (auto k = static_cast<std::size_t>(begin); k < static_cast<std::size_t>(end); ++k)
        added += cut_off(a.values[k] * b.values[k], q);
      in_register = added == 0 ? 0 : cut_off(added, quantum(added, core.register_bits));
    }
    if (last) {
      promoted =
          core.promoted == 0 ? static_cast<float>(in_register) : static_cast<float>(promoted + in_register);
      in_register = 0;
    }
  });
  return promoted;
}

double gemm_bound(Accumulation accumulation, std::int64_t K, double magnitudes) {
  if (accumulation == Accumulation::fp32) return gamma(static_cast<double>(K), u32) * magnitudes;
  const TensorCore core = tensor_core(accumulation);
  const auto parts = [](std::int64_t products, std::int64_t part) {
    const std::int64_t whole = (products + part - 1) / part;
    return static_cast<double>(whole);
  };
  const double of_step = static_cast<double>(core.group) * std::ldexp(1, -core.alignment_bits) +
                         std::ldexp(1, -core.register_bits);
  const double steps = parts(core.promoted == 0 ? K : std::min(core.promoted, K), core.group);
  const double additions = core.promoted == 0 ? 0 : parts(K, core.promoted);
  return (std::min(1.0, steps * of_step) + gamma(additions, u32)) * magnitudes;
}

double running_bound(Accumulation accumulation, const Operand& a, const Operand& b) {
  check_lengths(a, b);
  const auto K = static_cast<std::int64_t>(a.values.size());
  double magnitudes = 0;
  for (std::size_t k = 0; k < a.values.size(); ++k) magnitudes += a.magnitudes[k] * b.magnitudes[k];
  if (accumulation == Accumulation::fp32) return gemm_bound(accumulation, K, magnitudes);

  const TensorCore core = tensor_core(accumulation);
  const double aligned = static_cast<double>(core.group) * std::ldexp(1, -core.alignment_bits);
  double exact = 0, error = 0;                           // of the register
  double total_error = 0, partial_sums = 0, chunks = 0;  // of the fp32 sum
  each_group(core, K, [&](std::int64_t begin, std::int64_t end, bool last) {
    double largest = std::abs(exact) + error;
    for (auto k = static_cast<std::size_t>(begin); k < static_cast<std::size_t>(end); ++k) {
      largest = std::max(largest, a.magnitudes[k] * b.magnitudes[k]);
      exact += a.values[k] * b.values[k];
    }
    error += aligned * largest;
    error += std::ldexp(std::abs(exact) + error, -core.register_bits);
    if (last) {
      total_error += error;
      partial_sums += std::abs(exact) + error;
      ++chunks;
      exact = error = 0;
    }
  });
  if (core.promoted != 0) total_error += gamma(chunks, u32) * partial_sums;
  return total_error;
}

}  // namespace assay::spec::fp8_gemm
