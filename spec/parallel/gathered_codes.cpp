#include "spec/parallel/gathered_codes.hpp"

#include <algorithm>

namespace assay::spec {

namespace {
/// The router and experts are gathered in the compute type.
bool is_linear(const Parameter& parameter) {
  switch (parameter.role) {
    case Role::query:
    case Role::key:
    case Role::value:
    case Role::query_down:
    case Role::query_up:
    case Role::key_value_down:
    case Role::key_value_up:
    case Role::attention_output:
    case Role::gate:
    case Role::up:
    case Role::down:
      return true;
    default:
      return false;
  }
}
/// Keys and values are rows of the queries' linear, up those of gate's.
bool begins_linear(const Parameter& parameter) {
  return is_linear(parameter) && parameter.role != Role::key && parameter.role != Role::value &&
         parameter.role != Role::up;
}
}  // namespace

bool GatheredCodes::of(std::int64_t block) const {
  return std::binary_search(blocks.begin(), blocks.end(), block);
}

GatheredCodes gathered_codes(const Inventory& all, const LinearPrecision& linear, bool gains_apart) {
  GatheredCodes out;
  const std::int64_t layers = all.blocks - 2;
  for (std::int64_t block = 1; block <= layers; ++block)
    if (linear.of(block, layers) != quantise::Recipe::none && linear.gathers_codes() &&
        std::all_of(all.parameters.begin(), all.parameters.end(), [&](const Parameter& parameter) {
          return parameter.block != block || !parameter.matrix() || is_linear(parameter);
        }))
      out.blocks.push_back(block);
  out.linears = std::count_if(all.parameters.begin(), all.parameters.end(), [&](const Parameter& parameter) {
    return out.of(parameter.block) && begins_linear(parameter);
  });
  out.vectors = selection(all, [&](const Parameter& parameter) {
    return out.of(parameter.block) && !parameter.matrix() && !(gains_apart && parameter.role == Role::norm);
  });
  return out;
}

}  // namespace assay::spec
