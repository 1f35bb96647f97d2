#pragma once
// Quantities as people read them. No locale: a point before the fraction, a comma between groups of three
// digits.
#include <cstdint>
#include <string>
#include <string_view>

#include "spec/count.hpp"

namespace assay::spec {

/// "1,294,159,104".
std::string grouped(std::int64_t number);
std::string grouped(const Count& number);

/// `number` with `digits` digits after the point, correctly rounded; "nan", "inf" and "-inf" as such.
std::string fixed(double number, int digits);

/// `number` in scientific form with `digits` digits after the point: "1.500e-04".
std::string scientific(double number, int digits);

/// Three significant digits and an SI prefix (k M G T P E) before `unit`: si(7.84e12, "FLOP") is "7.84
/// TFLOP". Domain: |number| < 1e21; numbers below 1000 get no prefix.
std::string si(double number, std::string_view unit);

/// "512 B", "23.4 GiB": powers of 1024. Domain: count >= 0.
std::string bytes(std::int64_t count);

/// "0.42 s", "62.1 s", "3 min 05 s", "2 h 14 min", "3 d 04 h". Domain: seconds >= 0.
std::string duration(double seconds);

/// All 16 digits of `bits`, small letters.
std::string hexadecimal(std::uint64_t bits);

/// `fraction` of 1 as "94.2 %".
std::string percent(double fraction, int digits = 1);

}  // namespace assay::spec
