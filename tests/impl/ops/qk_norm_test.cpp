// labels: parity property
#include "impl/ops/qk_norm.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "reference/ops/rms_norm.hpp"
#include "tests/support/rms_norm_bounds.hpp"
#include "tests/support/tensors.hpp"

namespace assay::impl {
namespace {

using reference::Index;
using tests::exact;
using tests::values;

constexpr double eps = 1e-6;

RC_GTEST_PROP(QkNormImpl, MatchesReferenceOnEveryHead, ()) {
  const auto type = tests::draw_dtype(), statistic = tests::math_of(type);
  const Index B = *rc::gen::inRange<Index>(1, 3), T = *rc::gen::inRange<Index>(1, 40),
              E = *rc::gen::inRange<Index>(1, 20);
  const Index K = *rc::gen::inRange<Index>(1, 4), H = K * *rc::gen::inRange<Index>(1, 4);
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  const at::Tensor qkv = tests::normal({B, T, H + 2 * K, E}, seed, type),
                   dy = tests::normal({B, T, H + 2 * K, E}, seed + 1, type);
  const at::Tensor gains[] = {tests::normal({E}, seed + 2, type), tests::normal({E}, seed + 3, type)};
  const at::Tensor before[] = {tests::normal({E}, seed + 4, statistic),
                               tests::normal({E}, seed + 5, statistic)};

  for (bool generic : {false, true}) {
    RC_LOG() << (generic ? "aten" : "cpu") << "\n";
    const auto out =
        (generic ? qk_norm::aten::forward : qk_norm::forward)(qkv, gains[0], gains[1], H, K, eps);
    const at::Tensor dqkv = dy.clone(), dgains[] = {before[0].clone(), before[1].clone()};
    (generic ? qk_norm::aten::backward : qk_norm::backward)(dqkv, qkv, gains[0], gains[1], out.rstd, H, K,
                                                            dgains[0], dgains[1]);
    for (int part : {0, 1}) {  // query heads, key heads
      const Index first = part ? H : 0, count = part ? K : H;
      const auto heads = [&](const at::Tensor& all) {
        return exact(all.narrow(2, first, count)).reshaped({B * T * count, E});
      };
      const auto expected = reference::rms_norm::forward(heads(qkv), exact(gains[part]), eps);
      auto gradient = reference::rms_norm::backward(heads(dy), heads(qkv), exact(gains[part]), expected.rstd);
      gradient.dgain.flat() += exact(before[part]).flat();
      const tests::RmsNormBounds bounds(tests::rounding_of(type), heads(qkv), exact(gains[part]), heads(dy),
                                        expected.rstd);
      ASSAY_RC_CLOSE(values(heads(out.qkv)), values(expected.y), bounds.y(expected.y));
      ASSAY_RC_CLOSE(values(exact(out.rstd.narrow(2, first, count)).reshaped({B * T * count})),
                     values(expected.rstd), bounds.rstd());
      ASSAY_RC_CLOSE(values(heads(dqkv)), values(gradient.dx),
                     bounds.dx(gradient.dx, reference::Tensor<double>({B * T * count, E})));
      ASSAY_RC_CLOSE(values(dgains[part]), values(gradient.dgain), bounds.dgain(exact(before[part])));
    }
    RC_ASSERT(tests::same_bits(out.qkv.narrow(2, H + K, K), qkv.narrow(2, H + K, K)));
    RC_ASSERT(tests::same_bits(dqkv.narrow(2, H + K, K), dy.narrow(2, H + K, K)));
  }
}

TEST(QkNormImpl, SameBitsOnAnyNumberOfThreads) {
  for (auto type : {at::kDouble, at::kFloat, at::kBFloat16}) {
    const at::Tensor qkv = tests::normal({2, 300, 8, 12}, 1, type), gain = tests::normal({12}, 2, type);
    EXPECT_TRUE(tests::repeatable([&] {
      const auto out = qk_norm::forward(qkv, gain, gain, 4, 2, eps);
      const auto statistic = tests::math_of(type);
      at::Tensor dqkv = out.qkv.clone(), dq = at::zeros({12}, statistic), dk = at::zeros({12}, statistic);
      qk_norm::backward(dqkv, qkv, gain, gain, out.rstd, 4, 2, dq, dk);
      return std::vector{out.qkv, out.rstd, dqkv, dq, dk};
    })) << type;
  }
}

TEST(QkNormImpl, ConstraintsAreChecked) {
  const auto forward = [](reference::Shape shape, Index gains, Index heads, Index kv_heads, double epsilon) {
    return tests::refusal([&] {
      qk_norm::forward(at::ones(shape), at::ones({gains}), at::ones({gains}), heads, kv_heads, epsilon);
    });
  };
  EXPECT_EQ(forward({1, 2, 4, 6}, 6, 2, 1, eps), "accepted");
  EXPECT_EQ(forward({1, 2, 4, 6}, 5, 2, 1, eps), "qk_norm_c1");
  EXPECT_EQ(forward({1, 2, 5, 6}, 6, 2, 1, eps), "qk_norm_c2");
  EXPECT_EQ(forward({1, 2, 4, 6}, 6, 2, 1, 0), "qk_norm_c3");
  EXPECT_EQ(forward({1, 2, 4, 0}, 0, 2, 1, eps), "qk_norm_c4");
}

}  // namespace
}  // namespace assay::impl
