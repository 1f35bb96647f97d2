#include "spec/random/philox.hpp"

#include <cmath>

#include "spec/random/box_muller.hpp"

namespace assay::spec::random {

std::uint64_t Stream::bits(std::uint64_t index) const {
  const Words words = block(index);
  return join(words[0], words[1]);
}

double Stream::uniform(std::uint64_t index) const { return open_unit(bits(index)); }

double Stream::normal(std::uint64_t index) const {
  const Words words = block(index);
  return std::sqrt(squared_radius(words)) * direction(words);
}

std::uint64_t Stream::below(std::uint64_t index, std::uint64_t bound) const {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>(static_cast<Wide>(bits(index)) * bound >> 64);
}

}  // namespace assay::spec::random
