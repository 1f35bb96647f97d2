// labels: gpu parity property
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/impl/ops/parity/fused_quantise_parity.hpp"
#include "tests/support/gpu.hpp"

namespace assay::impl::cuda_fused_quantise_test {
namespace {

using namespace parity;

const std::vector<Scaling> scalings = {Scaling::tensor, Scaling::block_1x128, Scaling::block_128x128,
                                       Scaling::mx_1x32};
const auto silu = spec::swiglu::Activation::silu;

TEST(FusedQuantiseCuda, NormIsTheNormQuantised) {
  ASSAY_NEEDS_GPU();
  EXPECT_TRUE(rc::check(+[] { fused_norm_is_the_norm_quantised(at::kCUDA, scalings); }));
}

TEST(FusedQuantiseCuda, GateIsTheGateQuantised) {
  ASSAY_NEEDS_GPU();
  EXPECT_TRUE(rc::check(+[] { fused_gate_is_the_gate_quantised(at::kCUDA, scalings); }));
}

TEST(FusedQuantiseCuda, WideMatricesToo) {
  ASSAY_NEEDS_GPU();
  const auto options = at::TensorOptions(at::kCUDA).dtype(at::kBFloat16);
  for (const Scaling scaling : scalings) {
    const Quantisation how{Format::e4m3, scaling}, of_gradient{Format::e5m2, scaling};
    for (const Index D : {2304, 4096, 12288, 20480}) {  // one warp a row, and one block a row
      const at::Tensor x = at::randn({1000, D}, options), gain = at::randn({D}, options.dtype(at::kFloat));
      const auto [y, rstd] = rms_norm::forward(x, gain, 1e-5);
      const auto got = quantise::norm(x, gain, 1e-5, how, Orientation::both);
      EXPECT_TRUE(same(got.y, quantise::quantise(y, how, Orientation::both))) << D;
      EXPECT_TRUE(tests::same_bits(got.rstd, rstd)) << D;
    }
    const at::Tensor gate_up = at::randn({1000, 2 * 14336}, options),
                     upstream = at::randn({1000, 14336}, options);
    const at::Tensor y = swiglu::forward(gate_up, silu),
                     gradient = swiglu::backward(upstream.clone(), gate_up.clone(), silu);
    EXPECT_TRUE(same(quantise::gate(gate_up, silu, how, Orientation::both),
                     quantise::quantise(y, how, Orientation::both)));
    const auto got = quantise::gate_backward(upstream, gate_up, silu, of_gradient, Orientation::both, how);
    EXPECT_TRUE(same(got.gate_up, quantise::quantise(gradient, of_gradient, Orientation::both)));
    EXPECT_TRUE(same(got.gated, quantise::quantise(y, how, Orientation::columns).columns));
  }
}

}  // namespace
}  // namespace assay::impl::cuda_fused_quantise_test
