#pragma once
// FP8 twins of the block weights that are kept over a step: both orientations of each matrix, made again
// after every update.
#include <array>
#include <cstdint>
#include <vector>

#include "impl/model/views.hpp"
#include "impl/ops/quantise/quantise.hpp"

namespace assay::impl {

class WeightTwins {
 public:
  /// Of the matrices of a decoder block that are quantised; undefined where a block has none of a name.
  using Block = std::array<quantise::Twins, spec::step::linear_fields<DecoderWeights>().size()>;

  explicit WeightTwins(std::int64_t layers)
      : blocks_(static_cast<std::size_t>(layers)), current_(static_cast<std::size_t>(layers), false) {}

  /// Of decoder block `block`, from 1, whose weights are `weights`: quantised from their values where they
  /// changed since. Their memory stays the same over a run.
  /// `experts`: whether those are quantised.
  const Block& of(std::int64_t block, const DecoderWeights& weights, spec::quantise::Recipe recipe,
                  bool experts);
  /// The weights are others from here on.
  void weights_changed() { current_.assign(current_.size(), false); }

 private:
  std::vector<Block> blocks_;
  std::vector<bool> current_;
};

}  // namespace assay::impl
