#pragma once
// What every paper op checks of its operands.
#include <string>
#include <vector>

#include "spec/error.hpp"
#include "spec/step/paper/paper_ops.hpp"

namespace assay::spec::paper {

inline constexpr std::int64_t f32_bytes = 4, f64_bytes = 8, id_bytes = 8, index_bytes = 4;

inline std::int64_t entries_of(const std::vector<std::int64_t>& shape) {
  std::int64_t entries = 1;
  for (const std::int64_t extent : shape) entries *= extent;
  return entries;
}

/// Reads a version that is still there, or a twin that was made. Errors: SpecError step_c1, step_c4.
inline void read(const Operand& operand, ReadBy reader) {
  if (!operand.tensor.defined()) {
    // step_c4
    require((reader == ReadBy::forward ? operand.by_rows : operand.by_columns).defined(), "step_c4",
            [] { return std::string("a GEMM reads an orientation that was not quantised"); });
    return;
  }
  // step_c1
  require(operand.defined() && operand.version == operand.tensor.storage->version, "step_c1",
          [] { return std::string("a GEMM reads what an op has written over"); });
}

inline void write(const Tensor& tensor) { ++tensor.storage->version; }

/// Both operands of a GEMM are in FP8, or none. Errors: SpecError step_c5.
inline void match(const Site& site, bool quantised, quantise::Recipe recipe) {
  // step_c5
  require(quantised == (recipe != quantise::Recipe::none), "step_c5",
          [&] { return std::string(to_string(site.op)) + ": one operand is in FP8, the other is not"; });
}

/// Inner extents of a GEMM must agree. Errors: SpecError step_c2.
inline void match(const Site& site, std::int64_t ours, std::int64_t theirs) {
  // step_c2
  require(ours == theirs, "step_c2", [&] {
    return std::string(to_string(site.op)) + ": inner extents " + std::to_string(ours) + " and " +
           std::to_string(theirs);
  });
}

}  // namespace assay::spec::paper
