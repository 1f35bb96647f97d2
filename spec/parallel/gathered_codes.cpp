#include "spec/parallel/gathered_codes.hpp"

#include <algorithm>

#include "spec/model/block_matrices.hpp"

namespace assay::spec {

namespace {
/// The router and experts are gathered in the compute type.
bool is_linear(const Parameter& parameter) {
  const MatrixRows* rows = matrix_rows::of(parameter.role);
  return rows && rows->fp8 == InFp8::linears;
}
bool begins_linear(const Parameter& parameter) {
  return is_linear(parameter) && matrix_rows::of(parameter.role)->begins;
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
