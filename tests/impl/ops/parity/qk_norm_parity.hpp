#pragma once
// qk_norm against the reference, on any device.
#include <rapidcheck.h>

#include "impl/ops/qk_norm/qk_norm.hpp"
#include "reference/ops/rms_norm.hpp"
#include "tests/support/rms_norm_bounds.hpp"
#include "tests/support/tensors.hpp"

namespace assay::impl::parity {

using reference::Index;
using tests::exact;
using tests::values;

/// Every query and key head as a row of rms_norm's reference; value heads untouched.
inline void qk_norm_matches_reference(at::Device device) {
  constexpr double eps = 1e-6;
  const auto type = tests::draw_dtype(), statistic = tests::math_of(type);
  const Index B = *rc::gen::inRange<Index>(1, 3), T = *rc::gen::inRange<Index>(1, 40),
              E = device.is_cpu() || *rc::gen::arbitrary<bool>()
                      ? *rc::gen::inRange<Index>(1, 20)
                      : *rc::gen::element<Index>(64, 128, 256, 264);
  const Index K = *rc::gen::inRange<Index>(1, 4), H = K * *rc::gen::inRange<Index>(1, 4);
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  const at::Tensor qkv = tests::normal({B, T, H + 2 * K, E}, seed, type),
                   dy = tests::normal({B, T, H + 2 * K, E}, seed + 1, type);
  const at::Tensor gains[] = {tests::normal({E}, seed + 2, statistic),
                              tests::normal({E}, seed + 3, statistic)};
  const at::Tensor before[] = {tests::normal({E}, seed + 4, statistic),
                               tests::normal({E}, seed + 5, statistic)};

  const auto on = [&](const at::Tensor& tensor) {
    return tensor.to(device, /*non_blocking=*/false, /*copy=*/true);
  };
  for (bool generic : tests::forms(device)) {
    RC_LOG() << (generic ? "aten" : "op") << "\n";
    const auto out =
        (generic ? qk_norm::aten::forward : qk_norm::forward)(on(qkv), on(gains[0]), on(gains[1]), H, K, eps);
    const at::Tensor dqkv = on(dy), dgains[] = {on(before[0]), on(before[1])};
    (generic ? qk_norm::aten::backward : qk_norm::backward)(dqkv, on(qkv), on(gains[0]), on(gains[1]),
                                                            out.rstd, H, K, dgains[0], dgains[1]);
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

}  // namespace assay::impl::parity
