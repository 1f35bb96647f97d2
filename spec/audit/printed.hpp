#pragma once
// A number as a log prints it: a value and the interval of numbers that print so. A printed number
// contradicts another only when the intervals cannot meet (spec/audit/audit.md).
#include <cstdint>
#include <optional>
#include <string_view>

namespace assay::spec::audit {

/// `low` <= `value` <= `high`, all in the base unit of the field (seconds, bytes, flop/s, shares of 1).
struct Printed {
  double value = 0;
  double low = 0, high = 0;
  std::int64_t line = 0;  ///< where it stands, from 1; 0 for a record built by a program

  bool exact() const { return low == high; }
  bool holds(double number) const { return low <= number && number <= high; }
  bool operator==(const Printed&) const = default;
};

/// A number known to the last bit.
Printed exactly(double value, std::int64_t line = 0);

/// The product of two printed numbers, between the least and the largest of what they may stand for.
Printed product(const Printed& a, const Printed& b, std::int64_t line = 0);

/// A count (steps, tokens, sequences) printed as an integer is exact; a measurement printed as one ("1838
/// ms") is rounded like any other.
enum class Kind { counted, measured };

/// Reads a decimal as logs print them: sign, digit groups ("6,291,456", "6_291_456"), fraction, exponent;
/// then nothing else. The interval is half a unit of the last digit to either side, times `unit`; of integers
/// without exponent by `kind`; of numbers with >= 15 significant digits the spacing of doubles. "nan", "inf",
/// "-inf" (any case) give that value with low = high = value. Empty for anything else, and for a number whose
/// magnitude a double cannot hold.
std::optional<Printed> parse_printed(std::string_view text, Kind kind, double unit = 1,
                                     std::int64_t line = 0);

/// The quick way for the numbers of logs, millions a second: reads the plain decimal at `at`, of up to 19
/// digits, as parse_printed does, into `out`, and moves `at` behind it. Without `groups` a comma ends the
/// number. False, and both as they were: no number, or one that only parse_printed reads.
bool take_plain(const char*& at, const char* end, Kind kind, double unit, std::int64_t line, Printed& out,
                bool groups = true);

}  // namespace assay::spec::audit
