#pragma once
// One pre-norm decoder block: x + attention(norm(x)), then + mlp(norm(.)). Llama and Qwen3 differ by qk_norm
// only.
#include "impl/model/activations.hpp"
#include "impl/model/token_batch.hpp"
#include "impl/model/views.hpp"
#include "impl/ops/rope.hpp"
#include "spec/memory/recompute.hpp"

namespace assay::impl::decoder_block {

/// x [N, D] -> [N, D]. Fills `saved` with what `recompute` keeps for backward.
at::Tensor forward(const at::Tensor& x, const DecoderViews& weights, const spec::ModelSpec& model,
                   const rope::Table& rope_table, const TokenBatch& batch, spec::Recompute recompute,
                   BlockActivations& saved);

/// Turns dx, the gradient of the block's output, into the gradient of its input, in place, and adds the
/// gradients of the weights to `gradients`; matrices' are put there where products start their sums. What is
/// undefined in `saved` is computed again. Consumes `saved`: its tensors are overwritten and freed.
void backward(at::Tensor dx, const DecoderViews& weights, const DecoderGradients& gradients,
              const spec::ModelSpec& model, const rope::Table& rope_table, const TokenBatch& batch,
              BlockActivations saved);

}  // namespace assay::impl::decoder_block
