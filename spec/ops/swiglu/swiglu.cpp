#include "spec/ops/swiglu/swiglu.hpp"

#include <string>

#include "spec/error.hpp"

namespace assay::spec::swiglu {

namespace {
std::string text(const Shape& shape) {
  return "[N=" + std::to_string(shape.N) + ", F=" + std::to_string(shape.F) + "]";
}
}  // namespace

void check(const Shape& gate, const Shape& other) {
  // swiglu_c2
  require(gate.F >= 1 && gate.N >= 0, "swiglu_c2", [&] { return "gate is " + text(gate); });
  // swiglu_c1
  require(other == gate, "swiglu_c1",
          [&] { return "gate is " + text(gate) + ", the other is " + text(other); });
}

// exp, 1 +, reciprocal, gate * sigma, * up. gelu_tanh: z 5.
Flops forward_flops(const Shape& s, Activation activation) {
  return {0, (activation == Activation::silu ? 5 : 10) * Count(s.N) * s.F};
}

// sigma 3; dup 2; dgate: dy * up * sigma 2, 1 - sigma, * gate, 1 +, the product 4. gelu_tanh: z 5, z' 4
// and its product.
Flops backward_flops(const Shape& s, Activation activation) {
  return {0, (activation == Activation::silu ? 11 : 21) * Count(s.N) * s.F};
}

Count forward_bytes(const Shape& s, std::int64_t element) { return 3 * Count(s.N) * s.F * element; }

Count backward_bytes(const Shape& s, std::int64_t element) { return 5 * Count(s.N) * s.F * element; }

Flops weighted_forward_flops(const Shape& s, Activation activation) {
  return forward_flops(s, activation) + Flops{0, Count(s.N) * s.F};
}

// The upstream times the weight; the product of upstream and value, and its sum; the value times the weight.
Flops weighted_backward_flops(const Shape& s, Activation activation, WeightedValue value) {
  return backward_flops(s, activation) +
         Flops{0, (value == WeightedValue::written ? 4 : 3) * Count(s.N) * s.F};
}

Count weighted_forward_bytes(const Shape& s, std::int64_t element, std::int64_t statistic, std::int64_t id) {
  return forward_bytes(s, element) + Count(s.N) * (statistic + id);
}

Count weighted_backward_bytes(const Shape& s, WeightedValue value, std::int64_t element,
                              std::int64_t statistic, std::int64_t id) {
  const Count written = value == WeightedValue::written ? Count(s.N) * s.F * element : Count(0);
  return backward_bytes(s, element) + written + Count(s.N) * (2 * statistic + id);
}

}  // namespace assay::spec::swiglu
