#pragma once
#include <ATen/core/Tensor.h>

#include "spec/model/inventory.hpp"

namespace assay::impl::init {

/// Entries of a parameter, row after row: row r begins at entry first + r * apart and has `row` of them. All
/// of it where `row` is 0.
struct Slice {
  std::int64_t first = 0, row = 0, apart = 0;
  std::int64_t entry(std::int64_t i) const { return row == 0 ? i : first + i / row * apart + i % row; }
};

/// Writes the initial values of parameter number `index` of the inventory into `values` (flat, of
/// parameter.size), or of the entries of `slice`. A pure function of (seed, index, element): the same bits on
/// every layout and number of ranks. Values are computed in double and rounded once to the dtype of `values`.
/// [spec/ops/init/init.md] Errors: SpecError init_c1 .. init_c5
void fill(at::Tensor values, const spec::Parameter& parameter, std::int64_t index,
          const spec::ModelSpec& model, std::uint64_t seed, const Slice& slice = {});

}  // namespace assay::impl::init
