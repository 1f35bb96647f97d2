// labels: gpu parity property
#include "impl/ops/cross_entropy/cross_entropy.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/impl/ops/parity/cross_entropy_parity.hpp"
#include "tests/impl/ops/parity/cross_entropy_slices_parity.hpp"
#include "tests/support/gpu.hpp"

namespace assay::impl::cuda_cross_entropy_test {
namespace {

TEST(CrossEntropyCuda, MatchesReference) {
  ASSAY_NEEDS_GPU();
  EXPECT_TRUE(rc::check(+[] { parity::cross_entropy_matches_reference(at::kCUDA); }));
}

TEST(CrossEntropyCuda, SlicesMatchReferenceAndOneRank) {
  ASSAY_NEEDS_GPU();
  EXPECT_TRUE(rc::check(+[] { parity::cross_entropy_slices_match_reference(at::kCUDA); }));
}

TEST(CrossEntropyCuda, OneSliceHasTheBitsOfForward) {
  ASSAY_NEEDS_GPU();
  EXPECT_TRUE(parity::one_slice_has_the_bits_of_forward(at::kCUDA));
}

TEST(CrossEntropyCuda, SameBitsTwice) {
  ASSAY_NEEDS_GPU();
  const at::Tensor logits = tests::normal({700, 5000}, 1, at::kBFloat16).to(at::kCUDA);
  reference::Ids ids;
  for (std::int64_t n = 0; n < 700; ++n) ids.push_back(n % 7 ? n % 50 : -100);
  const at::Tensor targets = tests::integers(ids).to(at::kCUDA);
  EXPECT_TRUE(tests::repeatable([&] {
    const auto out = cross_entropy::forward(logits, targets, 600, 1e-3);
    return std::vector{out.loss, out.z_loss, out.lse,
                       cross_entropy::backward(logits.clone(), targets, out.lse, 600, 1e-3)};
  }));
}

/// Rows of many rounds of loads, of 1,024 threads, and with shared memory kept idle: vocabularies that are
/// trained. Forward and backward at once have the bits of one after the other, and are near fp64: lse within
/// the bound of its sum, the gradient within its rounding to bf16 and that of p.
TEST(CrossEntropyCuda, RowsOfRealVocabulariesAreNearFp64) {
  ASSAY_NEEDS_GPU();
  for (const std::int64_t V : {32000, 50257, 50304, 128256, 151936}) {
    const at::Tensor drawn = tests::normal({300, V}, 3, at::kBFloat16, 4).to(at::kCUDA);
    reference::Ids ids;
    for (std::int64_t n = 0; n < 300; ++n) ids.push_back(n % 7 ? (n * 977) % V : -100);
    const at::Tensor targets = tests::integers(ids).to(at::kCUDA), in_turn = drawn.clone(),
                     both = drawn.clone();
    const auto forward = cross_entropy::forward(in_turn, targets, 250, 1e-4);
    cross_entropy::backward(in_turn, targets, forward.lse, 250, 1e-4);
    const auto at_once = cross_entropy::forward_backward(both, targets, 250, 1e-4);
    EXPECT_TRUE(tests::same_bits(at_once.lse, forward.lse) && tests::same_bits(at_once.loss, forward.loss) &&
                tests::same_bits(at_once.z_loss, forward.z_loss) && tests::same_bits(both, in_turn))
        << V;
    const at::Tensor exact = drawn.to(at::kDouble);
    const auto wanted = cross_entropy::aten::forward(exact, targets, 250, 1e-4);
    const double roundings = static_cast<double>(V) + 40;
    EXPECT_LE((at_once.lse.to(at::kDouble) - wanted.lse).abs().max().item<double>(),
              roundings * unit_roundoff(Dtype::f32))
        << V;
    cross_entropy::aten::backward(exact, targets, wanted.lse, 250, 1e-4);
    const double off = ((both.to(at::kDouble) - exact).norm() / exact.norm()).item<double>();
    EXPECT_LE(off, unit_roundoff(Dtype::bf16) + roundings * unit_roundoff(Dtype::f32)) << V;
  }
}

TEST(CrossEntropyCuda, NotANumberIsKept) {
  ASSAY_NEEDS_GPU();
  at::Tensor logits = tests::normal({3, 900}, 1, at::kFloat);
  logits[1][3] = std::nan("");
  const auto out =
      cross_entropy::forward(logits.to(at::kCUDA), tests::integers({0, 1, 2}).to(at::kCUDA), 3, 0);
  EXPECT_TRUE(std::isnan(out.loss.item<double>()));
}

}  // namespace
}  // namespace assay::impl::cuda_cross_entropy_test
