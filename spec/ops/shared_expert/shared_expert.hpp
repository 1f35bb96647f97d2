#pragma once
// Shape rules and FLOPs of shared_expert. Equation, source and worked example:
// spec/ops/shared_expert/shared_expert.md.
#include <array>
#include <cstdint>

#include "spec/count.hpp"
#include "spec/ops/swiglu/gate_activation.hpp"

namespace assay::spec::shared_expert {

struct Shape {
  std::int64_t N = 0;  ///< rows (B*T)
  std::int64_t D = 0;  ///< entries of a row
  std::int64_t S = 0;  ///< inner width
};

/// Errors: SpecError shared_expert_c1 (N < 0, D or S < 1, gate_up not [2S, D], down not [D, S]),
/// shared_expert_c2 (routed, or the upstream, does not have N D entries).
void check(const Shape& shape, std::array<std::int64_t, 2> gate_up, std::int64_t down_rows,
           std::int64_t routed_entries);

using swiglu::Activation;
Flops forward_flops(const Shape& shape, Activation activation);   ///< matmul: 6 N D S, vector: swiglu's + N D
Flops backward_flops(const Shape& shape, Activation activation);  ///< matmul: 12 N D S, vector: swiglu's

}  // namespace assay::spec::shared_expert
