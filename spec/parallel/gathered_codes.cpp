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
  for (std::int64_t block = 1; block <= layers && linear.gathers_codes(); ++block) {
    const std::span<const Parameter> parameters = all.parameters_of(block);
    if (linear.of(block, layers) == quantise::Recipe::none ||
        !std::all_of(parameters.begin(), parameters.end(),
                     [](const Parameter& parameter) { return !parameter.matrix() || is_linear(parameter); }))
      continue;
    out.blocks.push_back(block);
    out.linears += std::count_if(parameters.begin(), parameters.end(), begins_linear);
  }
  out.vectors = selection(all, [&](const Parameter& parameter) {
    return !parameter.matrix() && !(gains_apart && parameter.role == Role::norm) && out.of(parameter.block);
  });
  return out;
}

}  // namespace assay::spec
