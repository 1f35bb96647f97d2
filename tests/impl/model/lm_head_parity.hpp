#pragma once
// The chunked LM head and loss against the reference's linear and cross_entropy, on any device, in fp64.
#include <rapidcheck.h>

#include <limits>
#include <utility>

#include "impl/model/tensor_ops.hpp"
#include "reference/ops/cross_entropy.hpp"
#include "reference/ops/linear.hpp"
#include "tests/support/tensors.hpp"

namespace assay::impl::parity {

/// Chunks of any size add up to the whole: loss, gradient of the input and of the weight, to 1e-12 of the
/// largest entry (fp64 has 1e-16, sums here have fewer than 1,000 terms of about that size).
inline void lm_head_matches_reference(at::Device device) {
  using reference::Index;
  using tests::exact;
  using tests::values;
  const Index N = *rc::gen::inRange<Index>(1, 30), D = *rc::gen::inRange<Index>(1, 20),
              V = *rc::gen::inRange<Index>(2, 50), limit = *rc::gen::inRange<Index>(1, N * V + 1);
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  const double normalizer = 29, z = *rc::gen::element(0.0, 1e-2);
  const at::Tensor x = tests::normal({N, D}, seed, at::kDouble),
                   weight = tests::normal({V, D}, seed + 1, at::kDouble),
                   before = tests::normal({V, D}, seed + 2, at::kDouble);
  reference::Ids targets;
  for (Index n = 0; n < N; ++n)
    targets.push_back(*rc::gen::inRange<Index>(0, 4) ? *rc::gen::inRange<Index>(0, V) : -100);

  const auto logits = reference::linear::forward(exact(x), exact(weight));
  const auto loss = reference::cross_entropy::forward(logits, targets, normalizer, z);
  const auto d_logits = reference::cross_entropy::backward(1.0, logits, targets, loss.lse, normalizer, z);
  auto gradient = reference::linear::backward(d_logits, exact(x), exact(weight));
  const auto sum = *rc::gen::element(linear::GradientSum::continues, linear::GradientSum::starts);
  if (sum == linear::GradientSum::continues) gradient.dweight.flat() += exact(before).flat();

  const at::Tensor dweight = before.to(device, /*non_blocking=*/false, /*copy=*/true);
  if (sum == linear::GradientSum::starts) dweight.fill_(std::numeric_limits<double>::quiet_NaN());
  spec::ModelSpec model;
  model.vocab = V, model.width = D;
  const TokenBatch batch{.B = 1,
                         .T = N,
                         .inputs = {},
                         .targets = tests::integers(targets).to(device),
                         .positions = {},
                         .documents = {}};
  const rope::Table unread;
  TensorOps ops({.model = model, .rope_table = unread, .batch = batch, .chunk_logits = limit}, normalizer, z);
  const at::Tensor dx =
      spec::step::head_forward_backward(ops, {x.to(device)}, {weight.to(device)}, {dweight, sum});
  const auto near = tests::Allowed::relative(1e-12);
  RC_ASSERT(std::abs(ops.loss().cross_entropy.item<double>() - loss.cross_entropy) <=
            1e-12 * (1 + loss.cross_entropy));
  RC_ASSERT(std::abs(ops.loss().z_loss.item<double>() - loss.z_loss) <= 1e-12 * (1 + loss.z_loss));
  // Where no target is valid, gradients are zero.
  for (const auto& [ours, theirs] : {std::pair{dweight, gradient.dweight}, {dx, gradient.dx}}) {
    const auto result = tests::close(values(ours), values(theirs), near, /*zeros_expected=*/true);
    if (!result) RC_FAIL(std::string(result.message()));
  }
}

}  // namespace assay::impl::parity
