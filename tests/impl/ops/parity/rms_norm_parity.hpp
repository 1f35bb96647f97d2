#pragma once
// rms_norm against the reference, on any device.
#include <rapidcheck.h>

#include "impl/ops/rms_norm/rms_norm.hpp"
#include "reference/ops/rms_norm.hpp"
#include "tests/support/rms_norm_bounds.hpp"
#include "tests/support/tensors.hpp"

namespace assay::impl::parity {

using reference::Index;
using tests::exact;
using tests::values;

/// Forward and backward of drawn rows against the reference.
inline void rms_norm_matches_reference(at::Device device) {
  constexpr double eps = 1e-5;
  const auto type = tests::draw_dtype(), statistic = tests::math_of(type);
  const Index N = *rc::gen::inRange<Index>(1, 12), D = tests::draw_extent(device, 40, 4608);
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  const at::Tensor x = tests::normal({N, D}, seed, type), gain = tests::normal({D}, seed + 1, statistic);
  const at::Tensor dy = tests::normal({N, D}, seed + 2, type),
                   dx_before = tests::normal({N, D}, seed + 3, type);
  const at::Tensor dgain_before = tests::normal({D}, seed + 4, statistic);

  const auto expected = reference::rms_norm::forward(exact(x), exact(gain), eps);
  auto gradient = reference::rms_norm::backward(exact(dy), exact(x), exact(gain), expected.rstd);
  gradient.dx.flat() += exact(dx_before).flat();
  gradient.dgain.flat() += exact(dgain_before).flat();
  const tests::RmsNormBounds bounds(tests::rounding_of(type), exact(x), exact(gain), exact(dy),
                                    expected.rstd);
  const auto on = [&](const at::Tensor& tensor) { return tensor.to(device); };
  for (bool generic : tests::forms(device)) {
    RC_LOG() << (generic ? "aten" : "op") << "\n";
    const auto out = (generic ? rms_norm::aten::forward : rms_norm::forward)(on(x), on(gain), eps);
    RC_ASSERT(out.y.scalar_type() == type && out.rstd.scalar_type() == statistic);
    ASSAY_RC_CLOSE(values(out.y), values(expected.y), bounds.y(expected.y));
    ASSAY_RC_CLOSE(values(out.rstd), values(expected.rstd), bounds.rstd());
    const at::Tensor dx = on(dx_before).clone(), dgain = on(dgain_before).clone(), upstream = on(dy).clone();
    const auto backward = generic ? rms_norm::aten::backward : rms_norm::backward;
    backward(upstream, on(x), on(gain), out.rstd, dx, dx, dgain, ForwardValue::again);
    ASSAY_RC_CLOSE(values(upstream), values(expected.y), bounds.y(expected.y));  // the value again
    RC_ASSERT(tests::same_bits(upstream, out.y) || generic);
    ASSAY_RC_CLOSE(values(dx), values(gradient.dx), bounds.dx(gradient.dx, exact(dx_before)));
    ASSAY_RC_CLOSE(values(dgain), values(gradient.dgain), bounds.dgain(exact(dgain_before)));
    // The sum in a tensor of its own, and nothing else written.
    const at::Tensor residual = on(dx_before).clone(), dgain_again = on(dgain_before).clone(),
                     untouched = on(dy).clone(), dx_apart = at::full_like(residual, NAN);
    backward(untouched, on(x), on(gain), out.rstd, residual, dx_apart, dgain_again, ForwardValue::kept);
    RC_ASSERT(tests::same_bits(dx_apart, dx) && tests::same_bits(dgain_again, dgain) &&
              tests::same_bits(untouched, on(dy)) && tests::same_bits(residual, on(dx_before)));
  }
}

/// The norm of a sum against addition and norm apart: the same sum, and the same bits behind it.
inline void rms_norm_of_a_sum_is_both_apart(at::Device device) {
  constexpr double eps = 1e-5;
  const auto type = tests::draw_dtype();
  const Index N = *rc::gen::inRange<Index>(1, 12), D = tests::draw_extent(device, 40, 20000);
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  const at::Tensor x = tests::normal({N, D}, seed, type).to(device),
                   residual = tests::normal({N, D}, seed + 1, type).to(device),
                   gain = tests::normal({D}, seed + 2, tests::math_of(type)).to(device);
  const at::Tensor sum = x + residual;
  const auto expected = rms_norm::forward(sum, gain, eps);
  for (bool generic : tests::forms(device)) {
    const at::Tensor added = x.clone(), untouched = residual.clone();
    const auto out =
        (generic ? rms_norm::aten::forward_of_sum : rms_norm::forward_of_sum)(added, untouched, gain, eps);
    RC_ASSERT(tests::same_bits(added, sum) && tests::same_bits(untouched, residual));
    RC_ASSERT(generic || (tests::same_bits(out.y, expected.y) && tests::same_bits(out.rstd, expected.rstd)));
  }
}

}  // namespace assay::impl::parity
