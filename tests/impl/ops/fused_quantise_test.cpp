// labels: parity property
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/impl/ops/parity/fused_quantise_parity.hpp"

namespace assay::impl::fused_quantise_test {
namespace {

using namespace parity;

const std::vector<Scaling> all_scalings = {Scaling::tensor, Scaling::row, Scaling::block_1x128,
                                           Scaling::block_128x128, Scaling::mx_1x32};

RC_GTEST_PROP(FusedQuantise, NormIsTheNormQuantised, ()) {
  fused_norm_is_the_norm_quantised(at::kCPU, all_scalings);
}

RC_GTEST_PROP(FusedQuantise, GateIsTheGateQuantised, ()) {
  fused_gate_is_the_gate_quantised(at::kCPU, all_scalings);
}

TEST(FusedQuantise, RefusesShapesThatDoNotFit) {
  const at::Tensor x = at::ones({4, 6}), odd = at::ones({4, 5});
  const auto silu = spec::swiglu::Activation::silu;
  EXPECT_EQ(tests::refusal([&] { quantise::norm(x, at::ones({5}), 1e-5, {}, Orientation::both); }),
            "rms_norm_c1");
  EXPECT_EQ(tests::refusal([&] { quantise::gate(odd, silu, {}, Orientation::both); }), "swiglu_c1");
  EXPECT_EQ(
      tests::refusal([&] { quantise::gate_backward(odd, x, silu, {}, Orientation::both, std::nullopt); }),
      "swiglu_c1");
  const Quantisation other{Format::e4m3, Scaling::mx_1x32};
  EXPECT_THROW(quantise::gate_backward(at::ones({4, 3}), x, silu, {}, Orientation::both, other), c10::Error);
}

}  // namespace
}  // namespace assay::impl::fused_quantise_test
