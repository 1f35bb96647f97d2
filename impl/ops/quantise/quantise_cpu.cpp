#include <ATen/ATen.h>
#include <c10/util/Float8_e4m3fn.h>
#include <c10/util/Float8_e5m2.h>

#include <array>
#include <cmath>

#include "impl/ops/cpu_math.hpp"
#include "impl/ops/quantise/quantise.hpp"
#include "impl/ops/quantise/scale_layout.hpp"

namespace assay::impl::quantise::cpu {

using impl::cpu::for_rows;
using impl::cpu::Math;

namespace {

template <class M>
using Bits = std::conditional_t<sizeof(M) == 8, std::uint64_t, std::uint32_t>;

/// Bits of |x|: as whole numbers, NaN is above infinity and infinity above the finite.
template <class M>
Bits<M> magnitude(M x) {
  return std::bit_cast<Bits<M>>(x) & ~(Bits<M>(1) << (8 * sizeof(M) - 1));
}

/// The least fp32 number that is not below.
float rounded_up(float x) { return x; }
float rounded_up(double x) {
  const auto nearest = static_cast<float>(x);
  return nearest < x ? std::nextafter(nearest, std::numeric_limits<float>::infinity()) : nearest;
}

/// fp32 for a conversion to fewer bits that rounds as if from fp64: what is cut off stays visible in the last
/// bit. Numbers too small for that are far below the least FP8 number.
float for_conversion(float x) { return x; }
float for_conversion(double x) {
  const auto nearest = static_cast<float>(x);
  if (static_cast<double>(nearest) == x) return nearest;
  const auto toward_zero = std::abs(nearest) > std::abs(x) ? std::nextafter(nearest, 0.0F) : nearest;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(toward_zero) | 1U);
}

/// Finite x, saturating.
template <Format format, class M>
std::uint8_t encode(M x) {
  constexpr M largest = format == Format::e4m3 ? 448 : 57344;
  const float in_range = for_conversion(std::clamp(x, -largest, largest));
  if constexpr (format == Format::e4m3)
    return c10::Float8_e4m3fn(in_range).x;
  else
    return c10::Float8_e5m2(in_range).x;
}
constexpr std::uint8_t nan_code = 0x7F;

/// A matrix [rows, columns] in memory in either order.
template <class T>
struct View {
  const T* entries;
  std::int64_t rows, columns, row_stride, column_stride;
  Math<T> at(std::int64_t row, std::int64_t column) const {
    return Math<T>(entries[row * row_stride + column * column_stride]);
  }
};

/// Writes the scale of 2^exponent, or NaN.
void write_scale(const at::Tensor& scales, std::int64_t at, std::optional<int> exponent) {
  if (scales.scalar_type() == at::kByte)
    scales.data_ptr<std::uint8_t>()[at] = static_cast<std::uint8_t>(exponent ? *exponent + 127 : 255);
  else
    scales.data_ptr<float>()[at] =
        exponent ? std::ldexp(1.0F, *exponent) : std::numeric_limits<float>::quiet_NaN();
}

template <Format format, class T>
void write(const View<T>& x, const Quantised& out, const at::Tensor& amax) {
  using M = Math<T>;
  const auto blocks = spec::quantise::blocks(out.scaling, x.rows, x.columns);
  const ScaleLayout layout{.scaling = out.scaling, .rows = blocks.rows, .columns = blocks.columns};
  auto* codes = static_cast<std::uint8_t*>(out.codes.data_ptr());
  const auto encode_block = [&](std::int64_t top, std::int64_t bottom, std::int64_t left, std::int64_t right,
                                std::optional<int> exponent) {
    const M inverse = std::ldexp(M(1), exponent ? -*exponent : 0);
    for (std::int64_t row = top; row < bottom; ++row)
      for (std::int64_t column = left; column < right; ++column)
        codes[row * x.columns + column] = exponent ? encode<format>(x.at(row, column) * inverse) : nan_code;
  };
  if (out.scaling == Scaling::tensor) {
    const auto exponent = spec::quantise::scale_exponent(format, amax.item<float>());
    write_scale(out.scales, 0, exponent);
    return for_rows(x.rows, x.columns,
                    [&](std::int64_t row) { encode_block(row, row + 1, 0, x.columns, exponent); });
  }
  for_rows(blocks.rows, blocks.block_rows * x.columns, [&](std::int64_t band) {
    const std::int64_t top = band * blocks.block_rows, bottom = std::min(top + blocks.block_rows, x.rows);
    for (std::int64_t block = 0; block < blocks.columns; ++block) {
      const std::int64_t left = block * blocks.block_columns,
                         right = std::min(left + blocks.block_columns, x.columns);
      Bits<M> most = 0;
      for (std::int64_t row = top; row < bottom; ++row)
        for (std::int64_t column = left; column < right; ++column)
          most = std::max(most, magnitude(x.at(row, column)));
      const auto exponent = spec::quantise::scale_exponent(format, rounded_up(std::bit_cast<M>(most)));
      write_scale(out.scales, layout.at(band, block), exponent);
      encode_block(top, bottom, left, right, exponent);
    }
  });
}

template <class T>
void write(const View<T>& x, const Quantised& out, const at::Tensor& amax) {
  if (!out.defined()) return;
  out.codes.scalar_type() == at::kFloat8_e4m3fn ? write<Format::e4m3>(x, out, amax)
                                                : write<Format::e5m2>(x, out, amax);
}

}  // namespace

