// labels: gpu parity property
#include "impl/ops/swiglu/swiglu.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/impl/ops/parity/swiglu_parity.hpp"
#include "tests/support/gpu.hpp"

namespace assay::impl::cuda_swiglu_test {
namespace {

TEST(SwigluCuda, MatchesReference) {
  ASSAY_NEEDS_GPU();
  EXPECT_TRUE(rc::check(+[] { parity::swiglu_matches_reference(at::kCUDA); }));
}

TEST(SwigluCuda, SameBitsTwice) {
  ASSAY_NEEDS_GPU();
  for (auto type : {at::kFloat, at::kBFloat16}) {
    const at::Tensor in = tests::normal({500, 1040}, 1, type).to(at::kCUDA),
                     dy = tests::normal({500, 520}, 2, type).to(at::kCUDA);
    EXPECT_TRUE(tests::repeatable([&] {
      std::vector<at::Tensor> all;
      for (const auto activation : {swiglu::Activation::silu, swiglu::Activation::gelu_tanh}) {
        all.push_back(swiglu::forward(in, activation));
        all.push_back(swiglu::backward(dy.clone(), in.clone(), activation));
      }
      return all;
    })) << type;
  }
}

}  // namespace
}  // namespace assay::impl::cuda_swiglu_test
