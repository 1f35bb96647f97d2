#pragma once
// Numbers as programs write them so that the same double is read back (JSON of most languages).
#include <cstdint>
#include <optional>
#include <string_view>

#include "spec/audit/printed.hpp"

namespace assay::spec::audit {

/// The double nearest to digits / 10^power; empty in the few cases that want a longer look. Domain: digits >
/// 0, 0 <= power <= 27. Source: Lemire, "Number parsing at a gigabyte per second" (2021), the product with a
/// truncated reciprocal; here every case in which its error could matter is left to others.
std::optional<double> nearest_quotient(std::uint64_t digits, int power);

/// What the program computed, up to the last bits of its arithmetic: four units of the last place to either
/// side. Integers are exact (of unit 1).
std::optional<Printed> shortest_printed(std::string_view token, double unit = 1, std::int64_t line = 0);

/// The same for the number that stands at `at`, which moves behind it. False, and both as they were: no
/// number of JSON. Domain: at least eight bytes from `start` <= `at` to `end`.
bool take_shortest(const char*& at, const char* end, double unit, std::int64_t line, Printed& out);

}  // namespace assay::spec::audit
