// labels: gpu parity property
#include "impl/ops/cross_entropy.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/impl/ops/cross_entropy_parity.hpp"
#include "tests/support/gpu.hpp"

namespace assay::impl::cuda_cross_entropy_test {
namespace {

TEST(CrossEntropyCuda, MatchesReference) {
  ASSAY_NEEDS_GPU();
  EXPECT_TRUE(rc::check([] { parity::cross_entropy_matches_reference(at::kCUDA); }));
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
