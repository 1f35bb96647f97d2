#pragma once
// qk_norm with rope behind it against the reference, on any device.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "impl/ops/qk_norm/qk_norm.hpp"
#include "reference/ops/rms_norm.hpp"
#include "reference/ops/rope.hpp"
#include "spec/ops/rope/rope.hpp"
#include "tests/impl/ops/parity/rope_parity.hpp"
#include "tests/support/rms_norm_bounds.hpp"
#include "tests/support/tensors.hpp"

namespace assay::impl::parity {

using reference::Index;
using tests::exact;
using tests::values;

/// Every query and key head, or across heads those of a token, as a row of rms_norm's reference, then turned
/// by rope's; value heads untouched. The bounds allow a rounding between the two, which the CPU stores there
/// and the GPU does not.
inline void qk_norm_matches_reference(at::Device device) {
  constexpr double eps = 1e-6;
  const auto type = tests::draw_dtype(), statistic = tests::math_of(type);
  const Index B = *rc::gen::inRange<Index>(1, 3), T = *rc::gen::inRange<Index>(1, 40),
              E = device.is_cpu() || *rc::gen::arbitrary<bool>()
                      ? 2 * *rc::gen::inRange<Index>(1, 10)
                      : *rc::gen::element<Index>(64, 96, 128, 256, 264);  // no kernel of more than 256
  // On a GPU 27 heads of wide elements do not fit the block of a norm across heads.
  const Index K = *rc::gen::inRange<Index>(1, 4),
              H = K *
                  (device.is_cpu() ? *rc::gen::inRange<Index>(1, 4) : *rc::gen::element<Index>(1, 2, 3, 8));
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  const bool restart = *rc::gen::arbitrary<bool>(), across_heads = *rc::gen::arbitrary<bool>();
  const Index row_entries[] = {across_heads ? H * E : E, across_heads ? K * E : E};
  const at::Tensor qkv = tests::normal({B, T, H + 2 * K, E}, seed, type),
                   dy = tests::normal({B, T, H + 2 * K, E}, seed + 1, type);
  const at::Tensor gains[] = {tests::normal({row_entries[0]}, seed + 2, statistic),
                              tests::normal({row_entries[1]}, seed + 3, statistic)};
  const at::Tensor before[] = {tests::normal({row_entries[0]}, seed + 4, statistic),
                               tests::normal({row_entries[1]}, seed + 5, statistic)};
  const auto frequencies = spec::rope::inverse_frequencies(E, 10000, {});
  reference::Ids positions;
  for (Index n = 0; n < B * T; ++n) positions.push_back(restart ? *rc::gen::inRange<Index>(0, 300) : n % T);
  const auto table = rope::table(frequencies, 300, type, device);
  const at::Tensor given =
      restart ? tests::integers(positions, at::kInt).view({B, T}).to(device) : at::Tensor();

  const auto on = [&](const at::Tensor& tensor) {
    return tensor.to(device, /*non_blocking=*/false, /*copy=*/true);
  };
  for (bool generic : tests::forms(device)) {
    RC_LOG() << (generic ? "aten" : "op") << "\n";
    const auto out = (generic ? qk_norm::aten::forward_rope : qk_norm::forward_rope)(
        on(qkv), on(gains[0]), on(gains[1]), H, K, eps, table, given);
    const at::Tensor dqkv = on(dy), dgains[] = {on(before[0]), on(before[1])};
    (generic ? qk_norm::aten::backward_rope : qk_norm::backward_rope)(
        dqkv, on(qkv), on(gains[0]), on(gains[1]), out.rstd, H, K, dgains[0], dgains[1], table, given);
    RC_ASSERT(out.rstd.size(2) == (across_heads ? 2 : H + K));
    for (int part : {0, 1}) {  // query heads, key heads
      const Index first = part ? H : 0, count = part ? K : H;
      const Index length = row_entries[part], rows = count * E / length,
                  first_row = part ? out.rstd.size(2) - rows : 0;
      const auto heads = [&](const at::Tensor& all) { return exact(all.narrow(2, first, count)); };
      const auto as_rows = [&](const reference::Tensor<double>& x) {
        return x.reshaped({B * T * rows, length});
      };
      const auto rounding = tests::rounding_of(type);
      const auto gain = exact(gains[part]), x = as_rows(heads(qkv));
      const auto normed = reference::rms_norm::forward(x, gain, eps);
      const auto by_head = normed.y.reshaped({B, T, count, E});
      const auto y = reference::rope::forward(by_head, positions, frequencies);
      const auto turned = reference::rope::backward(heads(dy), positions, frequencies);
      auto gradient = reference::rms_norm::backward(as_rows(turned), x, gain, normed.rstd);
      gradient.dgain.flat() += exact(before[part]).flat();
      const tests::RmsNormBounds bounds(
          rounding, x, gain, as_rows(turned), normed.rstd,
          rope_bound(rounding, heads(dy), turned, positions, frequencies).absolute);
      ASSAY_RC_CLOSE(values(heads(out.qkv)), values(y),
                     rope_bound(rounding, by_head, y, positions, frequencies, bounds.y(normed.y).absolute));
      ASSAY_RC_CLOSE(values(exact(out.rstd.narrow(2, first_row, rows)).reshaped({B * T * rows})),
                     values(normed.rstd), bounds.rstd());
      ASSAY_RC_CLOSE(values(as_rows(heads(dqkv))), values(gradient.dx),
                     bounds.dx(gradient.dx, reference::Tensor<double>({B * T * rows, length})));
      ASSAY_RC_CLOSE(values(dgains[part]), values(gradient.dgain), bounds.dgain(exact(before[part])));
    }
    RC_ASSERT(tests::same_bits(out.qkv.narrow(2, H + K, K), qkv.narrow(2, H + K, K)));
    RC_ASSERT(tests::same_bits(dqkv.narrow(2, H + K, K), dy.narrow(2, H + K, K)));
  }
}

/// Both passes, for comparisons of bits.
inline std::vector<at::Tensor> qk_norm_of(const at::Tensor& qkv, const at::Tensor& q_gain,
                                          const at::Tensor& k_gain, Index H, Index K) {
  const Index E = qkv.size(3);
  const auto table = rope::table(spec::rope::inverse_frequencies(E, 10000, {}), qkv.size(1),
                                 qkv.scalar_type(), qkv.device());
  const auto out = qk_norm::forward_rope(qkv, q_gain, k_gain, H, K, 1e-6, table, {});
  const at::Tensor dqkv = out.qkv.clone(), dq = at::zeros_like(q_gain), dk = at::zeros_like(k_gain);
  qk_norm::backward_rope(dqkv, qkv, q_gain, k_gain, out.rstd, H, K, dq, dk, table, {});
  return {out.qkv, out.rstd, dqkv, dq, dk};
}

/// The same bits again, for every dtype, of each head and across heads. E: entries of a head.
inline void qk_norm_is_repeatable(at::Device device, Index E) {
  for (auto type : {at::kDouble, at::kFloat, at::kBFloat16})
    for (const bool across_heads : {false, true}) {
      const Index H = 4, K = 2;
      const at::Tensor qkv = tests::normal({2, 300, H + 2 * K, E}, 1, type).to(device);
      const auto gain = [&](Index heads, std::uint64_t seed) {
        return tests::normal({across_heads ? heads * E : E}, seed, tests::math_of(type)).to(device);
      };
      const at::Tensor q_gain = gain(H, 2), k_gain = gain(K, 3);
      EXPECT_TRUE(tests::repeatable([&] { return qk_norm_of(qkv, q_gain, k_gain, H, K); }))
          << type << (across_heads ? " across heads" : "");
    }
}

}  // namespace assay::impl::parity
