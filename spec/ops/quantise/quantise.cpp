#include "spec/ops/quantise/quantise.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "spec/error.hpp"
#include "spec/ops/linear/linear_precision.hpp"

namespace assay::spec::quantise {

namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
constexpr std::uint8_t nan_code = 0x7F;  // of both formats

/// A code is sign, exponent E, mantissa M. Its value is 2^(E - bias) (1 + M / 2^mantissa_bits), with E = 0
/// subnormal: 2^(1 - bias) M / 2^mantissa_bits.
struct Layout {
  int mantissa_bits, bias;
  std::uint8_t largest_code;
  int least_normal_exponent() const { return 1 - bias; }
  int least_subnormal_exponent() const { return least_normal_exponent() - mantissa_bits; }
};

Layout layout(Format format) {
  return format == Format::e4m3 ? Layout{.mantissa_bits = 3, .bias = 7, .largest_code = 0x7E}
                                : Layout{.mantissa_bits = 2, .bias = 15, .largest_code = 0x7B};
}

/// Exponent of the distance between the values around |x|, on the side of the larger ones.
int step_exponent(const Layout& l, double x) {
  return std::max(std::ilogb(x), l.least_normal_exponent()) - l.mantissa_bits;
}

std::int64_t ceil_divide(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace

const char* to_string(Format format) { return format == Format::e4m3 ? "e4m3" : "e5m2"; }

double largest(Format format) { return decode(format, layout(format).largest_code); }

double least_normal(Format format) { return std::ldexp(1, layout(format).least_normal_exponent()); }

std::uint8_t encode(Format format, double x) {
  if (!std::isfinite(x)) return nan_code;
  const Layout l = layout(format);
  const std::uint8_t sign = std::signbit(x) ? 0x80 : 0;
  const double magnitude = std::min(std::abs(x), largest(format));
  if (magnitude == 0) return sign;
  // In steps of its binade the value is an integer: the mantissa, with 2^mantissa_bits more where it is
  // normal. One that rounds up to the next binade carries into the exponent, as it must.
  const int step = step_exponent(l, magnitude);
  const int steps = static_cast<int>(std::nearbyint(std::ldexp(magnitude, -step)));  // ties to even
  const int binade = step - l.least_subnormal_exponent();
  return static_cast<std::uint8_t>(sign | ((binade << l.mantissa_bits) + steps));
}

double decode(Format format, std::uint8_t code) {
  const Layout l = layout(format);
  const int magnitude = code & 0x7F;
  const int exponent = magnitude >> l.mantissa_bits, mantissa = magnitude & ((1 << l.mantissa_bits) - 1);
  double value = 0;
  if (magnitude > l.largest_code)
    value = format == Format::e5m2 && mantissa == 0 ? std::numeric_limits<double>::infinity() : not_a_number;
  else if (exponent == 0)
    value = std::ldexp(mantissa, l.least_subnormal_exponent());
  else
    value = std::ldexp((1 << l.mantissa_bits) + mantissa, exponent - l.bias - l.mantissa_bits);
  return code & 0x80 ? -value : value;
}

double cast_bound(Format format, double x) {
  const Layout l = layout(format);
  const double relative = std::ldexp(std::abs(x), -(l.mantissa_bits + 1));
  return std::max(relative, std::ldexp(0.5, l.least_subnormal_exponent()));
}

const char* to_string(Scaling scaling) {
  switch (scaling) {
    case Scaling::tensor:
      return "tensor";
    case Scaling::row:
      return "row";
    case Scaling::block_1x128:
      return "block_1x128";
    case Scaling::block_128x128:
      return "block_128x128";
    case Scaling::mx_1x32:
      return "mx_1x32";
  }
  return "";
}

Blocks blocks(Scaling scaling, std::int64_t rows, std::int64_t columns) {
  Blocks b;
  switch (scaling) {
    case Scaling::tensor:
      b = {.block_rows = rows, .block_columns = columns};
      break;
    case Scaling::row:
      b = {.block_rows = 1, .block_columns = columns};
      break;
    case Scaling::block_1x128:
      b = {.block_rows = 1, .block_columns = 128};
      break;
    case Scaling::block_128x128:
      b = {.block_rows = 128, .block_columns = 128};
      break;
    case Scaling::mx_1x32:
      b = {.block_rows = 1, .block_columns = 32};
      break;
  }
  // A matrix without entries has a block without entries: a tensor's scale exists always.
  b.block_rows = std::max<std::int64_t>(b.block_rows, 1);
  b.block_columns = std::max<std::int64_t>(b.block_columns, 1);
  b.rows = scaling == Scaling::tensor ? 1 : ceil_divide(rows, b.block_rows);
  b.columns =
      scaling == Scaling::tensor || scaling == Scaling::row ? 1 : ceil_divide(columns, b.block_columns);
  return b;
}

std::optional<int> scale_exponent(Format format, double amax) {
  if (!std::isfinite(amax)) return std::nullopt;
  if (amax == 0) return 0;
  const double most = largest(format);
  // amax and `most` are 2^a f and 2^m g with f, g in [1, 2): a - m is the exponent, one more where f > g.
  const int difference = std::ilogb(amax) - std::ilogb(most);
  const bool above = std::ldexp(amax, -difference) > most;
  return std::max(difference + (above ? 1 : 0), least_exponent);
}

double Matrix::scale(std::int64_t row, std::int64_t column) const {
  return scales.at(static_cast<std::size_t>(blocks(scaling, rows, columns).at(row, column)));
}

double Matrix::value(std::int64_t row, std::int64_t column) const {
  return decode(format, codes.at(static_cast<std::size_t>(row * columns + column))) * scale(row, column);
}

Matrix quantise(std::span<const double> values, std::int64_t rows, std::int64_t columns, Format format,
                Scaling scaling) {
  // quantise_c1
  require(rows >= 0 && columns >= 0 && static_cast<std::int64_t>(values.size()) == rows * columns,
          "quantise_c1", [&] {
            return std::to_string(values.size()) + " values for a matrix of " + std::to_string(rows) + " x " +
                   std::to_string(columns);
          });
  const Blocks b = blocks(scaling, rows, columns);
  const auto each_entry = [&](const auto& visit) {
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::int64_t column = 0; column < columns; ++column)
        visit(static_cast<std::size_t>(row * columns + column), static_cast<std::size_t>(b.at(row, column)));
  };

  std::vector<double> amax(static_cast<std::size_t>(b.rows * b.columns), 0.0);
  each_entry([&](std::size_t entry, std::size_t block) {
    const double magnitude = std::abs(values[entry]);
    if (magnitude > amax[block] || std::isnan(magnitude)) amax[block] = magnitude;  // NaN > x never holds
  });

  Matrix out{
      .format = format, .scaling = scaling, .rows = rows, .columns = columns, .codes = {}, .scales = {}};
  std::vector<std::optional<int>> exponents;
  for (const double most : amax) {
    exponents.push_back(scale_exponent(format, most));
    out.scales.push_back(exponents.back() ? std::ldexp(1, *exponents.back()) : not_a_number);
  }
  out.codes.resize(values.size());
  each_entry([&](std::size_t entry, std::size_t block) {
    const auto& exponent = exponents[block];
    out.codes[entry] = exponent ? encode(format, std::ldexp(values[entry], -*exponent)) : nan_code;
  });
  return out;
}

const char* to_string(Recipe recipe) {
  switch (recipe) {
    case Recipe::none:
      return "bf16";
    case Recipe::fp8_tensor:
      return "fp8_tensor";
    case Recipe::fp8_block:
      return "fp8_block";
    case Recipe::mxfp8:
      return "mxfp8";
  }
  return "";
}

Quantisation quantisation(Recipe recipe, Role role) {
  // quantise_c2
  require(recipe != Recipe::none, "quantise_c2", [] { return std::string("recipe none quantises nothing"); });
  switch (recipe) {
    case Recipe::fp8_tensor:
      return {role == Role::gradient ? Format::e5m2 : Format::e4m3, Scaling::tensor};
    case Recipe::fp8_block:
      return {Format::e4m3, role == Role::weight ? Scaling::block_128x128 : Scaling::block_1x128};
    default:
      return {Format::e4m3, Scaling::mx_1x32};
  }
}

bool same_both_ways(Scaling scaling) {
  return scaling == Scaling::tensor || scaling == Scaling::block_128x128;
}

void check(Recipe recipe, std::int64_t N, std::int64_t in, std::int64_t out) {
  if (recipe == Recipe::none) return;
  const std::int64_t unit = extent_unit(recipe);
  const auto multiple = [&](const char* name, std::int64_t extent) {
    // quantise_c3
    require(extent >= 1 && extent % unit == 0, "quantise_c3", [&] {
      const std::int64_t below = std::max<std::int64_t>(extent, 0) / unit * unit;
      const std::string nearest =
          (below > 0 ? std::to_string(below) + " or " : "") + std::to_string(below + unit);
      return std::string(name) + "=" + std::to_string(extent) + " of a linear in " + to_string(recipe) +
             " is no multiple of " + std::to_string(unit) + "; nearest: " + nearest;
    });
  };
  multiple("N", N);
  multiple("in", in);
  multiple("out", out);
}

Count bytes(std::int64_t rows, std::int64_t columns, Scaling scaling, int orientations,
            std::int64_t element) {
  const Count entries = Count(rows) * columns, of_scale = scaling == Scaling::mx_1x32 ? 1 : 4;
  const auto scales = [&](std::int64_t r, std::int64_t c) {
    const Blocks b = blocks(scaling, r, c);
    return Count(b.rows) * b.columns * of_scale;
  };
  Count sum = entries * element + entries * orientations + scales(rows, columns);
  if (orientations == 2 && !same_both_ways(scaling)) sum += scales(columns, rows);
  return sum;
}

Flops flops(std::int64_t rows, std::int64_t columns, Scaling scaling, int orientations) {
  return {0, Count(rows) * columns * (same_both_ways(scaling) ? 1 : orientations)};
}

}  // namespace assay::spec::quantise
