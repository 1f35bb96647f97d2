#pragma once
// Exact counts of FLOPs, bytes and tokens. One step of an 8B model passes 2^53 FLOPs and a whole run passes
// 2^63 (6 * 8e9 * 1.5e13 = 7e23), so counts are 128 bits wide and overflow is an error, never a wrap.
#include <compare>
#include <cstdint>
#include <string>

namespace assay {

/// Non-negative 128-bit integer with checked arithmetic. Errors: SpecError count_c1 (negative or overflowing
/// result).
class Count {
 public:
  constexpr Count() = default;
  Count(std::int64_t value);  // NOLINT: implicit, so that formulas read like formulas

  Count operator+(Count other) const;
  Count operator-(Count other) const;
  Count operator*(Count other) const;
  Count& operator+=(Count other) { return *this = *this + other; }
  /// Exact division. Errors: SpecError count_c2 when `divisor` is zero or leaves a remainder.
  Count divided_exactly_by(Count divisor) const;
  /// The nearest whole number, of two the larger. Errors: SpecError count_c2 when `divisor` is zero.
  Count divided_to_nearest(Count divisor) const;

  std::strong_ordering operator<=>(const Count&) const = default;
  bool operator==(const Count&) const = default;

  /// Nearest double (relative error at most 2^-53).
  double to_double() const;
  /// Errors: SpecError count_c1 when the value does not fit.
  std::int64_t to_int64() const;
  /// Decimal digits, no separators.
  std::string to_string() const;

 private:
  __extension__ typedef unsigned __int128 Wide;
  static Count of(Wide value) {
    Count count;
    count.value_ = value;
    return count;
  }
  Wide value_ = 0;
};

inline Count operator+(std::int64_t left, Count right) { return Count(left) + right; }
inline Count operator*(std::int64_t left, Count right) { return Count(left) * right; }

/// Arithmetic of one op. `matmul` counts multiply-adds as 2 and is what MFU conventions use; `vector` counts
/// every other + - * / sqrt exp log sin cos as 1 (comparisons, negation and copies as 0). Unit: [flop].
struct Flops {
  Count matmul;
  Count vector;
  Flops operator+(const Flops& other) const { return {matmul + other.matmul, vector + other.vector}; }
  bool operator==(const Flops&) const = default;
};

}  // namespace assay
