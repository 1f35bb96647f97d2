#include "spec/audit/shortest.hpp"

#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>

#include "spec/audit/digits.hpp"

namespace assay::spec::audit {
namespace {

__extension__ using Wide = unsigned __int128;

/// 10^-power = mantissa x 2^exponent, cut off, with 2^63 <= mantissa.
struct Reciprocal {
  std::uint64_t mantissa = 0;
  int exponent = 0;
};
constexpr int highest_power = 27;  // 5^27 < 2^63
constexpr auto reciprocals = [] {
  std::array<Reciprocal, highest_power + 1> out{};
  std::uint64_t five = 1;
  for (int power = 0; power <= highest_power; ++power, five *= 5) {
    // 2^(63 + bits) / 5^power lies above 2^63, and below 2^64 but for the first.
    const int bits = std::bit_width(five);
    const Wide quotient = (Wide{1} << (63 + bits)) / five;
    const int spare = static_cast<int>(quotient >> 64 != 0);
    out[static_cast<std::size_t>(power)] = {static_cast<std::uint64_t>(quotient >> spare),
                                            spare - 63 - bits - power};
  }
  return out;
}();
static_assert(reciprocals[0].mantissa == std::uint64_t{1} << 63 && reciprocals[0].exponent == -63);

/// The double nearest to digits x 10^power, by exact arithmetic where it reaches (Clinger 1990).
std::optional<double> nearest(std::uint64_t digits, int power) {
  if (digits <= std::uint64_t{1} << 53 && power >= -22 && power <= 22) {
    const auto whole = static_cast<double>(digits);
    return power < 0 ? whole / powers_of_ten[-power] : whole * powers_of_ten[power];
  }
  if (power > 0 || power < -highest_power) return std::nullopt;
  return nearest_quotient(digits, -power);
}

/// With room for the last bits of its arithmetic.
Printed computed(double value, bool exact, std::int64_t line) {
  const double last_bits = exact ? 0 : 4 * std::numeric_limits<double>::epsilon() * std::abs(value);
  return {value, value - last_bits, value + last_bits, line};
}

}  // namespace

std::optional<double> nearest_quotient(std::uint64_t digits, int power) {
  const Reciprocal& reciprocal = reciprocals[static_cast<std::size_t>(power)];
  const int zeros = std::countl_zero(digits);
  const Wide product = Wide{digits << zeros} * reciprocal.mantissa;
  const auto high = static_cast<std::uint64_t>(product >> 64);
  // The true product is less than one unit of `high` above; 53 bits stay, the others say where to round.
  const int dropped = high >> 63 ? 11 : 10;
  const std::uint64_t half = std::uint64_t{1} << (dropped - 1), rest = high & (2 * half - 1);
  if (rest + 2 > half && rest <= half) return std::nullopt;
  const std::uint64_t kept = (high >> dropped) + (rest > half);
  const int exponent = 64 + dropped + reciprocal.exponent - zeros;
  return static_cast<double>(kept) * std::bit_cast<double>(static_cast<std::uint64_t>(1023 + exponent) << 52);
}

bool take_shortest(const char*& at, const char* end, double unit, std::int64_t line, Printed& out) {
  const char* now = at;
  const bool negative = now != end && *now == '-';
  if (negative) ++now;
  const char* const first = now;
  std::uint64_t digits = take_digits(now, end, 0);
  std::ptrdiff_t count = now - first, behind_point = 0;
  if (count == 0) return false;
  const bool point = now != end && *now == '.';
  if (point) {
    const char* const behind = ++now;
    digits = take_digits(now, end, digits);
    behind_point = now - behind;
    count += behind_point;
    if (behind_point == 0) return false;
  }
  int exponent = 0;
  const bool scaled = now != end && (*now == 'e' || *now == 'E');
  if (scaled) {
    const char* digit = now + 1;
    if (digit != end && *digit == '+' && ++digit != end && *digit == '-') return false;
    const auto [stop, error] = std::from_chars(digit, end, exponent);
    if (error != std::errc() || std::abs(exponent) > 400) return false;
    now = stop;
  }
  if (count > 19) {  // zeros before the first digit do not count: 0.00012345678901234567
    const char* leading = first;
    for (; leading != now && (*leading == '0' || *leading == '.'); ++leading) count -= *leading == '0';
  }
  std::optional<double> found;
  if (count <= 19) found = digits == 0 ? 0.0 : nearest(digits, exponent - static_cast<int>(behind_point));
  if (!found) {
    double value = 0;
    const auto [stop, error] = std::from_chars(first, now, value);
    if (error != std::errc() || stop != now) return false;
    found = value;
  }
  const double value = (negative ? -*found : *found) * unit;
  if (!std::isfinite(value)) return false;
  out = computed(value, unit == 1 && !point && !scaled, line);
  at = now;
  return true;
}

std::optional<Printed> shortest_printed(std::string_view token, double unit, std::int64_t line) {
  const char *at = token.data(), *const end = at + token.size();
  if (Printed out; take_shortest(at, end, unit, line, out) && at == end) return out;
  double value = 0;
  const auto [stop, error] = std::from_chars(token.data(), end, value);
  if (error != std::errc() || stop != end || !std::isfinite(value * unit))
    return parse_printed(token == "Infinity"    ? "inf"
                         : token == "-Infinity" ? "-inf"
                                                : token,
                         Kind::counted, unit, line);
  const bool integer = unit == 1 && token.find_first_of(".eE") == std::string_view::npos;
  return computed(value * unit, integer, line);
}

}  // namespace assay::spec::audit
