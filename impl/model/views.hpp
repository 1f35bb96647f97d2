#pragma once
// A block's tensors as the layers use them. The same struct holds weights and gradients: views into a flat
// buffer.
#include <ATen/core/Tensor.h>

#include "spec/model/inventory.hpp"

namespace assay::impl {

/// Tensors of one decoder block. Fused matrices are single views over adjacent parameters
/// (spec/model/inventory.hpp).
struct DecoderViews {
  at::Tensor norm_attention;  ///< [D]
  at::Tensor qkv;             ///< [(H + 2K) E, D]
  at::Tensor q_norm, k_norm;  ///< [E], undefined without qk_norm
  at::Tensor output;          ///< [D, H E]
  at::Tensor norm_mlp;        ///< [D]
  at::Tensor gate_up;         ///< [2F, D]
  at::Tensor down;            ///< [D, F]
};

/// Tensors of any block: 0 fills `embedding`, 1..L fill `decoder`, L+1 fills `norm` and `head`.
struct BlockViews {
  at::Tensor embedding;  ///< [V, D]
  DecoderViews decoder;
  at::Tensor norm;  ///< [D] final norm
  at::Tensor head;  ///< [V, D]; the embedding's view when tied
};

/// Views of block `block` into `flat`, a 1-D tensor of inventory.flat_size elements.
BlockViews views(const at::Tensor& flat, const spec::Inventory& inventory, const spec::ModelSpec& model,
                 std::int64_t block);

/// The same with the gains of norms in `gains`, 1-D at the places of `gain_places` (spec::norm_gains).
BlockViews views(const at::Tensor& flat, const spec::Inventory& inventory, const at::Tensor& gains,
                 const spec::Inventory& gain_places, const spec::ModelSpec& model, std::int64_t block);

/// View of one parameter in `flat`, in its own shape.
at::Tensor view(const at::Tensor& flat, const spec::Parameter& parameter);

}  // namespace assay::impl
