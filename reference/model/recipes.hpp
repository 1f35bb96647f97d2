#pragma once
// Which decoder blocks compute their linears in FP8.
#include <vector>

#include "reference/tensor.hpp"
#include "spec/ops/quantise.hpp"

namespace assay::reference {

/// Of block 0, 1, ...; blocks beyond the list, and all of an empty one, are not quantised.
struct Recipes {
  std::vector<spec::quantise::Recipe> of_block;

  spec::quantise::Recipe at(Index layer) const {
    return layer < static_cast<Index>(of_block.size()) ? of_block[static_cast<std::size_t>(layer)]
                                                       : spec::quantise::Recipe::none;
  }
};

}  // namespace assay::reference
