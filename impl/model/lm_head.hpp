#pragma once
// The LM head and the loss together, in chunks of tokens: of the logits, V numbers for every token, only a
// chunk exists at any time. A chunk's gradient is taken while its logits are there, so nothing is computed
// twice.
#include <ATen/core/Tensor.h>

namespace assay::impl::lm_head {

struct Forward {
  at::Tensor cross_entropy;  ///< fp64 scalar [nat]
  at::Tensor z_loss;         ///< fp64 scalar [nat]
  at::Tensor dx;             ///< [N, D] gradient of cross_entropy + z_loss
};

/// Most logits that exist at a time [elements]: 0.5 GiB of bf16.
inline constexpr std::int64_t most_logits = std::int64_t{1} << 28;

/// Tokens of a chunk, for N tokens and a vocabulary of V: chunks of about equal size, in multiples of 128
/// tokens where there are several. N >= 1, V >= 1.
std::int64_t chunk_tokens(std::int64_t N, std::int64_t V, std::int64_t limit = most_logits);

/// Rows that the products of a vocabulary of V see on a GPU: V where rows of logits are whole 16 bytes, as
/// the fast algorithms need them, else the next multiple of 128. The rows added are zero.
std::int64_t padded_vocabulary(std::int64_t V, std::int64_t element_bytes);

/// Loss of x W^T against the targets (impl/ops/cross_entropy.hpp says what normalizer and z are), and its
/// gradients: dx is returned, that of the weight is added to dweight. x [N, D], weight [V, D], targets [N],
/// dweight [V, D] in the gradient dtype. Chunks hold at most `limit` logits.
Forward forward_backward(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& targets,
                         double normalizer, double z, at::Tensor dweight, std::int64_t limit = most_logits);

}  // namespace assay::impl::lm_head
