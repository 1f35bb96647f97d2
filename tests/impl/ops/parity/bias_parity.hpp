#pragma once
// The gradient of a bias against the reference, on any device.
#include <rapidcheck.h>

#include "impl/ops/bias/bias.hpp"
#include "reference/ops/bias.hpp"
#include "tests/support/tensors.hpp"

namespace assay::impl::parity {

/// Column sums of drawn rows, added to what is there.
inline void bias_matches_reference(at::Device device) {
  using reference::Index;
  using tests::exact;
  const auto type = tests::draw_dtype();
  const Index N = *rc::gen::inRange<Index>(1, 700), out = tests::draw_extent(device, 40, 3000);
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  const at::Tensor dy = tests::normal({N, out}, seed, type),
                   before = tests::normal({out}, seed + 1, tests::math_of(type));
  auto sizes = exact(dy), expected = reference::bias::backward(exact(dy));
  sizes.flat() = sizes.flat().abs();
  const auto terms = reference::bias::backward(sizes);
  expected.flat() += exact(before).flat();
  const double gamma = tests::rounding_of(type).gamma(static_cast<double>(N));
  const auto allowed =
      tests::each(out, [&](Index o) { return gamma * (terms[o] + std::abs(exact(before)[o])); });
  for (bool generic : tests::forms(device)) {
    RC_LOG() << (generic ? "aten" : "op") << "\n";
    const at::Tensor dbias = before.to(device, /*non_blocking=*/false, /*copy=*/true);
    (generic ? bias::aten::backward : bias::backward)(dy.to(device), dbias);
    ASSAY_RC_CLOSE(tests::values(dbias), tests::values(expected), allowed);
  }
}

}  // namespace assay::impl::parity
