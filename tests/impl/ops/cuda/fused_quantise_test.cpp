// labels: gpu parity property
#include <ATen/cuda/CUDAEvent.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdio>

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
  EXPECT_TRUE(rc::check([] { fused_norm_is_the_norm_quantised(at::kCUDA, scalings); }));
}

TEST(FusedQuantiseCuda, GateIsTheGateQuantised) {
  ASSAY_NEEDS_GPU();
  EXPECT_TRUE(rc::check([] { fused_gate_is_the_gate_quantised(at::kCUDA, scalings); }));
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

/// Seconds of one call, the best of several groups.
template <class Call>
double seconds_of(const Call& call) {
  call();
  double best = 1e30;
  for (int group = 0; group < 5; ++group) {
    at::cuda::CUDAEvent begin(cudaEventDefault), end(cudaEventDefault);
    begin.record();
    for (int i = 0; i < 10; ++i) call();
    end.record();
    end.synchronize();
    best = std::min(best, begin.elapsed_time(end) * 1e-3 / 10);
  }
  return best;
}

TEST(FusedQuantiseCuda, PrintsItsTimeBesideTheOpsOwn) {
  ASSAY_NEEDS_GPU();
  const auto options = at::TensorOptions(at::kCUDA).dtype(at::kBFloat16);
  for (const auto& [N, D, F] : {std::tuple<Index, Index, Index>{16384, 4096, 14336}, {49152, 2304, 6144}}) {
    const at::Tensor x = at::randn({N, D}, options), gain = at::ones({D}, options.dtype(at::kFloat));
    const at::Tensor gate_up = at::randn({N, 2 * F}, options), upstream = at::randn({N, F}, options);
    for (const Scaling scaling : scalings) {
      const Quantisation how{Format::e4m3, scaling};
      const auto print = [&, N = N](const char* what, Index width, double fused, double composed) {
        std::printf("[ time     ] %6lld x %5lld  %-14s %-14s %8.1f us, composed %8.1f us\n",
                    static_cast<long long>(N), static_cast<long long>(width), what, to_string(scaling),
                    fused * 1e6, composed * 1e6);
      };
      print("norm", D, seconds_of([&] { quantise::norm(x, gain, 1e-5, how, Orientation::both); }),
            seconds_of([&] { quantise::composed::norm(x, gain, 1e-5, how, Orientation::both); }));
      print("gate", F, seconds_of([&] { quantise::gate(gate_up, silu, how, Orientation::both); }),
            seconds_of([&] { quantise::composed::gate(gate_up, silu, how, Orientation::both); }));
      // The ops' own backward overwrites; its copies of the inputs are not part of it.
      const at::Tensor value = upstream.clone(), gradient = gate_up.clone();
      print("gate backward", F, seconds_of([&] {
              quantise::gate_backward(upstream, gate_up, silu, how, Orientation::both, how);
            }),
            seconds_of([&] {
              swiglu::backward(value, gradient, silu);
              quantise::quantise(gradient, how, Orientation::both);
              quantise::quantise(value, how, Orientation::columns);
            }));
    }
  }
}

}  // namespace
}  // namespace assay::impl::cuda_fused_quantise_test
