#pragma once
// Most numbers of a log are short: they are read, or passed over, eight bytes at a time.
#include <cmath>
#include <cstdint>
#include <cstring>

#include "spec/audit/digits.hpp"
#include "spec/audit/printed.hpp"
#include "spec/audit/shortest.hpp"

namespace assay::spec::audit::quick {

inline bool digit(char c) { return c >= '0' && c <= '9'; }
inline bool blank(char c) { return c == ' ' || c == '\t'; }

/// Whether the bytes are the same; quick for the few that stand between numbers.
inline bool same(const char* a, const char* b, std::size_t size) {
  const auto eight = [&](std::size_t at) {
    std::uint64_t x = 0, y = 0;
    std::memcpy(&x, a + at, 8);
    std::memcpy(&y, b + at, 8);
    return x == y;
  };
  if (size >= 8) {
    for (std::size_t at = 0; at + 8 < size; at += 8)
      if (!eight(at)) return false;
    return eight(size - 8);
  }
  if (size >= 4) {
    std::uint32_t x = 0, y = 0, u = 0, v = 0;
    std::memcpy(&x, a, 4);
    std::memcpy(&y, b, 4);
    std::memcpy(&u, a + size - 4, 4);
    std::memcpy(&v, b + size - 4, 4);
    return x == y && u == v;
  }
  for (std::size_t at = 0; at < size; ++at)
    if (a[at] != b[at]) return false;
  return true;
}

/// Passes the `size` bytes that stand in a line as in `text`, and spaces where there may be some: not tabs,
/// each of which may end a cell. A byte more is there. False where other bytes stand.
[[gnu::always_inline]] inline bool pass_text(const char*& at, const char* end, const char* text,
                                             std::size_t size, bool blanks) {
  if (static_cast<std::size_t>(end - at) <= size || !same(at, text, size)) return false;
  at += size;
  if (blanks)
    while (at != end && *at == ' ') ++at;
  return true;
}

/// Takes ",123" behind one to three digits, once or twice. False where what follows is grouped in another
/// way.
inline bool take_groups(const char*& now, const char* end, int before, std::uint64_t& digits) {
  for (int groups = 0; now != end && *now == ',' && end - now > 1 && digit(now[1]); ++groups) {
    const EightBytes group(now + 1, end);
    if (group.count() != 3 || before > 3 || groups == 2) return false;
    digits = digits * 1000 + group.value();
    now += 4;
  }
  return now == end || *now != '_';
}

/// Takes "e-05". False where it has another number of digits than two.
inline bool take_short_exponent(const char*& now, const char* end, int& exponent) {
  if (end - now < 4 || (now[1] != '-' && now[1] != '+')) return false;
  if (!digit(now[2]) || !digit(now[3]) || (end - now > 4 && digit(now[4]))) return false;
  exponent = (now[2] - '0') * 10 + (now[3] - '0');
  if (now[1] == '-') exponent = -exponent;
  now += 4;
  return true;
}

/// take_plain for most numbers: up to seven digits, a point, up to seven more. False, and both as they were,
/// for the others. Domain: at least eight bytes that may be read stand before `end`.
[[gnu::always_inline]] inline bool take_short(const char*& at, const char* end, bool measured, double unit,
                                              bool groups, std::int64_t line, Printed& out) {
  if (at == end) return false;
  const bool negative = *at == '-';
  const char* now = at + negative;
  if (now == end) return false;
  const EightBytes whole(now, end);
  if (whole.count() == 0 || whole.count() == 8) return false;
  std::uint64_t digits = whole.value();
  now += whole.count();
  if (groups && now != end && (*now == ',' || *now == '_') && !take_groups(now, end, whole.count(), digits))
    return false;
  int behind_point = 0, exponent = 0;
  if (now != end && *now == '.') {
    if (++now == end) return false;
    const EightBytes fraction(now, end);
    behind_point = fraction.count();
    if (behind_point == 0 || behind_point == 8) return false;
    digits = digits * EightBytes::powers[behind_point] + fraction.value();
    now += behind_point;
    measured = true;
  }
  const auto magnitude = static_cast<double>(static_cast<std::int64_t>(digits));
  const double number = negative ? -magnitude : magnitude;
  double value = 0, half = inverse_powers_of_ten[behind_point];
  if (now != end && (*now == 'e' || *now == 'E')) {
    if (!take_short_exponent(now, end, exponent)) return false;
    const int power = exponent - behind_point;
    if (power < -22 || power > 22) return false;
    value = (power < 0 ? number / powers_of_ten[-power] : number * powers_of_ten[power]) * unit;
    half = power < 0 ? inverse_powers_of_ten[-power] : powers_of_ten[power];
    measured = true;
  } else {
    value = number / powers_of_ten[behind_point] * unit;
  }
  if (!(std::abs(value) < 1e300)) return false;
  half = measured ? 0.5 * half * std::abs(unit) : 0;
  out = {value, value - half, value + half, line};
  at = now;
  return true;
}

/// Passes over digits; gives how many there are. Domain: as EightBytes, but for `at` = `end`.
[[gnu::always_inline]] inline std::ptrdiff_t pass_digits(const char*& at, const char* end) {
  const char* const from = at;
  while (at != end) {
    const int count = EightBytes(at, end).count();
    at += count;
    if (count < 8) break;
  }
  return at - from;
}

/// Passes over a number that is finite, and whose text says that it is not below 0.
[[gnu::always_inline]] inline bool pass_short(const char*& at, const char* end, bool groups) {
  constexpr std::ptrdiff_t longest = 24;  // of a number that is finite for sure
  const char* now = at;
  const std::ptrdiff_t whole = pass_digits(now, end);
  if (whole == 0) return false;
  if (groups && now != end && (*now == ',' || *now == '_')) {
    std::uint64_t digits = 0;
    if (whole > 3 || !take_groups(now, end, static_cast<int>(whole), digits)) return false;
  }
  if (now != end && *now == '.' && (++now, pass_digits(now, end)) == 0) return false;
  if (int exponent = 0;
      now != end && (*now == 'e' || *now == 'E') && !take_short_exponent(now, end, exponent))
    return false;
  if (now - at > longest) return false;
  at = now;
  return true;
}

}  // namespace assay::spec::audit::quick
