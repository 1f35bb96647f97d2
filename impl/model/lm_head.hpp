#pragma once
// The LM head and the loss together, in chunks of tokens: of the logits, V numbers for every token, only a
// chunk exists at any time. A chunk's gradient is taken while its logits are there, so nothing is computed
// twice.
#include <ATen/core/Tensor.h>

#include "impl/ops/linear.hpp"
#include "impl/ops/normalizer.hpp"
#include "spec/memory/head.hpp"

namespace assay::impl::lm_head {

using spec::memory::chunk_tokens;
using spec::memory::padded_vocabulary;

struct Forward {
  at::Tensor cross_entropy;  ///< fp64 scalar [nat]
  at::Tensor z_loss;         ///< fp64 scalar [nat]
  at::Tensor dx;             ///< [N, D] gradient of cross_entropy + z_loss
};

/// Loss of x W^T against the targets (impl/ops/cross_entropy.hpp says what normalizer and z are), and its
/// gradients: dx is returned, that of the weight is added to dweight or, where `sum` starts, put there. x [N,
/// D], weight [V, D], targets [N], dweight [V, D] in the gradient dtype. Chunks hold at most `limit` logits.
Forward forward_backward(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& targets,
                         const Normalizer& normalizer, double z, at::Tensor dweight,
                         linear::GradientSum sum = linear::GradientSum::continues,
                         std::int64_t limit = spec::memory::most_logits);

}  // namespace assay::impl::lm_head
