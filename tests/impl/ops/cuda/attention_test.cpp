// labels: gpu parity property
#include "impl/ops/attention/attention.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <iostream>

#include "impl/metrics/executed_flops.hpp"
#include "impl/ops/attention/attention_cudnn.hpp"
#include "impl/ops/determinism.hpp"
#include "spec/error.hpp"
#include "spec/ops/rope/rope.hpp"
#include "tests/impl/ops/parity/attention_parity.hpp"
#include "tests/support/gpu.hpp"

namespace assay::impl::cuda_attention_test {
namespace {

TEST(AttentionCuda, MatchesReference) {
  ASSAY_NEEDS_GPU();
  EXPECT_TRUE(rc::check(+[] { parity::attention_matches_reference(at::kCUDA); }));
  EXPECT_TRUE(rc::check(+[] { parity::attention_of_a_span_matches_reference(at::kCUDA); }));
}

TEST(AttentionCuda, TheChoiceOfAShapeIsToldOnceWithItsReasons) {
  ASSAY_NEEDS_GPU();
  attention::new_choices();
  const at::Tensor exact = tests::normal({1, 33, 4, 24}, 1, at::kFloat).to(at::kCUDA);
  for (int i = 0; i < 2; ++i) attention::forward(exact, 2, 1, {});
  const auto lines = attention::new_choices();
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find("math; cudnn takes bf16 only; flash takes bf16 only"), std::string::npos)
      << lines[0];
  EXPECT_TRUE(attention::new_choices().empty());
}

/// Of dqkv, relative to its largest entry. Roundings to bf16 on the way to an entry: probability, y, dscore,
/// delta, a head's part, the sum; each at most once for terms whose sizes add up to less than the largest
/// entry times the root of their number, T.
double largest_gradient_bound(int T) {
  return 6 * unit_roundoff(Dtype::bf16) * std::sqrt(static_cast<double>(T));
}

/// The trainer's own shape, grouped and not: which backend takes it is printed, and its result is held to the
/// plain products on the same numbers in fp32, relative to the largest entry.
TEST(AttentionCuda, TheTrainersShapesAreFusedAndMatchPlainProducts) {
  ASSAY_NEEDS_GPU();
  attention::new_choices();
  for (const auto& [heads, kv_heads] : {std::pair{18, 18}, std::pair{16, 4}}) {
    const at::Tensor qkv = tests::normal({1, 512, heads + 2 * kv_heads, 128}, 1, at::kBFloat16).to(at::kCUDA),
                     dy = tests::normal({1, 512, heads, 128}, 2, at::kBFloat16).to(at::kCUDA);
    const auto out = attention::forward(qkv, heads, kv_heads, {});
    const at::Tensor dqkv = attention::backward(dy, qkv, out, heads, kv_heads, {});
    for (const std::string& line : attention::new_choices()) std::cout << line << std::endl;
    EXPECT_NE(out.backend, attention::Backend::math);
    const at::Tensor wide = qkv.to(at::kDouble);
    const auto plain = attention::aten::forward({wide, heads, kv_heads}, {});
    const at::Tensor plain_dqkv =
        attention::aten::backward(dy.to(at::kDouble), {wide, heads, kv_heads}, plain, {}).joined;
    const double bound = largest_gradient_bound(512);
    EXPECT_LE(parity::share_of_largest(out.y, plain.y), 6 * unit_roundoff(Dtype::bf16));
    const double off = parity::share_of_largest(dqkv, plain_dqkv);
    EXPECT_LE(off, bound);
    EXPECT_LE(parity::relative_norm(dqkv, plain_dqkv), parity::gradient_norm_bound);
    const auto table = rope::table(spec::rope::inverse_frequencies(128, 10000, {}), 512, at::kBFloat16,
                                   at::kCUDA),
               wide_table =
                   rope::table(spec::rope::inverse_frequencies(128, 10000, {}), 512, at::kDouble, at::kCUDA);
    const at::Tensor before =
        parity::turned_back(attention::backward(dy, {qkv, heads, kv_heads}, out, {}), table, {});
    rope::rotate(plain_dqkv, heads + kv_heads, wide_table, {}, /*inverse=*/true);
    // Turning a pair mixes its two errors, and rounds once more.
    EXPECT_LE(parity::share_of_largest(before, plain_dqkv),
              std::sqrt(2.0) * (bound + unit_roundoff(Dtype::bf16)));
    EXPECT_LE(parity::relative_norm(before, plain_dqkv),
              parity::gradient_norm_bound + unit_roundoff(Dtype::bf16));
    std::cout << "heads " << heads << "+2x" << kv_heads << ": y off by "
              << parity::share_of_largest(out.y, plain.y) << ", dqkv by " << off << " of the largest entry"
              << std::endl;
  }
}

/// In any order of adding and in a fixed one, of whole tiles and not.
TEST(AttentionCuda, CudnnWritesTheGradientOfTheTrainersShapesIntoOneTensor) {
  ASSAY_NEEDS_GPU();
  for (const auto& [T, heads, kv_heads] :
       {std::tuple{512, 18, 18}, std::tuple{512, 16, 4}, std::tuple{250, 6, 2}})
    for (const bool fixed_order : {false, true}) {
      const at::Tensor qkv = tests::normal({2, T, heads + 2 * kv_heads, 128}, 1, at::kBFloat16).to(at::kCUDA),
                       dy = tests::normal({2, T, heads, 128}, 2, at::kBFloat16).to(at::kCUDA);
      set_deterministic(fixed_order);
      const auto out = attention::forward(qkv, heads, kv_heads, {});
      ASSERT_EQ(out.backend, attention::Backend::cudnn);
      const metrics::FlopCounter counter;
      const at::Tensor dqkv = attention::backward(dy, qkv, out, heads, kv_heads, {});
      set_deterministic(false);
      EXPECT_FALSE(counter.seen().contains("aten::_scaled_dot_product_cudnn_attention_backward"))
          << "it went through ATen";
      const Count product = Count(2 * 2 * heads) * (T * (T + 1) / 2) * 128;
      const auto ran = [&](spec::FlopComponent component, spec::ExecutedPass pass) {
        return counter.measured().at(component, pass);
      };
      EXPECT_EQ(ran(spec::FlopComponent::attention_scores, spec::ExecutedPass::backward), 2 * product);
      EXPECT_EQ(ran(spec::FlopComponent::attention_values, spec::ExecutedPass::backward), 2 * product);
      EXPECT_EQ(ran(spec::FlopComponent::attention_scores, spec::ExecutedPass::recompute), product);
      const at::Tensor wide = qkv.to(at::kDouble);
      const at::Tensor plain =
          attention::aten::backward(dy.to(at::kDouble), {wide, heads, kv_heads},
                                    attention::aten::forward({wide, heads, kv_heads}, {}), {})
              .joined;
      EXPECT_LE(parity::relative_norm(dqkv, plain), parity::gradient_norm_bound) << T << " " << fixed_order;
      EXPECT_LE(parity::share_of_largest(dqkv, plain), largest_gradient_bound(T)) << T << " " << fixed_order;
      for (const auto& plan : attention::cudnn::plans({qkv, heads, kv_heads}, fixed_order))
        std::cout << "heads " << heads << "+2x" << kv_heads << (fixed_order ? ", fixed order: " : ": ")
                  << plan.name << ", " << plan.workspace_bytes << " bytes" << std::endl;
    }
}

/// The shape is new to this process, so that its choice is made here.
TEST(AttentionCuda, ACudnnWhoseBackwardRefusesComputesNoForwardEither) {
  ASSAY_NEEDS_GPU();
  attention::new_choices();
  const attention::cudnn::Refusing on;
  for (const auto& [heads, kv_heads] : {std::pair{6, 6}, std::pair{6, 2}}) {
    const at::Tensor qkv = tests::normal({2, 416, heads + 2 * kv_heads, 64}, 1, at::kBFloat16).to(at::kCUDA),
                     dy = tests::normal({2, 416, heads, 64}, 2, at::kBFloat16).to(at::kCUDA);
    const metrics::FlopCounter counter;
    const auto out = attention::forward(qkv, heads, kv_heads, {});
    EXPECT_EQ(out.backend, attention::Backend::flash);
    const at::Tensor dqkv = attention::backward(dy, qkv, out, heads, kv_heads, {});
    const auto lines = attention::new_choices();
    ASSERT_EQ(lines.size(), 1u);
    EXPECT_NE(lines[0].find("flash; cudnn refused: backward: asked to refuse"), std::string::npos)
        << lines[0];
    // What the choice tried is not counted: two products forward, five backward.
    const Count product = Count(2 * 2 * heads) * (416 * 417 / 2) * 64;
    EXPECT_EQ(counter.measured().total(), 7 * product);
    const at::Tensor wide = qkv.to(at::kDouble);
    const at::Tensor plain =
        attention::aten::backward(dy.to(at::kDouble), {wide, heads, kv_heads},
                                  attention::aten::forward({wide, heads, kv_heads}, {}), {})
            .joined;
    EXPECT_LE(parity::relative_norm(dqkv, plain), parity::gradient_norm_bound);
  }
}

/// Neither ATen's backward nor plain products, which would take T x T in fp32 that nothing has planned.
TEST(AttentionCuda, ARefusalAfterTheChoiceIsAnError) {
  ASSAY_NEEDS_GPU();
  const at::Tensor qkv = tests::normal({2, 384, 10, 64}, 1, at::kBFloat16).to(at::kCUDA),
                   dy = tests::normal({2, 384, 6, 64}, 2, at::kBFloat16).to(at::kCUDA);
  const auto table =
      rope::table(spec::rope::inverse_frequencies(64, 10000, {}), 384, at::kBFloat16, at::kCUDA);
  const auto out = attention::forward(qkv, 6, 2, {});
  ASSERT_EQ(out.backend, attention::Backend::cudnn);
  const attention::cudnn::Refusing on;
  for (const bool through_rope : {false, true}) try {
      if (through_rope)
        parity::turned_back(attention::backward(dy, {qkv, 6, 2}, out, {}), table, {});
      else
        attention::backward(dy, qkv, out, 6, 2, {});
      ADD_FAILURE() << "another backend took over";
    } catch (const UserError& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      for (const char* part : {"compute.attention=cudnn refuses the backward pass", "asked to refuse"})
        EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
}

TEST(AttentionCuda, CudnnIsNotGivenTensorsThatAreNotWhole) {
  ASSAY_NEEDS_GPU();
  const at::Tensor qkv = tests::normal({1, 128, 6, 64}, 1, at::kBFloat16).to(at::kCUDA);
  const auto out = attention::forward(qkv, 4, 1, {});
  const at::Tensor turned = at::empty({1, 4, 128, 64}, qkv.options()).transpose(1, 2);
  EXPECT_THROW(attention::cudnn::backward(turned, {qkv, 4, 1}, out.y, out.lse, false), c10::Error);
  const at::Tensor shifted = at::empty({out.y.numel() + 1}, qkv.options()).narrow(0, 1, out.y.numel());
  EXPECT_THROW(attention::cudnn::backward(shifted.view(out.y.sizes()), {qkv, 4, 1}, out.y, out.lse, false),
               c10::Error);
}

TEST(AttentionCuda, CudnnsBackwardInAFixedOrderGivesTheSameBitsTwice) {
  ASSAY_NEEDS_GPU();
  struct Case {
    std::int64_t heads, kv_heads, E;
  };
  for (const Case& c : {Case{6, 6, 128}, Case{8, 2, 64}}) {
    const at::Tensor qkv = tests::normal({2, 1024, c.heads + 2 * c.kv_heads, c.E}, 1, at::kBFloat16)
                               .to(at::kCUDA),
                     dy = tests::normal({2, 1024, c.heads, c.E}, 2, at::kBFloat16).to(at::kCUDA);
    const auto out = attention::forward(qkv, c.heads, c.kv_heads, {});
    EXPECT_TRUE(tests::repeatable([&] {
      return std::vector{
          attention::cudnn::backward(dy, {qkv, c.heads, c.kv_heads}, out.y, out.lse, true).joined};
    })) << c.heads;
  }
}

TEST(AttentionCuda, WhatCudnnDoesNotWriteIntoOneTensorIsRefusedWithAReason) {
  ASSAY_NEEDS_GPU();
  for (const auto& [type, E] : {std::pair{at::kFloat, 64}, std::pair{at::kBFloat16, 1024}}) {
    const at::Tensor qkv = at::zeros({1, 128, 6, E}, at::TensorOptions(at::kCUDA).dtype(type)),
                     dy = at::zeros({1, 128, 4, E}, qkv.options()),
                     lse = at::zeros({1, 4, 128}, qkv.options().dtype(at::kFloat));
    try {
      attention::cudnn::backward(dy, {qkv, 4, 1}, dy, lse, false);
      ADD_FAILURE() << "taken: " << type << " " << E;
    } catch (const c10::Error& error) {
      const std::string reason = error.what_without_backtrace();
      std::cout << "heads of " << E << " entries in " << type << ": " << reason << std::endl;
      EXPECT_FALSE(reason.empty());
    }
  }
}

TEST(AttentionCuda, ANamedBackendComputesOrSaysWhyItDoesNot) {
  ASSAY_NEEDS_GPU();
  const at::Tensor qkv = tests::normal({1, 256, 6, 64}, 1, at::kBFloat16).to(at::kCUDA),
                   dy = tests::normal({1, 256, 4, 64}, 2, at::kBFloat16).to(at::kCUDA);
  using attention::Backend;
  for (const Backend backend : {Backend::cudnn, Backend::flash, Backend::math}) {
    const auto out = attention::forward(qkv, 4, 1, {}, {.backend = backend});
    EXPECT_EQ(out.backend, backend);
    EXPECT_EQ(attention::backward(dy, qkv, out, 4, 1, {}).sizes(), qkv.sizes());
  }
  try {
    attention::forward(qkv.to(at::kFloat), 4, 1, {}, {.backend = Backend::cudnn});
    ADD_FAILURE() << "cudnn took fp32";
  } catch (const UserError& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_NE(std::string(error.what()).find("compute.attention=cudnn cannot compute"), std::string::npos);
  }
}

TEST(AttentionCuda, ForwardGivesTheSameBitsTwice) {
  ASSAY_NEEDS_GPU();
  for (auto type : {at::kDouble, at::kFloat, at::kBFloat16}) {
    const at::Tensor qkv = tests::normal({2, 256, 12, 64}, 1, type).to(at::kCUDA);
    EXPECT_TRUE(tests::repeatable([&] {
      const auto out = attention::forward(qkv, 8, 2, {});
      return std::vector{out.y, out.lse};
    })) << type;
  }
}

TEST(AttentionCuda, BackwardOfPlainProductsGivesTheSameBitsTwice) {
  ASSAY_NEEDS_GPU();
  for (auto type : {at::kDouble, at::kFloat}) {
    const at::Tensor qkv = tests::normal({2, 256, 12, 64}, 1, type).to(at::kCUDA),
                     dy = tests::normal({2, 256, 8, 64}, 2, type).to(at::kCUDA);
    const auto out = attention::forward(qkv, 8, 2, {});
    EXPECT_TRUE(tests::repeatable([&] { return std::vector{attention::backward(dy, qkv, out, 8, 2, {})}; }))
        << type;
  }
}

}  // namespace
}  // namespace assay::impl::cuda_attention_test
