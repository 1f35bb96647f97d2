#pragma once
// Counter-based random numbers: a pure function of (key, counter). Nothing to save, nothing to restore, the
// same on every layout. What is constexpr here runs on GPUs too, with the same result.
#include <array>
#include <cstdint>

namespace assay::spec::random {

using Words = std::array<std::uint32_t, 4>;

/// One Philox4x32-10 block: 4 random words from a 128-bit counter and a 64-bit key.
/// Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC'11, section 3.3.
constexpr Words philox(Words counter, std::array<std::uint32_t, 2> key) {
  constexpr std::uint32_t multiplier_0 = 0xD2511F53, multiplier_1 = 0xCD9E8D57;
  constexpr std::uint32_t weyl_0 = 0x9E3779B9, weyl_1 = 0xBB67AE85;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product_0 = std::uint64_t{multiplier_0} * counter[0];
    const std::uint64_t product_1 = std::uint64_t{multiplier_1} * counter[2];
    counter = {static_cast<std::uint32_t>(product_1 >> 32) ^ counter[1] ^ key[0],
               static_cast<std::uint32_t>(product_1),
               static_cast<std::uint32_t>(product_0 >> 32) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(product_0)};
    key[0] += weyl_0;
    key[1] += weyl_1;
  }
  return counter;
}

/// What a stream of numbers is for. Part of the counter, so that two uses never share numbers.
enum class Site : std::uint32_t {
  parameter = 1,
  sample_order = 2,
  grammar = 3,
  generation = 4,
  test = 5,
  rounding = 6,
  held_out = 7
};

/// The stream of one (seed, site, stream): element `index` is a pure function of all four. All indices are
/// valid.
class Stream {
 public:
  constexpr Stream(std::uint64_t seed, Site site, std::uint32_t stream)
      : seed_(seed), site_(site), stream_(stream) {}

  /// The four random words that every number with this index is made of.
  constexpr Words block(std::uint64_t index) const {
    return philox({static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32), stream_,
                   static_cast<std::uint32_t>(site_)},
                  {static_cast<std::uint32_t>(seed_), static_cast<std::uint32_t>(seed_ >> 32)});
  }
  std::uint64_t bits(std::uint64_t index) const;  ///< 64 uniform bits
  double uniform(std::uint64_t index) const;      ///< in (0, 1]: (53-bit integer + 1/2) * 2^-53, rounded
  double normal(std::uint64_t index) const;       ///< N(0, 1), spec/random/box_muller.hpp of the block
  std::uint64_t below(std::uint64_t index,
                      std::uint64_t bound) const;  ///< in [0, bound), bias < 2^-64 * bound

 private:
  std::uint64_t seed_;
  Site site_;
  std::uint32_t stream_;
};

}  // namespace assay::spec::random
