#pragma once
// Random bits of AdamW's states in bf16. Rule and reason: spec/ops/adamw/adamw.md, states in bf16. Read by
// kernels too.
#include <cstdint>

#include "spec/random/philox.hpp"

namespace assay::spec::adamw {

/// Random bits that round one entry's new parameter and moments where they are kept in bf16.
struct RoundingBits {
  std::uint16_t parameter, moment1, moment2;
};
/// Random numbers of the roundings of step t. Errors: SpecError adamw_c7 (t not in [1, 2^32)).
random::Stream rounding_stream(std::uint64_t seed, std::int64_t step);
/// The same for a t that has been checked.
constexpr random::Stream rounding_stream_of(std::uint64_t seed, std::uint32_t step) {
  return {seed, random::Site::rounding, step};
}
/// Two entries share a block of that stream: entry 2 b + h has the words 2 h and 2 h + 1 of block b, of them
/// the low and the high half of the first and the low half of the second.
constexpr RoundingBits rounding_bits(const random::Words& block, std::uint64_t entry) {
  const std::uint32_t first = block[2 * (entry % 2)], second = block[2 * (entry % 2) + 1];
  return {static_cast<std::uint16_t>(first), static_cast<std::uint16_t>(first >> 16),
          static_cast<std::uint16_t>(second)};
}

}  // namespace assay::spec::adamw
