// labels: gpu parity property
#include "impl/ops/quantise/quantise.hpp"

#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDAGuard.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "impl/ops/cuda_tensor.hpp"
#include "impl/ops/quantise/quantise_launch.hpp"
#include "impl/ops/quantise/scale_layout.hpp"
#include "spec/error.hpp"
#include "tests/impl/ops/parity/quantise_parity.hpp"
#include "tests/support/gpu.hpp"

namespace assay::impl::cuda_quantise_test {
namespace {

using namespace parity;
using quantise::Twins;

const std::vector<Scaling> scalings = {Scaling::tensor, Scaling::block_1x128, Scaling::block_128x128,
                                       Scaling::mx_1x32};

/// Codes and scales of both orientations, as bytes on the CPU.
std::vector<at::Tensor> bytes_of_twins(const Twins& twins) {
  std::vector<at::Tensor> all;
  for (const Quantised& one : {twins.rows, twins.columns})
    if (one.defined()) all.insert(all.end(), {bytes_of(one.codes), bytes_of(one.scales)});
  return all;
}

/// NaN scales have one bit pattern on every device, so that all bytes can be compared.
void expect_same(const Twins& got, const Twins& expected, const std::string& what) {
  const auto ours = bytes_of_twins(got), theirs = bytes_of_twins(expected);
  ASSERT_EQ(ours.size(), theirs.size()) << what;
  for (std::size_t i = 0; i < ours.size(); ++i)
    EXPECT_TRUE(at::equal(ours[i], theirs[i])) << what << ", " << i;
}

TEST(QuantiseCuda, MatchesSpec) {
  ASSAY_NEEDS_GPU();
  EXPECT_TRUE(rc::check(+[] { quantise_matches_spec(at::kCUDA, scalings, {at::kBFloat16, at::kFloat}); }));
}

TEST(QuantiseCuda, PartsOfAMatrixAreItsCodesAndTurnAsItDoes) {
  ASSAY_NEEDS_GPU();
  EXPECT_TRUE(
      rc::check(+[] { parts_match_the_whole(at::kCUDA, *rc::gen::element(at::kBFloat16, at::kFloat)); }));
}

TEST(QuantiseCuda, TransposingWritesItsOwnBytesOnly) {
  ASSAY_NEEDS_GPU();
  constexpr Index guard = 64;
  constexpr int untouched = 0xA5;
  for (const Index R : {1, 16, 130, 256, 1040})
    for (const Index C : {1, 16, 77, 128, 384, 1500})
      for (const Index offset : {0, 1, 8}) {  // codes that are not aligned, too
        const at::Tensor bytes = at::randint(256, {offset + R * C},
                                             at::TensorOptions(at::kCUDA).dtype(at::kByte)),
                         to = at::full({R * C + 2 * guard}, untouched, bytes.options());
        const at::Tensor codes = bytes.narrow(0, offset, R * C).view({R, C});
        quantise::cuda::transpose(codes, to.narrow(0, guard, R * C).view({C, R}));
        const std::string what =
            std::to_string(R) + " x " + std::to_string(C) + " at " + std::to_string(offset);
        EXPECT_TRUE(at::equal(to.narrow(0, guard, R * C).view({C, R}), codes.t())) << what;
        EXPECT_TRUE(to.narrow(0, 0, guard).eq(untouched).all().item<bool>()) << what;
        EXPECT_TRUE(to.narrow(0, guard + R * C, guard).eq(untouched).all().item<bool>()) << what;
      }
}

TEST(QuantiseCuda, AmaxHasTheBitsOfTheCpu) {
  ASSAY_NEEDS_GPU();
  EXPECT_TRUE(rc::check(+[] {
    const at::Tensor x =
        matrix_of(draw_entries(), draw_extent_of_blocks(), draw_extent_of_blocks(),
                  *rc::gen::arbitrary<std::uint32_t>(), *rc::gen::element(at::kBFloat16, at::kFloat));
    RC_ASSERT(tests::same_bits(quantise::amax(x.to(at::kCUDA)), quantise::amax(x)));
  }));
}

TEST(QuantiseCuda, LargeMatricesMatchTheCpu) {
  ASSAY_NEEDS_GPU();
  for (const auto& [R, C] : {std::pair<Index, Index>{4096, 2304}, {2100, 1040}, {333, 12288}, {20000, 144}})
    for (const Scaling scaling : scalings)
      for (const Format format : {Format::e4m3, Format::e5m2}) {
        const at::Tensor x =
            at::randn({R, C}, at::TensorOptions(at::kCUDA).dtype(at::kBFloat16)).mul_(3).exp_();
        const Quantisation how{format, scaling};
        const std::string what = std::to_string(R) + " x " + std::to_string(C) + " " + to_string(scaling);
        EXPECT_TRUE(tests::same_bits(quantise::amax(x), quantise::amax(x.cpu()))) << what;
        expect_same(quantise::quantise(x, how, Orientation::both),
                    quantise::quantise(x.cpu(), how, Orientation::both), what);
      }
}

TEST(QuantiseCuda, MatricesThatBeginAnywhere) {
  ASSAY_NEEDS_GPU();
  for (const auto type : {at::kBFloat16, at::kFloat})
    for (const Index offset : {1, 2, 3, 8})
      for (const Scaling scaling : scalings) {
        const at::Tensor whole = matrix_of(Entries::many_sizes, 1, 160 * 144 + offset, 5, type).view({-1});
        const at::Tensor x = whole.to(at::kCUDA).narrow(0, offset, 160 * 144).view({160, 144});
        expect_same(quantise::quantise(x, {Format::e4m3, scaling}, Orientation::both),
                    quantise::quantise(x.cpu(), {Format::e4m3, scaling}, Orientation::both),
                    std::string(to_string(scaling)) + " at " + std::to_string(offset));
      }
}

TEST(QuantiseCuda, SameBitsTwice) {
  ASSAY_NEEDS_GPU();
  const at::Tensor x = matrix_of(Entries::many_sizes, 1500, 1040, 1, at::kBFloat16).to(at::kCUDA);
  EXPECT_TRUE(tests::repeatable([&] {
    std::vector<at::Tensor> all = {quantise::amax(x)};
    for (const Scaling scaling : scalings)
      for (const at::Tensor& bytes :
           bytes_of_twins(quantise::quantise(x, {Format::e5m2, scaling}, Orientation::both)))
        all.push_back(bytes);
    return all;
  }));
}

TEST(QuantiseCuda, WritesItsOwnBytesOnly) {
  ASSAY_NEEDS_GPU();
  // Columns [first, first + C) of a matrix [R, width], everything amid guard bytes.
  constexpr Index guard = 64, first = 256, width = 640;
  constexpr int untouched = 0xA5;
  for (const Index R : {130, 256, 77})
    for (const Index C : {128, 250, 384})
      for (const Scaling scaling : scalings) {
        const at::Tensor x = matrix_of(Entries::many_sizes, R, C, 7, at::kBFloat16);
        // What the CPU makes of the matrix with these columns, and 0 elsewhere.
        at::Tensor whole = at::zeros({R, width}, at::kBFloat16);
        whole.narrow(1, first, C).copy_(x);
        const Quantisation how{Format::e4m3, scaling};
        const at::Tensor amax = quantise::amax(whole);
        const Twins expected = quantise::quantise(whole, how, Orientation::both, amax);
        const auto buffer_of = [&](Index bytes) {
          return at::full({bytes + 2 * guard}, untouched, at::TensorOptions(at::kCUDA).dtype(at::kByte));
        };
        const Index of_row_scales = expected.rows.scales.nbytes(),
                    of_column_scales = expected.columns.scales.nbytes();
        const at::Tensor rows = buffer_of(R * width), columns = buffer_of(R * width),
                         row_scales = buffer_of(of_row_scales), column_scales = buffer_of(of_column_scales);
        const at::Tensor source = x.to(at::kCUDA), most = amax.to(at::kCUDA);
        const auto inside = [&](const at::Tensor& buffer) { return buffer.data_ptr<std::uint8_t>() + guard; };
        const quantise::cuda::Target target{.format = how.format,
                                            .width = width,
                                            .first = first,
                                            .rows = inside(rows),
                                            .columns = inside(columns),
                                            .row_scales = inside(row_scales),
                                            .column_scales = inside(column_scales),
                                            .amax = most.data_ptr<float>()};
        quantise::cuda::launch_quantise(quantise::cuda::MatrixSource{Dtype::bf16, source.const_data_ptr()},
                                        scaling, {R, C, &target, 1, impl::cuda::stream()});
        const std::string what =
            std::string(to_string(scaling)) + " " + std::to_string(R) + " x " + std::to_string(C);
        const auto written = [&](const at::Tensor& buffer, Index bytes) {
          const at::Tensor host = buffer.cpu();
          EXPECT_TRUE(host.narrow(0, 0, guard).eq(untouched).all().item<bool>()) << what;
          EXPECT_TRUE(host.narrow(0, guard + bytes, guard).eq(untouched).all().item<bool>()) << what;
          return host.narrow(0, guard, bytes);
        };
        const at::Tensor codes = written(rows, R * width).view({R, width}),
                         turned = written(columns, R * width).view({width, R});
        EXPECT_TRUE(at::equal(codes.narrow(1, first, C),
                              bytes_of(expected.rows.codes).view({R, width}).narrow(1, first, C)))
            << what;
        EXPECT_TRUE(at::equal(turned.narrow(0, first, C),
                              bytes_of(expected.columns.codes).view({width, R}).narrow(0, first, C)))
            << what;
        EXPECT_TRUE(codes.narrow(1, 0, first).eq(untouched).all().item<bool>()) << what;
        EXPECT_TRUE(turned.narrow(0, 0, first).eq(untouched).all().item<bool>()) << what;
        EXPECT_TRUE(codes.narrow(1, first + C, width - first - C).eq(untouched).all().item<bool>()) << what;
        EXPECT_TRUE(turned.narrow(0, first + C, width - first - C).eq(untouched).all().item<bool>()) << what;
        // Every scale is the whole matrix's, or was left alone.
        const auto agree = [&](const at::Tensor& got, const at::Tensor& wanted) {
          const at::Tensor theirs = bytes_of(wanted);
          return (got.eq(theirs) | got.eq(untouched)).all().item<bool>() && got.eq(theirs).any().item<bool>();
        };
        EXPECT_TRUE(agree(written(row_scales, of_row_scales), expected.rows.scales)) << what;
        EXPECT_TRUE(agree(written(column_scales, of_column_scales), expected.columns.scales)) << what;
      }
}

TEST(QuantiseCuda, IsCapturedInAGraph) {
  ASSAY_NEEDS_GPU();
  const auto stream = c10::cuda::getStreamFromPool();
  const c10::cuda::CUDAStreamGuard here(stream);
  at::Tensor x = at::zeros({272, 400}, at::TensorOptions(at::kCUDA).dtype(at::kBFloat16));
  std::vector<Twins> twins;
  const auto quantise_all = [&] {
    twins.clear();
    for (const Scaling scaling : scalings)
      twins.push_back(quantise::quantise(x, {Format::e4m3, scaling}, Orientation::both));
  };
  quantise_all();  // loads the kernels, which a capture may not
  at::cuda::CUDAGraph graph;
  graph.capture_begin();
  quantise_all();
  graph.capture_end();
  for (const std::uint64_t seed : {1, 2}) {  // smaller the second time: nothing of the first amax stays
    const at::Tensor values =
        matrix_of(Entries::many_sizes, 272, 400, seed, at::kBFloat16).mul_(seed == 1 ? 1024 : 1);
    x.copy_(values);
    graph.replay();
    stream.synchronize();
    for (std::size_t i = 0; i < scalings.size(); ++i)
      expect_same(twins[i], quantise::quantise(values, {Format::e4m3, scalings[i]}, Orientation::both),
                  to_string(scalings[i]));
  }
}

TEST(QuantiseCuda, RefusesWhatNoKernelReads) {
  ASSAY_NEEDS_GPU();
  const at::Tensor x = at::ones({4, 6}, at::kCUDA);
  EXPECT_THROW(quantise::quantise(x, {Format::e4m3, Scaling::row}, Orientation::rows), UserError);
  EXPECT_THROW(quantise::amax(x.to(at::kDouble)), UserError);
}

}  // namespace
}  // namespace assay::impl::cuda_quantise_test
