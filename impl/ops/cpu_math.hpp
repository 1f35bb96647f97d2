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

#include "impl/ops/math_type.hpp"

namespace assay::impl::cpu {

/// Type in which an element is computed with: float for bf16, else the element's own.
template <class T>
using Math = std::conditional_t<std::is_same_v<T, at::BFloat16>, float, T>;

using impl::math_type;

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

/// 32 bytes of numbers side by side, with the arithmetic of GCC's and Clang's vector extensions.
template <class M>
struct Lanes {
  static constexpr std::int64_t count = 32 / sizeof(M);
  typedef M Vector __attribute__((vector_size(32)));
  typedef M Unaligned __attribute__((vector_size(32), aligned(sizeof(M)), may_alias));
  static Vector load(const M* from) { return *reinterpret_cast<const Unaligned*>(from); }
  static void store(M* to, Vector lanes) { *reinterpret_cast<Unaligned*>(to) = lanes; }
  static Vector all(M value) { return value - Vector{}; }
};

/// `count` elements from or to memory, as numbers of their arithmetic type; lanes past `count` read `beyond`
/// and write nothing.
template <class T>
typename Lanes<Math<T>>::Vector load(const T* from, std::int64_t count = Lanes<Math<T>>::count,
                                     typename Lanes<Math<T>>::Vector beyond = Lanes<Math<T>>::all(0)) {
  using Lane = Lanes<Math<T>>;
  if (std::is_same_v<T, Math<T>> && count >= Lane::count)
    return Lane::load(reinterpret_cast<const Math<T>*>(from));
  for (std::int64_t i = 0; i < std::min(count, Lane::count); ++i) beyond[i] = Math<T>(from[i]);
  return beyond;
}
template <class T>
void store(T* to, typename Lanes<Math<T>>::Vector lanes, std::int64_t count = Lanes<Math<T>>::count) {
  using Lane = Lanes<Math<T>>;
  if (std::is_same_v<T, Math<T>> && count >= Lane::count)
    return Lane::store(reinterpret_cast<Math<T>*>(to), lanes);
  for (std::int64_t i = 0; i < std::min(count, Lane::count); ++i) to[i] = T(lanes[i]);
}

/// e^x of a float or of eight: reduction to |r| <= ln(2)/2 and the polynomial of Cephes' expf (S. L.
/// Moshier), relative error at most 2 * 2^-24 (tests/impl/ops/cpu_math_test.cpp); results below the least
/// normal number are 0.
template <class F, class I>
[[gnu::always_inline]] inline F exponential_of(F x) {
  const F zero{}, least = zero - 87.33654f, greatest = zero + 88.72283f;
  const F round_to_integer = zero + 12582912.0f;  // 1.5 * 2^23: adding it leaves the integer in the low bits
  const F above = x < least ? least : x, clamped = above > greatest ? greatest : above;
  const F shifted = clamped * 1.44269504f + round_to_integer;
  const F n = shifted - round_to_integer;
  const F r = (clamped - n * 0.693359375f) - n * -2.12194440e-4f;
  F p = r * 1.9875691500e-4f + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + r + 1.0f;
  // 2^n in two factors, as n = 128 has no float of its own.
  const I exponent = std::bit_cast<I>(shifted) - std::bit_cast<I>(round_to_integer), first = exponent >> 1;
  const F result =
      p * std::bit_cast<F>((first + 127) << 23) * std::bit_cast<F>((exponent - first + 127) << 23);
  const F infinity = zero + std::numeric_limits<float>::infinity();
  const F ordered = x < least ? zero : (x > greatest ? infinity : result);
  return x == x ? ordered : x;
}

inline double exponential(double x) { return std::exp(x); }
inline float exponential(float x) { return exponential_of<float, std::int32_t>(x); }

/// The same of 32 bytes of numbers.
inline Lanes<double>::Vector exponential(Lanes<double>::Vector x) {
  for (int i = 0; i < Lanes<double>::count; ++i) x[i] = std::exp(x[i]);
  return x;
}
inline Lanes<float>::Vector exponential(Lanes<float>::Vector x) {
  typedef std::int32_t Integers __attribute__((vector_size(32)));
  return exponential_of<Lanes<float>::Vector, Integers>(x);
}

/// Largest of the entries and sum of the entries, in a fixed order.
template <class M>
M largest_of(typename Lanes<M>::Vector lanes) {
  M largest = lanes[0];
  for (int i = 1; i < Lanes<M>::count; ++i) largest = std::max(largest, lanes[i]);
  return largest;
}
template <class M>
M sum_of(typename Lanes<M>::Vector lanes) {
  M sum = lanes[0];
  for (int i = 1; i < Lanes<M>::count; ++i) sum += lanes[i];
  return sum;
}

#if defined(__GNUC__) && !defined(__clang__)
#define ASSAY_ONE_COPY __attribute__((noinline, noclone))
#else
#define ASSAY_ONE_COPY __attribute__((noinline))
#endif

/// Calls body(begin, end) for ranges that cover [0, size), at least `grain` long, on all threads. The body is
/// compiled once: inlined where at::parallel_for runs alone and again where it shares out, it could be
/// rounded in two ways.
template <class Body>
void for_ranges(std::int64_t size, std::int64_t grain, const Body& body) {
  at::parallel_for(0, size, grain,
                   [&](std::int64_t begin, std::int64_t end) ASSAY_ONE_COPY { body(begin, end); });
}

/// Calls body(n) for n in [0, rows) on all threads; `work` = elements of a row.
template <class Body>
void for_rows(std::int64_t rows, std::int64_t work, const Body& body) {
  constexpr std::int64_t worth_a_thread =
      8192;  // elements; below that waking a thread costs more than it saves
  for_ranges(rows, std::max<std::int64_t>(1, worth_a_thread / std::max<std::int64_t>(1, work)),
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
