#include "reference/ops/quantise.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "reference/counted.hpp"
#include "spec/error.hpp"

namespace assay::reference::quantise {

namespace {

/// Value of every code, infinities and NaN included, by its bits.
std::vector<double> values_of_codes(Format format) {
  const int exponent_bits = format == Format::e4m3 ? 4 : 5, mantissa_bits = 7 - exponent_bits;
  const int bias = format == Format::e4m3 ? 7 : 15;
  std::vector<double> values;
  for (int code = 0; code < 256; ++code) {
    const double sign = code < 128 ? 1 : -1;
    const int exponent = code % 128 / (1 << mantissa_bits);
    const double fraction = code % (1 << mantissa_bits) / std::pow(2.0, mantissa_bits);
    double value =
        exponent == 0 ? fraction * std::pow(2.0, 1 - bias) : (1 + fraction) * std::pow(2.0, exponent - bias);
    if (format == Format::e4m3 && exponent == 15 && fraction == 0.875)
      value = std::numeric_limits<double>::quiet_NaN();
    if (format == Format::e5m2 && exponent == 31)
      value =
          fraction == 0 ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
    values.push_back(sign * value);
  }
  return values;
}

double largest_of(const std::vector<double>& values) {
  double largest = 0;
  for (const double value : values)
    if (std::isfinite(value) && value > largest) largest = value;
  return largest;
}

/// The code whose value is nearest to x, of two the even one; of zeros the one with x's sign. x beyond the
/// largest value is nearest to that one.
std::uint8_t nearest_code(const std::vector<double>& values, double x) {
  const std::size_t first = std::signbit(x) ? 128 : 0;  // of the codes with x's sign
  std::size_t nearest = first;
  for (std::size_t code = first; code < first + 128; ++code) {
    if (!std::isfinite(values[code])) continue;
    const double distance = std::abs(values[code] - x), least = std::abs(values[nearest] - x);
    if (distance < least || (distance == least && code % 2 == 0)) nearest = code;
  }
  return static_cast<std::uint8_t>(nearest);
}

double scale_of(double amax, double largest) {
  if (amax == 0) return 1;
  double scale = std::pow(2.0, -126);
  while (amax > largest * scale) scale *= 2;
  return scale;
}

struct Extents {
  Index rows, columns;
};

Extents block_extents(Scaling scaling, Index R, Index C) {
  if (scaling == Scaling::tensor) return {R, C};
  if (scaling == Scaling::row) return {1, C};
  if (scaling == Scaling::block_1x128) return {1, 128};
  if (scaling == Scaling::block_128x128) return {128, 128};
  return {1, 32};
}

Tensor<double> transposed(const Tensor<double>& x) {
  Tensor<double> out({x.extent(1), x.extent(0)});
  for (Index r = 0; r < x.extent(0); ++r)
    for (Index c = 0; c < x.extent(1); ++c) out(c, r) = x(r, c);
  return out;
}

}  // namespace

Quantised quantise(const Tensor<double>& x, Format format, Scaling scaling) {
  const std::vector<double> values = values_of_codes(format);
  const double largest = largest_of(values);
  const Index R = x.extent(0), C = x.extent(1);
  const Extents block = block_extents(scaling, R, C);
  const auto blocks_in = [](Index extent, Index of_block) {
    return of_block == 0 ? 1 : extent / of_block + (extent % of_block != 0);
  };
  Quantised out{.codes = std::vector<std::uint8_t>(static_cast<std::size_t>(R * C)),
                .scales = Tensor<double>({blocks_in(R, block.rows), blocks_in(C, block.columns)}),
                .values = Tensor<double>({R, C})};
  for (Index i = 0; i < out.scales.extent(0); ++i) {
    for (Index j = 0; j < out.scales.extent(1); ++j) {
      const auto entries = [&](const auto& visit) {
        for (Index r = i * block.rows; r < std::min(R, (i + 1) * block.rows); ++r)
          for (Index c = j * block.columns; c < std::min(C, (j + 1) * block.columns); ++c) visit(r, c);
      };
      double amax = 0;
      bool finite = true;
      entries([&](Index r, Index c) {
        finite = finite && std::isfinite(x(r, c));
        amax = std::max(amax, std::abs(x(r, c)));
      });
      const double scale = finite ? scale_of(amax, largest) : std::numeric_limits<double>::quiet_NaN();
      out.scales(i, j) = scale;
      entries([&](Index r, Index c) {
        const std::uint8_t code = finite ? nearest_code(values, x(r, c) / scale) : std::uint8_t{0x7F};
        out.codes[static_cast<std::size_t>(r * C + c)] = code;
        out.values(r, c) = values[code] * scale;
      });
    }
  }
  return out;
}

template <class S>
Tensor<S> read_by_gemm(const Tensor<S>& x, Recipe recipe, Role role, Along along, Index parts) {
  if (recipe == Recipe::none) return x;
  const Index C = x.extent(-1), R = C == 0 ? 0 : x.size() / C / parts;
  require(R * parts * C == x.size(), "quantise_parts", [&] {
    return std::to_string(x.size()) + " entries are not " + std::to_string(parts) + " parts of rows of " +
           std::to_string(C);
  });
  const auto [format, scaling] = spec::quantise::quantisation(recipe, role);
  Tensor<S> out(x.shape());
  for (Index part = 0; part < parts; ++part) {
    const Index first = part * R * C;
    Tensor<double> matrix({R, C});
    for (Index i = 0; i < matrix.size(); ++i) matrix[i] = static_cast<double>(x[first + i]);
    const Tensor<double> values = along == Along::last
                                      ? quantise(matrix, format, scaling).values
                                      : transposed(quantise(transposed(matrix), format, scaling).values);
    for (Index i = 0; i < matrix.size(); ++i) out[first + i] = values[i];
  }
  return out;
}

template Tensor<double> read_by_gemm(const Tensor<double>&, Recipe, Role, Along, Index);
template Tensor<Counted> read_by_gemm(const Tensor<Counted>&, Recipe, Role, Along, Index);

}  // namespace assay::reference::quantise
