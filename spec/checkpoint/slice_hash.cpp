#include "spec/checkpoint/slice_hash.hpp"

#include <cstring>
#include <stdexcept>

namespace assay::spec {

namespace {
/// One to one: every step can be undone. The odd factor is of Degski's mixer, the other of the golden ratio.
std::uint64_t mixed(std::uint64_t bits, std::uint64_t place) {
  std::uint64_t x = bits + 0x9E3779B97F4A7C15u * (place + 1);
  x ^= x >> 32;
  x *= 0xD6E8FEB86659FD93u;
  x ^= x >> 32;
  x *= 0xD6E8FEB86659FD93u;
  return x ^ (x >> 32);
}

template <class Bits>
std::uint64_t sum_of(const std::byte* bytes, const Slice& slice, std::int64_t parameter_columns,
                     std::size_t row_bytes) {
  std::uint64_t sum = 0;
  for (std::int64_t row = 0; row < slice.rows; ++row) {
    const std::byte* from = bytes + static_cast<std::size_t>(row) * row_bytes;
    const auto place = static_cast<std::uint64_t>((slice.row + row) * parameter_columns + slice.column);
    for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(slice.columns); ++i) {
      Bits bits;
      std::memcpy(&bits, from + i * sizeof(Bits), sizeof(Bits));
      sum += mixed(bits, place + i);
    }
  }
  return sum;
}

template <class Bits>
bool none_has_all(std::span<const std::byte> bytes, Bits exponent) {
  bool found = false;
  for (std::size_t i = 0; i + sizeof(Bits) <= bytes.size(); i += sizeof(Bits)) {
    Bits bits;
    std::memcpy(&bits, bytes.data() + i, sizeof(Bits));
    found |= (bits & exponent) == exponent;
  }
  return !found;
}
}  // namespace

std::uint64_t slice_hash(std::span<const std::byte> bytes, std::size_t element_bytes, const Slice& slice,
                         std::int64_t parameter_columns, std::size_t row_bytes) {
  if (slice.size() == 0) return 0;
  const std::size_t last = static_cast<std::size_t>(slice.rows - 1) * row_bytes +
                           static_cast<std::size_t>(slice.columns) * element_bytes;
  if (last > bytes.size()) throw std::invalid_argument("a slice is longer than its bytes");
  switch (element_bytes) {
    case 2:
      return sum_of<std::uint16_t>(bytes.data(), slice, parameter_columns, row_bytes);
    case 4:
      return sum_of<std::uint32_t>(bytes.data(), slice, parameter_columns, row_bytes);
    case 8:
      return sum_of<std::uint64_t>(bytes.data(), slice, parameter_columns, row_bytes);
    default:
      throw std::invalid_argument("elements of " + std::to_string(element_bytes) + " bytes");
  }
}

std::uint64_t slice_hash(std::span<const std::byte> bytes, std::size_t element_bytes, const Slice& slice,
                         std::int64_t parameter_columns) {
  return slice_hash(bytes, element_bytes, slice, parameter_columns,
                    static_cast<std::size_t>(slice.columns) * element_bytes);
}

std::string hash_text(std::uint64_t hash) {
  std::string text;
  for (int shift = 60; shift >= 0; shift -= 4) text.push_back("0123456789abcdef"[hash >> shift & 15]);
  return text;
}

bool all_finite(std::span<const std::byte> bytes, std::string_view dtype) {
  if (dtype == "F64") return none_has_all<std::uint64_t>(bytes, 0x7FF0000000000000u);
  if (dtype == "F32") return none_has_all<std::uint32_t>(bytes, 0x7F800000u);
  if (dtype == "F16") return none_has_all<std::uint16_t>(bytes, 0x7C00u);
  if (dtype == "BF16") return none_has_all<std::uint16_t>(bytes, 0x7F80u);
  throw std::invalid_argument("no floating-point type: " + std::string(dtype));
}

}  // namespace assay::spec
