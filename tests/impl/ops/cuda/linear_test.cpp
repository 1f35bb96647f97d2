// labels: gpu parity property
#include "impl/ops/linear/linear.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "impl/ops/gemm/cuda_gemm.hpp"
#include "tests/impl/ops/parity/linear_parity.hpp"
#include "tests/support/gpu.hpp"

namespace assay::impl::cuda_linear_test {
namespace {

TEST(LinearCuda, ForwardMatchesReference) {
  ASSAY_NEEDS_GPU();
  EXPECT_TRUE(rc::check(+[] { parity::linear_forward_matches_reference(at::kCUDA); }));
}

TEST(LinearCuda, BackwardMatchesReference) {
  ASSAY_NEEDS_GPU();
  EXPECT_TRUE(rc::check(+[] { parity::linear_backward_matches_reference(at::kCUDA); }));
}

TEST(LinearCuda, SameBitsTwice) {
  ASSAY_NEEDS_GPU();
  const at::Tensor x = tests::normal({3000, 1024}, 1, at::kBFloat16).to(at::kCUDA),
                   weight = tests::normal({768, 1024}, 2, at::kBFloat16).to(at::kCUDA);
  EXPECT_TRUE(tests::repeatable([&] {
    const at::Tensor y = linear::forward(x, weight);
    at::Tensor dweight = at::zeros({768, 1024}, at::TensorOptions(at::kCUDA).dtype(at::kFloat));
    linear::backward_weight(y, x, dweight);
    return std::vector{y, linear::backward_input(y, weight), dweight};
  }));
}

TEST(LinearCuda, TheLibraryItselfTakesTheTrainersShapes) {
  ASSAY_NEEDS_GPU();
  // bf16 in, fp32 sums added to fp32: the weight gradient that needs no second pass.
  const at::Tensor x = tests::normal({256, 128}, 1, at::kBFloat16).to(at::kCUDA),
                   dy = tests::normal({256, 64}, 2, at::kBFloat16).to(at::kCUDA),
                   dweight = at::ones({64, 128}, at::TensorOptions(at::kCUDA).dtype(at::kFloat));
  EXPECT_TRUE(cuda::multiply({.left = {dy, true}, .right = {x}}, dweight, dweight));
  const at::Tensor exact_dy = dy.to(at::kDouble).t(), exact_x = x.to(at::kDouble);
  const at::Tensor error = (dweight - exact_dy.matmul(exact_x) - 1).abs(),
                   terms =
                       exact_dy.abs().matmul(exact_x.abs()) + 1;  // T2 over 256 products and what was there
  EXPECT_LE((error / terms).max().item<double>(), gamma(257, unit_roundoff(Dtype::f32)));
}

TEST(LinearCuda, TheLibraryItselfAddsTheBias) {
  ASSAY_NEEDS_GPU();
  // Two GEMMs of one shape with biases of their own, then one without: a plan of the library serves many
  // calls, and that with a bias is not that without.
  const at::Tensor x = tests::normal({4096, 2304}, 1, at::kBFloat16).to(at::kCUDA),
                   weight = tests::normal({2304, 2304}, 2, at::kBFloat16).to(at::kCUDA),
                   exact_y = x.to(at::kDouble).matmul(weight.to(at::kDouble).t()),
                   terms = x.to(at::kDouble).abs().matmul(weight.to(at::kDouble).abs().t());
  for (const std::uint64_t seed : {3, 4, 0}) {
    const at::Tensor bias = seed ? tests::normal({2304}, seed, at::kBFloat16).to(at::kCUDA) : at::Tensor();
    at::Tensor y = at::empty({4096, 2304}, x.options());
    EXPECT_TRUE(cuda::multiply({.left = {x}, .right = {weight, true}, .bias = bias}, y, {}));
    const at::Tensor added = seed ? bias.to(at::kDouble) : at::zeros({2304}, exact_y.options()),
                     expected = exact_y + added;
    const double sum = gamma(2305, unit_roundoff(Dtype::f32)), store = unit_roundoff(Dtype::bf16);
    const at::Tensor inner = sum * (terms + added.abs()), allowed = inner + store * (expected.abs() + inner);
    EXPECT_TRUE(((y.to(at::kDouble) - expected).abs() <= allowed).all().item<bool>()) << seed;
  }
}

}  // namespace
}  // namespace assay::impl::cuda_linear_test
