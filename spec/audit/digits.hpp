#pragma once
// The digits of decimals, eight bytes at once: no branch depends on how many there are. And powers of ten.
#include <bit>
#include <cstdint>
#include <cstring>

namespace assay::spec::audit {

/// Powers of ten that a double holds exactly, and their inverses rounded once.
inline constexpr double powers_of_ten[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                           1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                           1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
inline constexpr double inverse_powers_of_ten[] = {1e-0,  1e-1,  1e-2,  1e-3,  1e-4,  1e-5,  1e-6,  1e-7,
                                                   1e-8,  1e-9,  1e-10, 1e-11, 1e-12, 1e-13, 1e-14, 1e-15,
                                                   1e-16, 1e-17, 1e-18, 1e-19, 1e-20, 1e-21, 1e-22};

/// Up to eight digits and what follows them, as they stand in memory.
class EightBytes {
 public:
  static constexpr bool possible = std::endian::native == std::endian::little;

  /// The eight bytes from `at` on, zeros behind `end`. Domain: start <= at < end, at least eight bytes from
  /// `start` to `end`.
  [[gnu::always_inline]] EightBytes(const char* at, const char* end) : word_(load(at, end)) {
    // The lowest high bit that is set marks the first byte that is none.
    const std::uint64_t others = ((word_ + 0x7676767676767676) | word_) & 0x8080808080808080;
    count_ = others == 0 ? 8 : std::countr_zero(others) / 8;
  }

  /// Digits at the start: 0 to 8.
  int count() const { return count_; }
  /// The number that they make. Domain: count() > 0.
  [[gnu::always_inline]] std::uint64_t value() const { return value(word_, count_); }
  /// The number that the first `count` bytes make, which are digits. Domain: as the constructor's; 0 < count
  /// <= 8.
  [[gnu::always_inline]] static std::uint64_t value(const char* at, const char* end, int count) {
    return value(load(at, end), count);
  }

  /// The number that the digits of "12.345" make, without the point: `whole` of them stand before it,
  /// `fraction` behind. Domain: as above; both > 0 and together < 8.
  [[gnu::always_inline]] static std::uint64_t value(const char* at, const char* end, int whole,
                                                    int fraction) {
    const std::uint64_t word = load(at, end), before = (std::uint64_t{1} << 8 * whole) - 1;
    return value((word & before) | (word >> 8 & ~before), whole + fraction);
  }

  static constexpr std::uint64_t powers[] = {1,       10,        100,        1'000,      10'000,
                                             100'000, 1'000'000, 10'000'000, 100'000'000};

 private:
  [[gnu::always_inline]] static std::uint64_t load(const char* at, const char* end) {
    std::uint64_t word = 0;
    const auto left = end - at;
    std::memcpy(&word, left >= 8 ? at : end - 8, sizeof word);
    if (left < 8) word >>= 8 * (8 - left);
    return word ^ 0x3030303030303030;  // digits become 0 to 9; the first byte is the lowest
  }
  [[gnu::always_inline]] static std::uint64_t value(std::uint64_t word, int count) {
    word <<= 64 - 8 * count;
    word = (word * 10 + (word >> 8)) & 0x00ff00ff00ff00ff;
    word = (word * 100 + (word >> 16)) & 0x0000ffff0000ffff;
    return (word * 10000 + (word >> 32)) & 0xffffffff;
  }

  std::uint64_t word_;
  int count_;
};

/// Takes the digits at `at` off and puts them behind those of `value`; one that does not fit wraps.
[[gnu::always_inline]] inline std::uint64_t take_digits(const char*& at, const char* end,
                                                        std::uint64_t value) {
  if constexpr (EightBytes::possible) {
    while (end - at >= 8) {
      const EightBytes bytes(at, end);
      if (bytes.count() == 0) return value;
      value = value * EightBytes::powers[bytes.count()] + bytes.value();
      at += bytes.count();
      if (bytes.count() < 8) return value;
    }
  }
  for (; at != end && *at >= '0' && *at <= '9'; ++at)
    value = value * 10 + static_cast<std::uint64_t>(*at - '0');
  return value;
}

/// Whether a decimal of a JSON text stands at `at`, which then moves behind it: digits, perhaps a sign, a
/// fraction, an exponent.
inline bool pass_number(const char*& at, const char* end) {
  const char* now = at;
  const auto digits = [&] {
    const char* const from = now;
    if constexpr (EightBytes::possible) {
      while (end - now >= 8) {
        const int count = EightBytes(now, end).count();
        now += count;
        if (count < 8) return now != from;
      }
    }
    while (now != end && *now >= '0' && *now <= '9') ++now;
    return now != from;
  };
  if (now != end && *now == '-') ++now;
  if (!digits()) return false;
  if (now != end && *now == '.' && (++now, !digits())) return false;
  if (now != end && (*now == 'e' || *now == 'E')) {
    ++now;
    if (now != end && (*now == '+' || *now == '-')) ++now;
    if (!digits()) return false;
  }
  at = now;
  return true;
}

}  // namespace assay::spec::audit
