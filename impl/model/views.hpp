#pragma once
// A block's parameters, or their gradients, as views into a flat buffer.
#include <ATen/core/Tensor.h>

#include <utility>
#include <vector>

#include "impl/ops/linear/linear.hpp"
#include "impl/ops/quantise/quantise.hpp"
#include "spec/step/parameters.hpp"

namespace assay::impl {

using BlockViews = spec::step::BlockParameters<at::Tensor, at::Tensor>;
using DecoderViews = spec::step::DecoderParameters<at::Tensor, at::Tensor>;

/// A matrix of weights as a layout holds it: its values, or its FP8 codes alone.
class WeightMatrix {
 public:
  WeightMatrix() = default;
  WeightMatrix(at::Tensor values) : values_(std::move(values)) {}
  WeightMatrix(quantise::Quantised codes) : codes_(std::move(codes)) {}

  bool defined() const { return values_.defined() || codes_.defined(); }
  /// In the compute type. Errors: std::logic_error where codes alone were gathered.
  const at::Tensor& values() const;
  /// Undefined where the values are there.
  const quantise::Quantised& codes() const { return codes_; }

 private:
  at::Tensor values_;
  quantise::Quantised codes_;
};
using BlockWeights = spec::step::BlockParameters<WeightMatrix, at::Tensor>;
using DecoderWeights = spec::step::DecoderParameters<WeightMatrix, at::Tensor>;

/// Where backward leaves a block's gradients: those of gains, biases and the embedding are added to what is
/// there, those that are GEMMs as `sum` says.
struct BlockGradients {
  const BlockViews& views;
  linear::GradientSum sum = linear::GradientSum::continues;
  linear::GradientSum experts = sum;  ///< of the routed experts, which may be laid out in another way
};

/// Views of block `block` into `flat`, a 1-D tensor of inventory.flat_size elements.
BlockViews views(const at::Tensor& flat, const spec::Inventory& inventory, const spec::ModelSpec& model,
                 std::int64_t block);

/// Its weights, with the gains of norms in `gains`, 1-D at the offsets of `gain_offsets` (spec::norm_gains).
BlockWeights views(const at::Tensor& flat, const spec::Inventory& inventory, const at::Tensor& gains,
                   const spec::Inventory& gain_offsets, const spec::ModelSpec& model, std::int64_t block);

/// What of a block's gradient in `flat`, elements [begin, end), no GEMM writes: gains, biases, the embedding
/// unless the head is the same matrix, and the gaps between parameters. Adjacent parts are one view.
std::vector<at::Tensor> beside_gemms(const at::Tensor& flat, std::int64_t begin, std::int64_t end,
                                     const spec::Inventory& offsets, std::int64_t block, bool tied);

/// View of one parameter in `flat`, in its own shape.
at::Tensor view(const at::Tensor& flat, const spec::Parameter& parameter);

}  // namespace assay::impl
