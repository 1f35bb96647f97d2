#pragma once
// Which decoder blocks compute their linears in FP8.
#include <vector>

#include "reference/ops/linear.hpp"
#include "spec/ops/linear/linear_precision.hpp"

namespace assay::reference {

/// Of block 0, 1, ...; blocks beyond the list, and all of an empty one, are not quantised.
struct Recipes {
  std::vector<spec::quantise::Recipe> of_block;
  bool experts = false;  ///< routed experts as well, but for their weights' gradients
  /// Equal parts of a batch, in order, whose linears are computed apart, as by ranks that hold experts
  /// between them; routed experts see the rows of all of them at once.
  Index parts = 1;

  spec::quantise::Recipe at(Index layer) const {
    return layer < static_cast<Index>(of_block.size()) ? of_block[static_cast<std::size_t>(layer)]
                                                       : spec::quantise::Recipe::none;
  }
  linear::Precision linears(Index layer) const { return {at(layer), parts}; }
  spec::quantise::Recipe of_experts(Index layer) const {
    return experts ? at(layer) : spec::quantise::Recipe::none;
  }
};

inline Recipes recipes_of(const spec::LinearPrecision& linear, std::int64_t layers) {
  Recipes recipes{.of_block = {}, .experts = linear.experts};
  for (std::int64_t block = 1; block <= layers; ++block) recipes.of_block.push_back(linear.of(block, layers));
  return recipes;
}

}  // namespace assay::reference
