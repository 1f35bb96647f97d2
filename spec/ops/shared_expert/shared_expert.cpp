#include "spec/ops/shared_expert/shared_expert.hpp"

#include <string>

#include "spec/error.hpp"
#include "spec/ops/linear/linear.hpp"
#include "spec/ops/swiglu/swiglu.hpp"

namespace assay::spec::shared_expert {

void check(const Shape& s, std::array<std::int64_t, 2> gate_up, std::int64_t down_rows,
           std::int64_t routed_entries) {
  const bool sound = s.N >= 0 && s.D >= 1 && s.S >= 1 && gate_up[0] == 2 * s.S && gate_up[1] == s.D;
  // shared_expert_c1
  require(sound && down_rows == s.D, "shared_expert_c1", [&] {
    return "gate_up is [" + std::to_string(gate_up[0]) + ", " + std::to_string(gate_up[1]) + "], down [" +
           std::to_string(down_rows) + ", S], with N=" + std::to_string(s.N) + ", D=" + std::to_string(s.D) +
           ", S=" + std::to_string(s.S);
  });
  // shared_expert_c2
  require(routed_entries == s.N * s.D, "shared_expert_c2", [&] {
    return "the sum of routed experts has " + std::to_string(routed_entries) +
           " entries, not N D=" + std::to_string(s.N * s.D);
  });
}

Flops forward_flops(const Shape& s, Activation activation) {
  Flops flops = swiglu::forward_flops({.N = s.N, .F = s.S}, activation);
  flops.matmul += linear::forward_flops({.N = s.N, .in = s.D, .out = 2 * s.S}).matmul +
                  linear::forward_flops({.N = s.N, .in = s.S, .out = s.D}).matmul;
  flops.vector += Count(s.N) * s.D;
  return flops;
}

Flops backward_flops(const Shape& s, Activation activation) {
  Flops flops = swiglu::backward_flops({.N = s.N, .F = s.S}, activation);
  flops.matmul += linear::backward_flops({.N = s.N, .in = s.D, .out = 2 * s.S}).matmul +
                  linear::backward_flops({.N = s.N, .in = s.S, .out = s.D}).matmul;
  return flops;
}

}  // namespace assay::spec::shared_expert
