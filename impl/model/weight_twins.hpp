#pragma once
// FP8 twins of the block weights that are kept over a step: both orientations of each matrix, made again
// after every update.
#include <array>
#include <cstdint>
#include <vector>

#include "impl/comm/communicator.hpp"
#include "impl/model/views.hpp"
#include "impl/ops/quantise/quantise.hpp"
#include "spec/ops/linear/linear_precision.hpp"

namespace assay::impl {

/// Largest |x| of all ranks of an expert group, so that one scale is that of all experts' rows or weights,
/// whatever rank has them: fp32 [1]. Undefined on one rank, or where `experts` is null: quantising finds it.
at::Tensor amax_over(Communicator* experts, const at::Tensor& x);

class WeightTwins {
 public:
  /// Of the matrices of a decoder block that are quantised; undefined where a block has none of a name.
  using Block = std::array<quantise::Twins, spec::step::linear_fields<DecoderWeights>().size()>;

  explicit WeightTwins(std::int64_t layers)
      : blocks_(static_cast<std::size_t>(layers)), current_(static_cast<std::size_t>(layers), false) {}

  /// Of decoder block `block`, from 1, which computes in FP8 and whose weights are `weights`: quantised from
  /// their values where they changed since. Their memory stays the same over a run. `experts`: as of
  /// amax_over; collective among them.
  const Block& of(std::int64_t block, const DecoderWeights& weights, const spec::LinearPrecision& linear,
                  Communicator* experts);
  /// The weights are others from here on.
  void weights_changed() { current_.assign(current_.size(), false); }

 private:
  std::vector<Block> blocks_;
  std::vector<bool> current_;
};

}  // namespace assay::impl
