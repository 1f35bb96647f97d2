#pragma once
// A block's tensors as the layers use them. The same struct holds weights and gradients: views into a flat
// buffer.
#include <ATen/core/Tensor.h>

#include <vector>

#include "impl/ops/linear.hpp"
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

/// Where backward leaves gradients: those of gains and of the embedding are added to what is there, those
/// that are products as `products` says.
struct DecoderGradients {
  const DecoderViews& views;
  linear::GradientSum products = linear::GradientSum::continues;
};
struct BlockGradients {
  const BlockViews& views;
  linear::GradientSum products = linear::GradientSum::continues;
  DecoderGradients decoder() const { return {views.decoder, products}; }
};

/// Views of block `block` into `flat`, a 1-D tensor of inventory.flat_size elements.
BlockViews views(const at::Tensor& flat, const spec::Inventory& inventory, const spec::ModelSpec& model,
                 std::int64_t block);

/// The same with the gains of norms in `gains`, 1-D at the places of `gain_places` (spec::norm_gains).
BlockViews views(const at::Tensor& flat, const spec::Inventory& inventory, const at::Tensor& gains,
                 const spec::Inventory& gain_places, const spec::ModelSpec& model, std::int64_t block);

/// What of a block's gradient in `flat`, elements [begin, end), no product writes: gains, the embedding
/// unless the head is the same matrix, and the gaps between parameters. Adjacent parts are one view.
std::vector<at::Tensor> beside_products(const at::Tensor& flat, std::int64_t begin, std::int64_t end,
                                        const spec::Inventory& places, std::int64_t block, bool tied);

/// View of one parameter in `flat`, in its own shape.
at::Tensor view(const at::Tensor& flat, const spec::Parameter& parameter);

}  // namespace assay::impl
