#pragma once
// Initial value of every parameter element. Equation, source and worked example: spec/ops/init/init.md.
#include <cstdint>
#include <vector>

#include "spec/model/inventory.hpp"
#include "spec/random/philox.hpp"

namespace assay::spec::init {

/// Errors: SpecError init_c1 (axes of the shape do not fit the role, or an extent < 1).
void check_shape(Role role, const std::vector<std::int64_t>& shape);

/// Standard deviation of a parameter's values: 0 for norms (all 1) and biases (all 0), std / sqrt(2 * layers)
/// for attention_output and the down projections, else std. Errors: SpecError init_c2 (std not > 0 and
/// finite), init_c3 (layers < 1).
double initial_std(Role role, double std, std::int64_t layers);

/// Numbers of parameter number `parameter_index` of the inventory. Errors: SpecError init_c4 (not in [0,
/// 2^32)).
random::Stream initial_stream(std::uint64_t seed, std::int64_t parameter_index);

/// Value of element `element` (row-major) of parameter number `parameter_index` of the inventory. The
/// reference and the trainer both take it from here. Errors: as initial_std and initial_stream.
double initial_value(Role role, std::uint64_t seed, std::int64_t parameter_index, std::uint64_t element,
                     double std, std::int64_t layers);

}  // namespace assay::spec::init
