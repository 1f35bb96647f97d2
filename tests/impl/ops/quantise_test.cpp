// labels: parity property
#include "impl/ops/quantise/quantise.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "impl/ops/quantise/scale_layout.hpp"
#include "tests/impl/ops/parity/quantise_parity.hpp"

namespace assay::impl::quantise_test {
namespace {

using namespace parity;

const std::vector<Scaling> all_scalings = {Scaling::tensor, Scaling::row, Scaling::block_1x128,
                                           Scaling::block_128x128, Scaling::mx_1x32};

RC_GTEST_PROP(QuantiseImpl, MatchesSpec, ()) {
  quantise_matches_spec(at::kCPU, all_scalings, {at::kDouble, at::kFloat, at::kBFloat16});
}

RC_GTEST_PROP(QuantiseImpl, AmaxIsTheLargestMagnitude, ()) {
  const auto type = tests::draw_dtype();
  const at::Tensor x = matrix_of(draw_entries(), *rc::gen::inRange<Index>(1, 40),
                                 *rc::gen::inRange<Index>(1, 40), *rc::gen::arbitrary<std::uint32_t>(), type);
  const double expected = x.abs().max().item<double>(), most = quantise::amax(x).item<double>();
  if (std::isnan(expected)) {
    RC_ASSERT(std::isnan(most));
    return;
  }
  // fp32, rounded up: the least such number that is not below.
  RC_ASSERT(most >= expected);
  RC_ASSERT(most == expected || std::nextafter(static_cast<float>(most), 0.0F) < expected);
}

RC_GTEST_PROP(QuantiseImpl, AmaxOfMoreEntriesScalesAllOfThem, ()) {
  // The amax of all ranks: the shard's codes are those that it has in the whole matrix.
  const Quantisation how{draw_format(), Scaling::tensor};
  const at::Tensor x = matrix_of(draw_entries(), 24, 20, *rc::gen::arbitrary<std::uint32_t>(), at::kBFloat16);
  const auto whole = quantise::quantise(x, how, Orientation::both);
  const auto half = quantise::quantise(x.narrow(0, 12, 12), how, Orientation::both, quantise::amax(x));
  RC_ASSERT(tests::same_bits(half.rows.scales, whole.rows.scales));
  RC_ASSERT(at::equal(bytes_of(half.rows.codes), bytes_of(whole.rows.codes.narrow(0, 12, 12))));
  RC_ASSERT(at::equal(bytes_of(half.columns.codes), bytes_of(whole.columns.codes.narrow(1, 12, 12))));
}

RC_GTEST_PROP(QuantiseImpl, PartsOfAMatrixAreItsCodesAndTurnAsItDoes, ()) {
  parts_match_the_whole(at::kCPU, *rc::gen::element(at::kDouble, at::kFloat, at::kBFloat16));
}

RC_GTEST_PROP(QuantiseImpl, DequantisesExactly, ()) {
  const Quantisation how{draw_format(), *rc::gen::elementOf(all_scalings)};
  const at::Tensor x = matrix_of(draw_entries(), draw_extent_of_blocks(), draw_extent_of_blocks(),
                                 *rc::gen::arbitrary<std::uint32_t>(), at::kBFloat16);
  const spec::quantise::Matrix expected = by_spec(x, how);
  const at::Tensor values =
      quantise::dequantise(quantise::quantise(x, how, Orientation::rows).rows, at::kDouble);
  for (Index r = 0; r < x.size(0); ++r)
    for (Index c = 0; c < x.size(1); ++c) {
      const double value = values.const_data_ptr<double>()[r * x.size(1) + c], wanted = expected.value(r, c);
      RC_ASSERT(value == wanted || (std::isnan(value) && std::isnan(wanted)));
    }
}

TEST(QuantiseImpl, SameBitsOnAnyNumberOfThreads) {
  const at::Tensor x = matrix_of(Entries::many_sizes, 300, 260, 1, at::kBFloat16);
  EXPECT_TRUE(tests::repeatable([&] {
    std::vector<at::Tensor> all = {quantise::amax(x)};
    for (const Scaling scaling : all_scalings) {
      const auto twins = quantise::quantise(x, {Format::e4m3, scaling}, Orientation::both);
      for (const Quantised& one : {twins.rows, twins.columns})
        all.insert(all.end(), {bytes_of(one.codes), one.scales});
    }
    return all;
  }));
}

/// The order that PyTorch gives MXFP8 scales for cuBLASLt (torch.testing._internal, to_blocked): [rows,
/// columns], padded, as tiles of 128 x 4, each as 32 rows of 4 x 4.
at::Tensor in_tiles(const at::Tensor& scales) {
  const Index down = (scales.size(0) + 127) / 128, across = (scales.size(1) + 3) / 4;
  at::Tensor padded = at::zeros({down * 128, across * 4}, scales.options());
  padded.narrow(0, 0, scales.size(0)).narrow(1, 0, scales.size(1)).copy_(scales);
  const at::Tensor tiles = padded.view({down, 128, across, 4}).permute({0, 2, 1, 3}).reshape({-1, 4, 32, 4});
  return tiles.transpose(1, 2).reshape({-1});
}

TEST(QuantiseImpl, Fp64IsRoundedOnce) {
  // Beside the middle of two codes by less than fp32 shows; 448 keeps the scale at 1.
  const at::Tensor x =
      at::tensor({17 + 0x1p-40, 17 - 0x1p-40, 19 + 0x1p-40, 19 - 0x1p-40, 17.0, 448.0}).view({1, 6});
  const auto rows = quantise::quantise(x, {}, Orientation::rows).rows;
  EXPECT_TRUE(at::equal(quantise::dequantise(rows, at::kDouble),
                        at::tensor({18.0, 16.0, 20.0, 18.0, 16.0, 448.0}).view({1, 6})));
}

TEST(ScaleLayout, IsWhatTheGemmsRead) {
  const at::Tensor x = matrix_of(Entries::many_sizes, 330, 610, 3, at::kBFloat16);
  const auto rows_in = [&](Scaling scaling) {
    return quantise::quantise(x, {Format::e4m3, scaling}, Orientation::rows).rows;
  };
  const Quantised vectors = rows_in(Scaling::block_1x128);
  ASSERT_EQ(vectors.scales.sizes(), (at::IntArrayRef{5, 332}));
  EXPECT_TRUE(
      at::equal(vectors.scales.narrow(1, 0, 330).t().to(at::kDouble), quantise::scale_matrix(vectors)));
  const Quantised squares = rows_in(Scaling::block_128x128);
  ASSERT_EQ(squares.scales.sizes(), (at::IntArrayRef{3, 8}));
  EXPECT_TRUE(at::equal(squares.scales.narrow(1, 0, 5).to(at::kDouble), quantise::scale_matrix(squares)));
  const Quantised mx = rows_in(Scaling::mx_1x32);
  const at::Tensor exponents = (quantise::scale_matrix(mx).log2() + 127).to(at::kByte);
  EXPECT_TRUE(at::equal(mx.scales, in_tiles(exponents)));
}

TEST(ScaleLayout, ByHand) {
  using quantise::ScaleLayout;
  // Row 33 of a tile is the second of its 32-row group 1; the tile right of it is the next, the one below
  // after.
  const ScaleLayout mx{Scaling::mx_1x32, 200, 6};
  EXPECT_EQ(mx.at(33, 2), 16 + 4 + 2);
  EXPECT_EQ(mx.at(33, 4), 512 + 16 + 4);
  EXPECT_EQ(mx.at(128, 0), 1024);
  EXPECT_EQ(mx.size(), 2048);
  EXPECT_EQ((ScaleLayout{Scaling::block_1x128, 5, 3}.at(4, 2)), 2 * 8 + 4);
  EXPECT_EQ((ScaleLayout{Scaling::block_128x128, 5, 3}.at(4, 2)), 4 * 4 + 2);
}

TEST(QuantiseImpl, RefusesWhatIsNoMatrix) {
  EXPECT_THROW(quantise::amax(at::ones({4})), c10::Error);
  EXPECT_THROW(quantise::amax(at::ones({4, 6}).t()), c10::Error);
  EXPECT_THROW(quantise::quantise(at::ones({4, 6}, at::kHalf), {}, Orientation::both), c10::Error);
}

}  // namespace
}  // namespace assay::impl::quantise_test