void raise_amax(const at::Tensor& x, const at::Tensor& amax) {
  float& most_so_far = *amax.data_ptr<float>();
  impl::cpu::with_element(x.scalar_type(), "amax", [&](auto element) {
    using T = decltype(element);
    using M = Math<T>;
    const auto* entries = x.const_data_ptr<T>();
    const std::int64_t R = x.size(0), C = x.size(1);
    std::vector<Bits<M>> most(static_cast<std::size_t>(R), 0);
    for_rows(R, C, [&](std::int64_t row) {
      Bits<M> here = 0;
      for (std::int64_t column = 0; column < C; ++column)
        here = std::max(here, magnitude(M(entries[row * C + column])));
      most[static_cast<std::size_t>(row)] = here;
    });
    Bits<M> all = 0;
    for (const Bits<M> here : most) all = std::max(all, here);
    const float found = rounded_up(std::bit_cast<M>(all));
    if (magnitude(found) > magnitude(most_so_far)) most_so_far = found;
  });
}

void write(const at::Tensor& x, const Quantisation&, const at::Tensor& amax, const Twins& twins) {
  const std::int64_t R = x.size(0), C = x.size(1);
  impl::cpu::with_element(x.scalar_type(), "quantise", [&](auto element) {
    const auto* entries = x.const_data_ptr<decltype(element)>();
    write<decltype(element)>({entries, R, C, C, 1}, twins.rows, amax);
    write<decltype(element)>({entries, C, R, 1, C}, twins.columns, amax);
  });
}

void transpose(const at::Tensor& rows, const at::Tensor& columns) {
  const auto* from = static_cast<const std::uint8_t*>(rows.const_data_ptr());
  auto* to = static_cast<std::uint8_t*>(columns.data_ptr());
  const std::int64_t R = rows.size(0), C = rows.size(1);
  for_rows(C, R, [&](std::int64_t column) {
    for (std::int64_t row = 0; row < R; ++row) to[column * R + row] = from[row * C + column];
  });
}

at::Tensor dequantise(const Quantised& x, at::ScalarType type) {
  at::Tensor out = at::empty(x.codes.sizes(), x.codes.options().dtype(type));
  const auto blocks = spec::quantise::blocks(x.scaling, x.rows(), x.columns());
  const ScaleLayout layout{.scaling = x.scaling, .rows = blocks.rows, .columns = blocks.columns};
  const auto* codes = static_cast<const std::uint8_t*>(x.codes.const_data_ptr());
  const auto scale = [&](std::int64_t at) -> double {
    if (x.scales.scalar_type() == at::kFloat) return x.scales.const_data_ptr<float>()[at];
    const int byte = x.scales.const_data_ptr<std::uint8_t>()[at];
    return byte == 255 ? std::numeric_limits<double>::quiet_NaN() : std::ldexp(1.0, byte - 127);
  };
  const bool e4m3 = x.codes.scalar_type() == at::kFloat8_e4m3fn;
  std::array<double, 256> values;
  for (int code = 0; code < 256; ++code)
    values[static_cast<std::size_t>(code)] =
        spec::quantise::decode(e4m3 ? Format::e4m3 : Format::e5m2, static_cast<std::uint8_t>(code));
  impl::cpu::with_element(type, "dequantise", [&](auto element) {
    using T = decltype(element);
    auto* to = out.data_ptr<T>();
    for_rows(x.rows(), x.columns(), [&](std::int64_t row) {
      for (std::int64_t left = 0, block = 0; left < x.columns(); left += blocks.block_columns, ++block) {
        const double of_block = scale(layout.at(row / blocks.block_rows, block));
        const std::int64_t right = std::min(left + blocks.block_columns, x.columns());
        for (std::int64_t column = left; column < right; ++column) {
          const std::int64_t at = row * x.columns() + column;
          to[at] = static_cast<T>(static_cast<Math<T>>(values[codes[at]] * of_block));
        }
      }
    });
  });
  return out;
}

}  // namespace assay::impl::quantise::cpu
