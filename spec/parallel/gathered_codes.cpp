#include "spec/parallel/gathered_codes.hpp"

#include <algorithm>

namespace assay::spec {

bool GatheredCodes::of(std::int64_t block) const {
  return std::binary_search(blocks.begin(), blocks.end(), block);
}

GatheredCodes gathered_codes(const Inventory& all, const LinearPrecision& linear, bool gains_apart) {
  GatheredCodes out;
  const std::int64_t layers = all.blocks - 2;
  for (std::int64_t block = 1; block <= layers; ++block)
    if (linear.gathered_as_codes(block, layers)) out.blocks.push_back(block);
  out.vectors = selection(all, [&](const Parameter& parameter) {
    return out.of(parameter.block) && !parameter.matrix() && !(gains_apart && parameter.role == Role::norm);
  });
  return out;
}

}  // namespace assay::spec
