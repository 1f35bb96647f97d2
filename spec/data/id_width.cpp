#include "spec/data/id_width.hpp"

#include <algorithm>
#include <bit>

namespace assay::spec::data {

void IdWidth::add(std::uint64_t position, std::span<const std::byte> bytes) {
  const auto word = [&](std::size_t at) {
    return std::to_integer<std::uint32_t>(bytes[at]) | std::to_integer<std::uint32_t>(bytes[at + 1]) << 8;
  };
  for (std::size_t at = (8 - position % 8) % 8; at + 8 <= bytes.size(); at += 8) {
    std::array<std::uint32_t, 4> words{};
    for (std::size_t i = 0; i < 4; ++i) {
      words[i] = word(at + 2 * i);
      at_[i].not_zero += words[i] != 0;
      at_[i].large += words[i] >= largest_vocabulary >> 16;
    }
    for (std::size_t i = 0; i < 4; i += 2)
      ++by_bits_[static_cast<std::size_t>(std::bit_width(words[i] | words[i + 1] << 16))];
  }
}

std::int64_t IdWidth::likely(std::int64_t width, std::int64_t vocabulary) const {
  const bool upper_half_is_zero = at_[2].not_zero == 0 && at_[3].not_zero == 0;
  if (width == 2) {
    if (upper_half_is_zero && at_[1].large == 0 && at_[0].large >= enough) return 8;
    if (at_[1].large + at_[3].large == 0 && at_[0].large + at_[2].large >= enough) return 4;
    return 2;
  }
  if (upper_half_is_zero && at_[0].not_zero >= enough) return 8;
  // From a power of two on, which no id of the vocabulary reaches.
  const auto bits = static_cast<std::size_t>(
      std::bit_width(static_cast<std::uint64_t>(std::max(vocabulary, largest_vocabulary)) - 1));
  std::int64_t beyond = 0;
  for (std::size_t i = bits + 1; i < by_bits_.size(); ++i) beyond += by_bits_[i];
  return beyond >= enough ? 2 : 4;
}

}  // namespace assay::spec::data
