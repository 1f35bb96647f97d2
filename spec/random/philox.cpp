#include "spec/random/philox.hpp"

#include <cmath>
#include <numbers>

namespace assay::spec::random {

std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) {
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

namespace {
std::array<std::uint32_t, 4> block(std::uint64_t seed, Site site, std::uint32_t stream, std::uint64_t index) {
  return philox({static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32), stream,
                 static_cast<std::uint32_t>(site)},
                {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
}

std::uint64_t join(std::uint32_t low, std::uint32_t high) { return std::uint64_t{high} << 32 | low; }

double open_unit(std::uint64_t bits) { return (static_cast<double>(bits >> 11) + 0.5) * 0x1p-53; }
}  // namespace

std::uint64_t Stream::bits(std::uint64_t index) const {
  const auto words = block(seed_, site_, stream_, index);
  return join(words[0], words[1]);
}

double Stream::uniform(std::uint64_t index) const { return open_unit(bits(index)); }

double Stream::normal(std::uint64_t index) const {
  const auto words = block(seed_, site_, stream_, index);
  const double radius = std::sqrt(-2.0 * std::log(open_unit(join(words[0], words[1]))));
  return radius * std::cos(2.0 * std::numbers::pi * open_unit(join(words[2], words[3])));
}

std::uint64_t Stream::below(std::uint64_t index, std::uint64_t bound) const {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>(static_cast<Wide>(bits(index)) * bound >> 64);
}

}  // namespace assay::spec::random
