// labels: gpu parity property
#include "impl/ops/rope/rope.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/impl/ops/parity/rope_parity.hpp"
#include "tests/support/gpu.hpp"

namespace assay::impl::cuda_rope_test {
namespace {

TEST(RopeCuda, MatchesReference) {
  ASSAY_NEEDS_GPU();
  EXPECT_TRUE(rc::check(+[] { parity::rope_matches_reference(at::kCUDA); }));
}

TEST(RopeCuda, JoinedBackwardMatchesReference) {
  ASSAY_NEEDS_GPU();
  EXPECT_TRUE(rc::check(+[] { parity::rope_joined_backward_matches_reference(at::kCUDA); }));
}

TEST(RopeCuda, JoinedBackwardGivesTheBitsOfJoiningAndRotating) {
  ASSAY_NEEDS_GPU();
  const at::Tensor dqkv = tests::normal({4, 100, 54, 128}, 1, at::kBFloat16).to(at::kCUDA);
  const auto table =
      rope::table(spec::rope::inverse_frequencies(128, 10000, {}), 100, at::kBFloat16, at::kCUDA);
  const at::Tensor joined =
      rope::joined_backward(dqkv.narrow(2, 0, 18), dqkv.narrow(2, 18, 18), dqkv.narrow(2, 36, 18), table, {});
  rope::rotate(dqkv, 36, table, {}, true);
  EXPECT_TRUE(tests::same_bits(joined, dqkv));
}

TEST(RopeCuda, SameBitsTwice) {
  ASSAY_NEEDS_GPU();
  const at::Tensor x = tests::normal({4, 100, 6, 128}, 1, at::kBFloat16).to(at::kCUDA);
  const auto table =
      rope::table(spec::rope::inverse_frequencies(128, 10000, {}), 100, at::kBFloat16, at::kCUDA);
  EXPECT_TRUE(tests::repeatable([&] {
    at::Tensor y = x.clone();
    rope::rotate(y, 4, table, {}, false);
    return std::vector{y};
  }));
}

}  // namespace
}  // namespace assay::impl::cuda_rope_test
