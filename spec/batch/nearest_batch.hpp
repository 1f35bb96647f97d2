#pragma once
// Batches that a message suggests instead of one that does not divide.
#include <cstdint>
#include <string>
#include <vector>

namespace assay::spec {

/// Divisors of `number` >= 1, ascending.
std::vector<std::int64_t> divisors(std::int64_t number);

/// "4 or 8": of ascending `values` the last that is not above `wanted` and the first that is; one of them
/// where there is no other, empty without values.
std::string nearest_of(const std::vector<std::int64_t>& values, std::int64_t wanted);

/// "32 or 40": the multiples of `unit` >= 1 on both sides of `value` >= 1, which is none; zero is not
/// offered.
std::string nearest_multiples(std::int64_t value, std::int64_t unit);

/// "4 or 8": the divisors of `value` >= 1 on both sides of `wanted` >= 1, which is none of them; `value`
/// alone when `wanted` is above it.
std::string nearest_divisors(std::int64_t value, std::int64_t wanted);

}  // namespace assay::spec
