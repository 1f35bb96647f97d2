#pragma once
// Counter-based random numbers: a pure function of (key, counter). Nothing to save, nothing to restore, the
// same on every layout.
#include <array>
#include <cstdint>

namespace assay::spec::random {

/// One Philox4x32-10 block: 4 random words from a 128-bit counter and a 64-bit key.
/// Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC'11, section 3.3.
std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key);

/// What a stream of numbers is for. Part of the counter, so that two uses never share numbers.
enum class Site : std::uint32_t {
  parameter = 1,
  sample_order = 2,
  grammar = 3,
  generation = 4,
  test = 5,
  rounding = 6
};

/// The stream of one (seed, site, stream): element `index` is a pure function of all four. All indices are
/// valid.
class Stream {
 public:
  Stream(std::uint64_t seed, Site site, std::uint32_t stream) : seed_(seed), site_(site), stream_(stream) {}
  std::uint64_t bits(std::uint64_t index) const;  ///< 64 uniform bits
  double uniform(std::uint64_t index) const;      ///< in (0, 1): (53-bit integer + 1/2) * 2^-53
  double normal(std::uint64_t index) const;       ///< N(0, 1) by Box-Muller of the block's two uniforms
  std::uint64_t below(std::uint64_t index,
                      std::uint64_t bound) const;  ///< in [0, bound), bias < 2^-64 * bound

 private:
  std::uint64_t seed_;
  Site site_;
  std::uint32_t stream_;
};

}  // namespace assay::spec::random
