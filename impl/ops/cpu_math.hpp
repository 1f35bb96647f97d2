#pragma once
// What the fused CPU loops of the ops share: arithmetic type of an element, an exponential that the compiler
// can vectorise, loops over rows in parallel, sums whose order does not depend on the number of threads.
#include <ATen/Parallel.h>
#include <c10/core/ScalarType.h>
#include <c10/util/BFloat16.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

namespace assay::impl::cpu {

/// Type in which an element is computed with: float for bf16, else the element's own.
template <class T>
using Math = std::conditional_t<std::is_same_v<T, at::BFloat16>, float, T>;

/// at::ScalarType of statistics and gradients kept beside tensors of `type`: fp32 for bf16, else the same.
inline at::ScalarType math_type(at::ScalarType type) { return type == at::kBFloat16 ? at::kFloat : type; }

/// Calls body(element) with a zero of the C++ type of `type`. Errors: c10::Error for a type without loops of
/// its own. (Not AT_DISPATCH: a macro's argument cannot hold `#pragma omp`.)
template <class Body>
void with_element(at::ScalarType type, const char* op, const Body& body) {
  switch (type) {
    case at::kDouble:
      return body(double());
    case at::kFloat:
      return body(float());
    case at::kBFloat16:
      return body(at::BFloat16());
    default:
      TORCH_CHECK(false, op, ": no CPU loops for ", type, "; use float64, float32 or bfloat16");
  }
}

/// e^x; float: reduction to |r| <= ln(2)/2 and the polynomial of Cephes' expf (S. L. Moshier), relative error
/// at most 2 * 2^-24 (tests/impl/ops/cpu_math_test.cpp); results below the least normal number are 0.
inline double exponential(double x) { return std::exp(x); }
inline float exponential(float x) {
  constexpr float round_to_integer = 12582912.0f;  // 1.5 * 2^23: adding it leaves the integer in the low bits
  const float clamped = std::min(std::max(x, -87.33654f), 88.72283f);
  const float shifted = clamped * 1.44269504f + round_to_integer;
  const float n = shifted - round_to_integer;
  const float r = (clamped - n * 0.693359375f) - n * -2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + r + 1.0f;
  // 2^n in two factors, as n = 128 has no float of its own.
  const auto exponent = std::bit_cast<std::int32_t>(shifted) - std::bit_cast<std::int32_t>(round_to_integer);
  const float half = std::bit_cast<float>((exponent / 2 + 127) << 23);
  const float rest = std::bit_cast<float>((exponent - exponent / 2 + 127) << 23);
  const float result = p * half * rest;
  return x < -87.33654f ? 0.0f : x > 88.72283f ? std::numeric_limits<float>::infinity() : x != x ? x : result;
}

/// Calls body(n) for n in [0, rows) on all threads; `work` = elements of a row.
template <class Body>
void for_rows(std::int64_t rows, std::int64_t work, const Body& body) {
  constexpr std::int64_t worth_a_thread =
      8192;  // elements; below that waking a thread costs more than it saves
  at::parallel_for(0, rows, std::max<std::int64_t>(1, worth_a_thread / std::max<std::int64_t>(1, work)),
                   [&](std::int64_t begin, std::int64_t end) {
                     for (std::int64_t n = begin; n < end; ++n) body(n);
                   });
}

/// Calls body(begin, end) for every chunk of at most `chunk` of [0, size) on all threads.
template <class Body>
void for_chunks(std::int64_t size, std::int64_t chunk, const Body& body) {
  const std::int64_t chunks = (size + chunk - 1) / chunk;
  for_rows(chunks, chunk, [&](std::int64_t c) { body(c * chunk, std::min(size, (c + 1) * chunk)); });
}

/// Sums over rows by column, in an order that the number of threads does not change: rows are cut into chunks
/// of a fixed size, body(row, sums) adds a row to its chunk's sums [columns], chunks are added in order to
/// into[columns].
template <class M, class G, class Body>
void sum_over_rows(std::int64_t rows, std::int64_t columns, G* into, const Body& body) {
  constexpr std::int64_t chunk = 64;
  const std::int64_t chunks = (rows + chunk - 1) / chunk;
  std::vector<M> sums(static_cast<std::size_t>(chunks * columns), M(0));
  for_rows(chunks, chunk * columns, [&](std::int64_t c) {
    for (std::int64_t n = c * chunk; n < std::min(rows, (c + 1) * chunk); ++n)
      body(n, sums.data() + c * columns);
  });
  for (std::int64_t c = 1; c < chunks; ++c) {
    const M* part = sums.data() + c * columns;
    for (std::int64_t d = 0; d < columns; ++d) sums[static_cast<std::size_t>(d)] += part[d];
  }
  if (chunks > 0)
    for (std::int64_t d = 0; d < columns; ++d) into[d] = G(M(into[d]) + sums[static_cast<std::size_t>(d)]);
}

}  // namespace assay::impl::cpu
