#include "spec/checkpoint/elements.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>
#include <type_traits>

namespace assay::spec {

namespace {

template <class T>
T element_at(std::span<const std::byte> bytes, std::size_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}
template <class T>
void put_element(std::span<std::byte> bytes, std::size_t index, T value) {
  std::memcpy(bytes.data() + index * sizeof(T), &value, sizeof(T));
}

/// A 16-bit type: its fraction bits and its smallest normal exponent.
template <int fraction, int least, int greatest>
struct Narrow {
  using Stored = std::uint16_t;

  static double get(std::uint16_t bits) {
    const int exponent_bits = 15 - fraction;
    const int exponent = (bits >> fraction) & ((1 << exponent_bits) - 1), part = bits & ((1 << fraction) - 1);
    const double sign = (bits & 0x8000) != 0 ? -1 : 1;
    if (exponent == (1 << exponent_bits) - 1)
      return part != 0 ? std::numeric_limits<double>::quiet_NaN()
                       : sign * std::numeric_limits<double>::infinity();
    if (exponent == 0) return sign * std::ldexp(part, least - fraction);
    return sign * std::ldexp((1 << fraction) + part, exponent - 1 + least - fraction);
  }

  /// Rounded to nearest, ties to even, from any double in one rounding.
  static std::uint16_t put(double value) {
    const auto sign = static_cast<std::uint16_t>(std::signbit(value) ? 0x8000 : 0);
    const auto infinity = static_cast<std::uint16_t>(((1 << (15 - fraction)) - 1) << fraction);
    if (std::isnan(value)) return static_cast<std::uint16_t>(sign | infinity | (1 << (fraction - 1)));
    const double size = std::fabs(value);
    if (size == 0) return sign;
    if (std::isinf(size)) return static_cast<std::uint16_t>(sign | infinity);
    const int exponent = std::max(std::ilogb(size), least);
    // In units of the last place at that exponent; adding one too many carries into the exponent, as it must.
    const auto units = static_cast<std::int64_t>(std::nearbyint(std::ldexp(size, fraction - exponent)));
    if (exponent > greatest) return static_cast<std::uint16_t>(sign | infinity);
    const std::int64_t bits = (static_cast<std::int64_t>(exponent - least) << fraction) + units;
    return static_cast<std::uint16_t>(sign | std::min<std::int64_t>(bits, infinity));
  }
};
struct Float32 {
  using Stored = std::uint32_t;
  static double get(std::uint32_t bits) { return static_cast<double>(std::bit_cast<float>(bits)); }
  static std::uint32_t put(double value) { return std::bit_cast<std::uint32_t>(static_cast<float>(value)); }
};
struct Float64 {
  using Stored = std::uint64_t;
  static double get(std::uint64_t bits) { return std::bit_cast<double>(bits); }
  static std::uint64_t put(double value) { return std::bit_cast<std::uint64_t>(value); }
};
using Half = Narrow<10, -14, 15>;
using Brain = Narrow<7, -126, 127>;

/// The usual conversion without leaving integers: half of the dropped part is added, and one less where the
/// kept part is even.
std::uint16_t float_to_brain(std::uint32_t bits) {
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return static_cast<std::uint16_t>(bits >> 16 | 0x40);  // NaN
  return static_cast<std::uint16_t>((bits + 0x7FFFu + (bits >> 16 & 1)) >> 16);
}

/// Calls `use` with the type of that name.
template <class Use>
auto with_type(std::string_view type, Use use) {
  if (type == "F64") return use(Float64());
  if (type == "F32") return use(Float32());
  if (type == "F16") return use(Half());
  if (type == "BF16") return use(Brain());
  throw std::invalid_argument("no floating-point type: " + std::string(type));
}

}  // namespace

std::optional<std::size_t> convert_elements(std::span<const std::byte> from, std::string_view from_type,
                                            std::span<std::byte> into, std::string_view to) {
  if (from_type == to) {
    std::memcpy(into.data(), from.data(), from.size());
    return {};
  }
  return with_type(from_type, [&]<class From>(From) {
    return with_type(to, [&]<class To>(To) -> std::optional<std::size_t> {
      std::optional<std::size_t> lost;
      const std::size_t count = from.size() / sizeof(typename From::Stored);
      for (std::size_t i = 0; i < count; ++i) {
        const auto stored = element_at<typename From::Stored>(from, i);
        const double value = From::get(stored);
        const auto bits = [&] {
          if constexpr (std::is_same_v<From, Float32> && std::is_same_v<To, Brain>)
            return float_to_brain(stored);
          else
            return To::put(value);
        }();
        put_element(into, i, bits);
        if (!lost && std::isfinite(value) && !std::isfinite(To::get(bits))) lost = i;
      }
      return lost;
    });
  });
}

double element_value(std::span<const std::byte> bytes, std::string_view type, std::size_t index) {
  return with_type(
      type, [&]<class Type>(Type) { return Type::get(element_at<typename Type::Stored>(bytes, index)); });
}

}  // namespace assay::spec
