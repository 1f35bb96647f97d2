// labels: parity property
#include "impl/ops/swiglu/swiglu.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/impl/ops/parity/swiglu_parity.hpp"
#include "tests/support/tensors.hpp"

namespace assay::impl::swiglu_test {
namespace {

using reference::Index;
using tests::exact;
using tests::values;
using enum spec::swiglu::Activation;

RC_GTEST_PROP(SwigluImpl, MatchesReference, ()) { parity::swiglu_matches_reference(at::kCPU); }

RC_GTEST_PROP(SwigluImpl, AgreesWithAutograd, ()) {
  const Index N = *rc::gen::inRange<Index>(1, 8), F = *rc::gen::inRange<Index>(1, 40);
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  const at::Tensor gate = tests::leaf(tests::normal({N, F}, seed, at::kDouble)),
                   up = tests::leaf(tests::normal({N, F}, seed + 1, at::kDouble));
  const at::Tensor dy = tests::normal({N, F}, seed + 2, at::kDouble);
  const auto theirs = tests::autograd(at::silu(gate) * up, dy, {gate, up});
  const at::Tensor ours = swiglu::backward(dy.clone(), parity::gate_up_of(gate.detach(), up.detach()), silu);
  const parity::SwigluBounds bounds{tests::rounding_of(at::kDouble), silu, exact(gate), exact(up), exact(dy)};
  ASSAY_RC_CLOSE(values(ours.narrow(1, 0, F)), values(theirs[0]), bounds.dgate(exact(theirs[0])));
  ASSAY_RC_CLOSE(values(ours.narrow(1, F, F)), values(theirs[1]), bounds.dup(exact(theirs[1])));
}

TEST(SwigluImpl, SameBitsOnAnyNumberOfThreads) {
  const at::Tensor in = tests::normal({500, 130}, 1, at::kFloat),
                   dy = tests::normal({500, 65}, 2, at::kFloat);
  EXPECT_TRUE(tests::repeatable([&] {
    std::vector<at::Tensor> all;
    for (const auto activation : {silu, gelu_tanh}) {
      all.push_back(swiglu::forward(in, activation));
      all.push_back(swiglu::backward(dy.clone(), in.clone(), activation));
    }
    return all;
  }));
}

TEST(SwigluImpl, C1RejectsHalvesOrUpstreamOfAnotherSize) {
  EXPECT_EQ(tests::refusal([] { swiglu::forward(at::ones({2, 5}), silu); }), "swiglu_c1");
  EXPECT_EQ(tests::refusal([] { swiglu::backward(at::ones({2, 2}), at::ones({2, 6}), silu); }), "swiglu_c1");
  EXPECT_EQ(tests::refusal([] { swiglu::backward(at::ones({1, 3}), at::ones({2, 6}), silu); }), "swiglu_c1");
}

TEST(SwigluImpl, C2RejectsEmptyRows) {
  EXPECT_EQ(tests::refusal([] { swiglu::forward(at::ones({2, 0}), silu); }), "swiglu_c2");
}

}  // namespace
}  // namespace assay::impl::swiglu_test
