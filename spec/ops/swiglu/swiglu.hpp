#pragma once
// Shape rules, FLOPs and bytes of swiglu. Equation, source and worked example: spec/ops/swiglu/swiglu.md.
#include <cstdint>

#include "spec/count.hpp"
#include "spec/model/model_spec.hpp"
#include "spec/ops/swiglu/gate_activation.hpp"

namespace assay::spec::swiglu {

/// The activation of a gated MLP.
constexpr Activation activation_of(Mlp mlp) {
  return mlp == Mlp::geglu ? Activation::gelu_tanh : Activation::silu;
}

struct Shape {
  std::int64_t N = 0;  ///< rows (B*T)
  std::int64_t F = 0;  ///< entries of a row
  bool operator==(const Shape&) const = default;
};

/// `other` is the shape of up, or of the upstream.
/// Errors: SpecError swiglu_c1 (other != gate), swiglu_c2 (F < 1 or N < 0).
void check(const Shape& gate, const Shape& other);

Flops forward_flops(const Shape& shape, Activation activation);   ///< vector: 5*N*F, gelu_tanh 10*N*F
Flops backward_flops(const Shape& shape, Activation activation);  ///< vector: 11*N*F, gelu_tanh 21*N*F

/// Compulsory traffic: every input read once, every output written once. `element` = bytes of an entry. Unit:
/// [B].
Count forward_bytes(const Shape& shape, std::int64_t element);
Count backward_bytes(const Shape& shape, std::int64_t element);

/// What backward of weighted rows leaves beside the gradients: nothing, or the weighted value for the
/// weight's gradient of the down projection.
enum class WeightedValue { kept, written };

/// The same of rows with a weight each. vector: N*F more in forward; 3*N*F, or 4*N*F where the value is
/// written, in backward.
Flops weighted_forward_flops(const Shape& shape, Activation activation);
Flops weighted_backward_flops(const Shape& shape, Activation activation, WeightedValue value);
/// `statistic` = bytes of a weight, `id` = bytes of a slot. Unit: [B].
Count weighted_forward_bytes(const Shape& shape, std::int64_t element, std::int64_t statistic,
                             std::int64_t id);
Count weighted_backward_bytes(const Shape& shape, WeightedValue value, std::int64_t element,
                              std::int64_t statistic, std::int64_t id);

}  // namespace assay::spec::swiglu
