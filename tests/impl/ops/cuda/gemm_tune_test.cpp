// labels: gpu unit
#include "impl/ops/gemm/cuda_gemm.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "impl/ops/linear/linear.hpp"
#include "spec/tolerance.hpp"
#include "tests/support/gpu.hpp"
#include "tests/support/scratch.hpp"
#include "tests/support/tensors.hpp"

namespace assay::impl::gemm_tune_test {
namespace {

TEST(GemmTuneCuda, KeepsAnAlgorithmWhoseResultIsRight) {
  ASSAY_NEEDS_GPU();
  const tests::Scratch cache;
  setenv("XDG_CACHE_HOME", cache.path().c_str(), 1);  // read when the first GEMM asks for its choice
  const at::Tensor x = tests::normal({4096, 2048}, 1, at::kBFloat16).to(at::kCUDA),
                   weight = tests::normal({2048, 2048}, 2, at::kBFloat16).to(at::kCUDA);
  const std::string line =
      cuda::tune({.left = {x}, .right = {weight, true}}, at::empty_like(x), {}, /*seconds=*/0.01);
  EXPECT_EQ(line.find("bf16-bf16-tn-m2048-n4096-k2048"), 0u) << line;
  EXPECT_FALSE(std::filesystem::is_empty(cache.path() / "assay" / "gemm"));
  // 2,048 exact products summed in fp32, then stored in bf16.
  const at::Tensor wide = x.to(at::kDouble), wide_weight = weight.to(at::kDouble).t();
  const at::Tensor exact = wide.matmul(wide_weight),
                   bound = wide.abs().matmul(wide_weight.abs()) * gamma(2048, unit_roundoff(Dtype::f32));
  const at::Tensor error = (linear::forward(x, weight).to(at::kDouble) - exact).abs();
  EXPECT_TRUE((error <= bound + (exact.abs() + bound) * unit_roundoff(Dtype::bf16)).all().item<bool>());
}

}  // namespace
}  // namespace assay::impl::gemm_tune_test
