#include "impl/ops/swiglu/swiglu.hpp"

#include <ATen/ATen.h>

#include "impl/metrics/op_times.hpp"
#include "impl/ops/tensor_check.hpp"
#include "spec/ops/swiglu.hpp"

namespace assay::impl::swiglu {

namespace {
void check(const at::Tensor& gate_up, std::int64_t up, const at::Tensor& rows) {
  spec::swiglu::check({.N = gate_up.size(0), .F = gate_up.size(1) / 2}, {.N = rows.size(0), .F = up});
}

at::Tensor to_math(const at::Tensor& x) { return x.scalar_type() == at::kBFloat16 ? x.to(at::kFloat) : x; }
}  // namespace

at::Tensor forward(const at::Tensor& gate_up) {
  const metrics::OpScope timed(spec::time::StepOp::swiglu, spec::time::StepPass::forward);
  check(gate_up, gate_up.size(1) - gate_up.size(1) / 2, gate_up);
  check_contiguous("swiglu", {gate_up});
  return gate_up.is_cpu() ? cpu::forward(gate_up) : cuda::forward(gate_up);
}

at::Tensor backward(at::Tensor dy, at::Tensor gate_up, ForwardValue value) {
  const metrics::OpScope timed(spec::time::StepOp::swiglu, spec::time::StepPass::backward);
  check(gate_up, gate_up.size(1) - gate_up.size(1) / 2, gate_up);
  check(gate_up, dy.size(1), dy);
  check_contiguous("swiglu", {dy, gate_up});
  return gate_up.is_cpu() ? cpu::backward(dy, gate_up, value) : cuda::backward(dy, gate_up, value);
}

namespace aten {
at::Tensor forward(const at::Tensor& gate_up) {
  const auto halves = to_math(gate_up).chunk(2, -1);
  return (halves[0] * halves[0].sigmoid()).mul_(halves[1]).to(gate_up.scalar_type());
}

at::Tensor backward(at::Tensor dy, at::Tensor gate_up, ForwardValue value) {
  const auto halves = to_math(gate_up).chunk(2, -1);
  const at::Tensor gate = halves[0], up = halves[1], upstream = to_math(dy).clone();
  const at::Tensor sigmoid = gate.sigmoid();
  const at::Tensor dgate = upstream * up * sigmoid * (1 + gate * (1 - sigmoid)),
                   dup = upstream * (gate * sigmoid);
  if (value == ForwardValue::again) dy.copy_((gate * sigmoid).mul_(up));
  return gate_up.copy_(at::cat({dgate, dup}, -1));
}
}  // namespace aten

}  // namespace assay::impl::swiglu
