#pragma once
// quantise against the spec's bits, on any device.
#include <rapidcheck.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "impl/ops/quantise/quantise.hpp"
#include "tests/support/tensors.hpp"

namespace assay::impl::parity {

using quantise::Format;
using quantise::Orientation;
using quantise::Quantisation;
using quantise::Quantised;
using quantise::Scaling;
using reference::Index;

/// What stands among the entries of a matrix beside numbers of all sizes.
enum class Entries { many_sizes, zeros, subnormal, outlier, not_a_number, infinite, largest };

/// N(0, 1) times a power of two of its own for each entry, so that blocks differ in their scales, with some
/// entries as `kind` says; rounded to `type`.
inline at::Tensor matrix_of(Entries kind, Index R, Index C, std::uint64_t seed, at::ScalarType type) {
  using Limits = std::numeric_limits<double>;
  reference::Tensor<double> x = tests::normal({R, C}, seed);
  const reference::Tensor<double> sizes = tests::normal({R, C}, seed + 1, 4);
  const auto place = static_cast<Index>(seed % static_cast<std::uint64_t>(x.size()));
  for (Index i = 0; i < x.size(); ++i) {
    const bool some = std::abs(sizes[i]) < 2;  // about 4 of 10
    x[i] = std::ldexp(x[i], static_cast<int>(sizes[i]));
    if (kind == Entries::zeros && (some || i / C % 3 == 0)) x[i] = std::copysign(0.0, x[i]);
    if (kind == Entries::subnormal) x[i] = std::ldexp(x[i], some ? -133 : -126);
    if (kind == Entries::outlier && i == place) x[i] = std::ldexp(x[i], 40);
  }
  if (kind == Entries::not_a_number) x[place] = -Limits::quiet_NaN();
  if (kind == Entries::infinite) x[place] = -Limits::infinity();
  if (kind == Entries::largest) x[place] = -0x1.fep127;  // of bf16; the nearest code stands for 2^128
  return tests::rounded(x, type);
}

inline Entries draw_entries() {
  return *rc::gen::element(Entries::many_sizes, Entries::zeros, Entries::subnormal, Entries::outlier,
                           Entries::not_a_number, Entries::infinite, Entries::largest);
}
inline Format draw_format() { return *rc::gen::element(Format::e4m3, Format::e5m2); }
/// Extents that begin and end within blocks, patches and vectors of all sizes, and such that fill them.
inline Index draw_extent_of_blocks() {
  return *rc::gen::oneOf(rc::gen::inRange<Index>(1, 300),
                         rc::gen::element<Index>(16, 32, 128, 129, 256, 272));
}

inline at::Tensor bytes_of(const at::Tensor& tensor) {
  return tensor.cpu().contiguous().view({-1}).view(at::kByte);
}

inline spec::quantise::Matrix by_spec(const at::Tensor& x, const Quantisation& how) {
  const reference::Tensor<double> exact = tests::exact(x);
  const std::span<const double> values(exact.flat().data(), static_cast<std::size_t>(exact.size()));
  return spec::quantise::quantise(values, x.size(0), x.size(1), how.format, how.scaling);
}

/// Codes and scales are the spec's, padding of the scales is zero.
inline void expect_bits(const Quantised& got, const at::Tensor& x, const Quantisation& how) {
  const spec::quantise::Matrix expected = by_spec(x, how);
  RC_ASSERT(got.scaling == how.scaling && got.rows() == x.size(0) && got.columns() == x.size(1));
  RC_ASSERT(got.codes.scalar_type() == (how.format == Format::e4m3 ? at::kFloat8_e4m3fn : at::kFloat8_e5m2));
  const at::Tensor codes = bytes_of(got.codes), scales = quantise::scale_matrix(got);
  const std::vector<std::uint8_t> bits(codes.const_data_ptr<std::uint8_t>(),
                                       codes.const_data_ptr<std::uint8_t>() + codes.numel());
  RC_ASSERT(bits == expected.codes);
  RC_ASSERT(scales.numel() == static_cast<Index>(expected.scales.size()));
  for (std::size_t i = 0; i < expected.scales.size(); ++i) {
    const double scale = scales.const_data_ptr<double>()[i];
    RC_ASSERT(scale == expected.scales[i] || (std::isnan(scale) && std::isnan(expected.scales[i])));
  }
  const Index padding = got.scales.numel() - scales.numel();  // zeros: no scale is, not as a byte either
  RC_ASSERT(got.scales.cpu().eq(0).sum().item<Index>() == padding);
}

/// Drawn matrices, formats and orientations.
inline void quantise_matches_spec(at::Device device, const std::vector<Scaling>& scalings,
                                  const std::vector<at::ScalarType>& types) {
  const Index R = draw_extent_of_blocks(), C = draw_extent_of_blocks();
  const auto type = *rc::gen::elementOf(types);
  const Quantisation how{draw_format(), *rc::gen::elementOf(scalings)};
  const auto orientation =
      *rc::gen::element(Orientation::rows, Orientation::columns, Orientation::both, Orientation::both);
  const at::Tensor x = matrix_of(draw_entries(), R, C, *rc::gen::arbitrary<std::uint32_t>(), type);
  const auto twins = quantise::quantise(x.to(device), how, orientation);
  RC_ASSERT(twins.rows.defined() == (orientation != Orientation::columns));
  RC_ASSERT(twins.columns.defined() == (orientation != Orientation::rows));
  if (twins.rows.defined()) expect_bits(twins.rows, x, how);
  if (twins.columns.defined()) expect_bits(twins.columns, x.t().contiguous(), how);
}

/// A flat matrix in parts, one of them empty: the amax that they raise, the codes that they write to their
/// places, and the transpose of those are the whole matrix's.
inline void parts_match_the_whole(at::Device device, at::ScalarType type) {
  const Index R = draw_extent_of_blocks(), C = draw_extent_of_blocks();
  const Quantisation how{draw_format(), Scaling::tensor};
  const at::Tensor x = matrix_of(draw_entries(), R, C, *rc::gen::arbitrary<std::uint32_t>(), type).to(device);
  const auto whole = quantise::quantise(x, how, Orientation::both);
  const Index first = *rc::gen::inRange<Index>(0, R * C + 1),
              second = *rc::gen::inRange<Index>(first, R * C + 1);
  const at::Tensor amax = at::zeros({1}, x.options().dtype(at::kFloat));
  Quantised parts = quantise::unwritten(R, C, how, device);
  const auto part = [&](const at::Tensor& matrix, Index begin, Index end) {
    return matrix.view({-1}).narrow(0, begin, end - begin).view({-1, std::gcd<Index>(end - begin, 128)});
  };
  const auto each = [&](const auto& call) {
    for (const auto& [begin, end] :
         {std::pair<Index, Index>{second, R * C}, {0, first}, {first, second}, {first, first}})
      call(begin, end);
  };
  each([&](Index begin, Index end) {
    if (begin < end) quantise::raise_amax(part(x, begin, end), amax);
  });
  RC_ASSERT(tests::same_bits(amax, quantise::amax(x)));
  each([&](Index begin, Index end) {
    quantise::quantise_part(part(x, begin, end), how, amax, {part(parts.codes, begin, end), parts.scales});
  });
  RC_ASSERT(at::equal(bytes_of(parts.codes), bytes_of(whole.rows.codes)));
  RC_ASSERT(at::equal(bytes_of(parts.scales), bytes_of(whole.rows.scales)));
  const Quantised turned = quantise::transposed(parts);
  RC_ASSERT(turned.rows() == C && turned.columns() == R);
  RC_ASSERT(at::equal(bytes_of(turned.codes), bytes_of(whole.columns.codes)));
  RC_ASSERT(at::equal(bytes_of(turned.scales), bytes_of(whole.columns.scales)));
}

}  // namespace assay::impl::parity
