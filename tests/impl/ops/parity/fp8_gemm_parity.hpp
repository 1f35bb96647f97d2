#pragma once
// GEMMs of FP8 matrices against sums over the decoded values, in double, on any device.
#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "impl/ops/gemm/fp8_gemm.hpp"
#include "spec/ops/fp8_gemm/fp8_gemm.hpp"
#include "tests/support/tensors.hpp"

namespace assay::impl::parity {

using quantise::Quantisation;
using quantise::Quantised;
using spec::quantise::Format;
using spec::quantise::Scaling;

/// The same matrix as the spec defines it and as the trainer holds it, on the CPU.
struct Fp8Matrix {
  spec::quantise::Matrix exact;
  Quantised given;
};

inline Quantised on(at::Device device, const Quantised& x) {
  return {.codes = x.codes.to(device), .scales = x.scales.to(device), .scaling = x.scaling};
}

/// N(0, 1) entries times powers of two that change every 16 rows and 32 columns: the scale of one block is
/// wrong for its neighbours.
inline at::Tensor uneven(std::int64_t rows, std::int64_t columns, std::uint64_t seed) {
  at::Tensor values = tests::normal({rows, columns}, seed, at::kDouble);
  auto* entry = values.data_ptr<double>();
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t column = 0; column < columns; ++column)
      *entry++ *= std::ldexp(1, static_cast<int>((row / 16 * 7 + column / 32 * 5) % 9) - 4);
  return values;
}

inline Fp8Matrix fp8_matrix(const at::Tensor& values, const Quantisation& quantisation) {
  const at::Tensor exact = values.to(at::kDouble).contiguous();
  return {spec::quantise::quantise({exact.const_data_ptr<double>(), static_cast<std::size_t>(exact.numel())},
                                   exact.size(0), exact.size(1), quantisation.format, quantisation.scaling),
          quantise::quantise(exact, quantisation, quantise::Orientation::rows).rows};
}

/// |computed sum - exact sum| before the result is stored.
using SumBound = std::function<double(const spec::fp8_gemm::Operand& a, const spec::fp8_gemm::Operand& b)>;

/// K products summed in any order by an element type's arithmetic, and one more term added.
inline SumBound plain_sums(at::ScalarType type) {
  return [rounding = tests::rounding_of(type)](const spec::fp8_gemm::Operand& a,
                                               const spec::fp8_gemm::Operand& b) {
    double terms = 0;
    for (std::size_t k = 0; k < a.values.size(); ++k) terms += std::abs(a.values[k] * b.values[k]);
    return rounding.gamma(static_cast<double>(a.values.size()) + 1) * terms;
  };
}

/// Actual and expected entries of a result and their bounds.
struct Fp8Compared {
  tests::Values actual, expected;
  std::vector<double> allowed;

  void add(double got, double wanted, double bound) {
    actual.data.push_back(got);
    expected.data.push_back(wanted);
    allowed.push_back(bound);
    actual.shape = expected.shape = {static_cast<std::int64_t>(allowed.size())};
  }
  testing::AssertionResult close() const {
    return tests::close(actual, expected, tests::Allowed::elementwise(allowed));
  }
  double share() const {
    return tests::largest_share(actual, expected, tests::Allowed::elementwise(allowed));
  }
};

/// out = a b^T + beta added, or + bias, on all entries of small results and 60 of large ones. `before`: what
/// was in `added`, on the CPU.
inline Fp8Compared compare_fp8(const spec::quantise::Matrix& a, const spec::quantise::Matrix& b,
                               const at::Tensor& out, const SumBound& bound, const at::Tensor& before = {},
                               double beta = 1, const at::Tensor& bias = {}) {
  const at::Tensor results = out.cpu().to(at::kDouble).contiguous(),
                   added = before.defined() ? before.to(at::kDouble).contiguous() : before,
                   biases = bias.defined() ? bias.cpu().to(at::kDouble).contiguous() : bias;
  const tests::Rounding rounding = tests::rounding_of(out.scalar_type());
  const std::int64_t M = a.rows, N = b.rows, entries = M * N;
  const std::int64_t step = entries <= 600 ? 1 : entries / 60 | 1;
  Fp8Compared compared;
  std::int64_t row = -1;
  spec::fp8_gemm::Operand left;
  std::map<std::int64_t, spec::fp8_gemm::Operand> rights;
  for (std::int64_t i = entries - 1; i >= 0; i -= step) {  // the last entry is one of them
    if (i / N != row) left = spec::fp8_gemm::operand(a, row = i / N);
    const auto [place, fresh] = rights.try_emplace(i % N);
    spec::fp8_gemm::Operand& right = place->second;
    if (fresh) right = spec::fp8_gemm::operand(b, i % N);
    double sum = 0;
    for (std::size_t k = 0; k < left.values.size(); ++k) sum += left.values[k] * right.values[k];
    double term = 0;
    if (added.defined() && beta != 0) term = beta * added.const_data_ptr<double>()[i];
    if (biases.defined()) term = biases.const_data_ptr<double>()[i % N];
    // The term is multiplied and added, two roundings.
    const double inner = bound(left, right),
                 outer = inner + rounding.gamma(2) * (std::abs(sum) + inner + std::abs(term));
    compared.add(results.const_data_ptr<double>()[i], sum + term, rounding.stored(sum + term, outer));
  }
  return compared;
}

}  // namespace assay::impl::parity
