// labels: gpu parity property
#include "impl/ops/adamw/adamw.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/impl/ops/parity/adamw_parity.hpp"
#include "tests/support/gpu.hpp"

namespace assay::impl::cuda_adamw_test {
namespace {

TEST(AdamwCuda, MatchesReference) {
  ASSAY_NEEDS_GPU();
  EXPECT_TRUE(rc::check(+[] { parity::adamw_matches_reference(at::kCUDA); }));
}

TEST(AdamwCuda, SameBitsTwice) {
  ASSAY_NEEDS_GPU();
  const at::Tensor gradient = tests::normal({50001}, 1, at::kFloat).to(at::kCUDA),
                   start = tests::normal({50001}, 2, at::kFloat).to(at::kCUDA);
  const adamw::Settings settings{1e-2, 0.9, 0.95, 1e-8, 0.1, 3, 0.5};
  EXPECT_TRUE(tests::repeatable([&] {
    at::Tensor w = start.clone(), m = at::zeros_like(w), v = at::zeros_like(w);
    adamw::update(w, w, gradient, m, v, settings);
    return std::vector{w, m, v};
  }));
}

TEST(AdamwCuda, RangesOfAnyAlignmentGiveTheSameBits) {
  ASSAY_NEEDS_GPU();
  const at::Tensor gradient = tests::normal({5003}, 1, at::kFloat).to(at::kCUDA),
                   start = tests::normal({5003}, 2, at::kFloat).to(at::kCUDA);
  const adamw::Settings settings{1e-2, 0.9, 0.95, 1e-8, 0.1, 3, 0.5};
  const auto run = [&](std::int64_t cut) {
    at::Tensor w = start.clone(), m = at::zeros_like(w), v = at::zeros_like(w),
               weight = at::zeros_like(w, w.options().dtype(at::kBFloat16));
    for (const auto& [from, size] : {std::pair{std::int64_t(0), cut}, std::pair{cut, 5003 - cut}}) {
      const auto part = [from = from, size = size](const at::Tensor& all) {
        return all.narrow(0, from, size);
      };
      adamw::update(part(weight), part(w), part(gradient), part(m), part(v), settings);
    }
    return std::vector{weight, w, m, v};
  };
  for (std::int64_t cut : {1, 4, 777, 4096})
    for (std::size_t i = 0; i < 4; ++i)
      EXPECT_TRUE(tests::same_bits(run(cut)[i], run(0)[i])) << cut << " " << i;
}

TEST(AdamwCuda, Bf16StatesMatchReference) {
  ASSAY_NEEDS_GPU();
  EXPECT_TRUE(rc::check(+[] { parity::adamw_bf16_matches_reference(at::kCUDA); }));
}

TEST(AdamwCuda, Bf16StatesHaveTheSameBitsTwiceAndInRangesOfAnyAlignment) {
  ASSAY_NEEDS_GPU();
  const auto whole = parity::adamw_bf16_in_two(at::kCUDA, 5008, 0);
  EXPECT_TRUE(tests::repeatable([] { return parity::adamw_bf16_in_two(at::kCUDA, 5008, 0); }));
  for (std::int64_t cut : {1, 4, 777, 4096}) {
    const auto parts = parity::adamw_bf16_in_two(at::kCUDA, 5008, cut);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_TRUE(tests::same_bits(parts[i], whole[i])) << cut << " " << i;
  }
}

}  // namespace
}  // namespace assay::impl::cuda_adamw_test
