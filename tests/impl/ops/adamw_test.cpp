// labels: parity property
#include "impl/ops/adamw/adamw.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/impl/ops/parity/adamw_parity.hpp"
#include "tests/support/tensors.hpp"

namespace assay::impl::adamw_test {
namespace {

using reference::Index;

RC_GTEST_PROP(AdamwImpl, OneStepMatchesReference, ()) { parity::adamw_matches_reference(at::kCPU); }

TEST(AdamwImpl, SameBitsOnAnyNumberOfThreadsAndRanges) {
  const at::Tensor gradient = tests::normal({50001}, 1, at::kFloat),
                   start = tests::normal({50001}, 2, at::kFloat);
  const adamw::Settings settings{1e-2, 0.9, 0.95, 1e-8, 0.1, 3, 0.5};
  const auto run = [&](Index cut) {
    at::Tensor w = start.clone(), m = at::zeros_like(w), v = at::zeros_like(w);
    for (const auto& [from, size] : {std::pair{Index(0), cut}, std::pair{cut, 50001 - cut}}) {
      const auto part = [from = from, size = size](const at::Tensor& all) {
        return all.narrow(0, from, size);
      };
      adamw::update(part(w), part(w), part(gradient), part(m), part(v), settings);
    }
    return std::vector{w, m, v};
  };
  EXPECT_TRUE(tests::repeatable([&] { return run(0); }));
  // Shards of any size update an entry alike.
  for (Index cut : {1, 777, 16384, 50000})
    for (std::size_t i = 0; i < 3; ++i)
      EXPECT_TRUE(tests::same_bits(run(cut)[i], run(0)[i])) << cut << " " << i;
}

RC_GTEST_PROP(AdamwImpl, OneStepOnBf16StatesMatchesReference, ()) {
  parity::adamw_bf16_matches_reference(at::kCPU);
}

TEST(AdamwImpl, Bf16StatesHaveTheSameBitsOnAnyNumberOfThreadsAndRanges) {
  const auto whole = parity::adamw_bf16_in_two(at::kCPU, 50001, 0);
  EXPECT_TRUE(tests::repeatable([] { return parity::adamw_bf16_in_two(at::kCPU, 50001, 0); }));
  for (Index cut : {1, 777, 16384, 50000}) {
    const auto parts = parity::adamw_bf16_in_two(at::kCPU, 50001, cut);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_TRUE(tests::same_bits(parts[i], whole[i])) << cut << " " << i;
  }
}

TEST(AdamwImpl, ConstraintsAreChecked) {
  const auto update = [](Index entries, adamw::Settings settings) {
    const at::Tensor w = at::ones({3}), m = at::zeros({3}), v = at::zeros({3});
    return tests::refusal([&] { adamw::update(w, w, at::ones({entries}), m, v, settings); });
  };
  const adamw::Settings good{1e-2, 0.9, 0.95, 1e-8, 0.1, 1, 1};
  const auto with = [&](auto change) {
    adamw::Settings changed = good;
    change(changed);
    return update(3, changed);
  };
  EXPECT_EQ(update(3, good), "accepted");
  EXPECT_EQ(update(2, good), "adamw_c1");
  EXPECT_EQ(with([](auto& s) { s.step = 0; }), "adamw_c2");
  EXPECT_EQ(with([](auto& s) { s.beta1 = 1; }), "adamw_c3");
  EXPECT_EQ(with([](auto& s) { s.eps = 0; }), "adamw_c4");
  EXPECT_EQ(with([](auto& s) { s.learning_rate = -1; }), "adamw_c5");
  EXPECT_EQ(with([](auto& s) { s.weight_decay = -1; }), "adamw_c6");
  adamw::Settings late = good;
  late.step = std::int64_t{1} << 32;
  EXPECT_EQ(update(3, late), "accepted");
  const at::Tensor states = at::zeros({3}, at::kBFloat16);
  EXPECT_EQ(tests::refusal([&] { adamw::update(states, states, at::ones({3}), states, states, late); }),
            "adamw_c7");
}

}  // namespace
}  // namespace assay::impl::adamw_test
