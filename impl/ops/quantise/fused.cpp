#include "impl/ops/quantise/fused.hpp"

#include <ATen/ATen.h>

#include "impl/ops/rms_norm/rms_norm.hpp"
#include "impl/ops/swiglu/swiglu.hpp"
#include "impl/ops/tensor_check.hpp"
#include "spec/ops/rms_norm/rms_norm.hpp"
#include "spec/ops/swiglu/swiglu.hpp"

namespace assay::impl::quantise {

namespace {

void check_norm(const at::Tensor& x, const at::Tensor& gain, double eps) {
  TORCH_CHECK(x.dim() == 2, "quantise::norm: x is ", describe(x), "; give a matrix [N, D]");
  spec::rms_norm::check({.N = x.size(0), .D = x.size(1)}, gain.numel(), eps);
  check_contiguous("quantise::norm", {x, gain});
  check_statistic("quantise::norm", x, {gain});
}

void check_gate(const at::Tensor& gate_up, std::int64_t up, std::int64_t rows) {
  spec::swiglu::check({.N = gate_up.size(0), .F = gate_up.size(1) / 2}, {.N = rows, .F = up});
  check_contiguous("quantise::gate", {gate_up});
}

/// `call`'s result on a GPU, if there is one.
template <class Call>
auto on_gpu(const at::Tensor& x, const Call& call) -> decltype(call()) {
  return x.is_cuda() ? call() : std::nullopt;
}

}  // namespace

Normed norm(const at::Tensor& x, const at::Tensor& gain, double eps, const Quantisation& quantisation,
            Orientation orientation) {
  check_norm(x, gain, eps);
  auto fused = on_gpu(x, [&] { return cuda::norm(x, gain, eps, quantisation, orientation); });
  return fused ? *std::move(fused) : composed::norm(x, gain, eps, quantisation, orientation);
}

Twins norm_again(const at::Tensor& x, const at::Tensor& gain, const at::Tensor& rstd,
                 const Quantisation& quantisation, Orientation orientation, const at::Tensor& amax) {
  check_norm(x, gain, 1);
  auto fused = on_gpu(x, [&] { return cuda::norm_again(x, gain, rstd, quantisation, orientation, amax); });
  return fused ? *std::move(fused) : composed::norm_again(x, gain, rstd, quantisation, orientation, amax);
}

Twins gate(const at::Tensor& gate_up, Activation activation, const Quantisation& quantisation,
           Orientation orientation) {
  check_gate(gate_up, gate_up.size(1) - gate_up.size(1) / 2, gate_up.size(0));
  auto fused = on_gpu(gate_up, [&] { return cuda::gate(gate_up, activation, quantisation, orientation); });
  return fused ? *std::move(fused) : composed::gate(gate_up, activation, quantisation, orientation);
}

GateGradient gate_backward(const at::Tensor& d_gated, const at::Tensor& gate_up, Activation activation,
                           const Quantisation& quantisation, Orientation orientation,
                           const std::optional<Quantisation>& gated) {
  check_gate(gate_up, gate_up.size(1) - gate_up.size(1) / 2, gate_up.size(0));
  check_gate(gate_up, d_gated.size(1), d_gated.size(0));
  check_contiguous("quantise::gate_backward", {d_gated});
  TORCH_CHECK(!gated || gated->scaling == quantisation.scaling,
              "quantise::gate_backward: gradients are scaled by ", to_string(quantisation.scaling),
              ", the value by ", to_string(gated->scaling), "; a recipe scales both alike");
  auto fused = on_gpu(gate_up, [&] {
    return cuda::gate_backward(d_gated, gate_up, activation, quantisation, orientation, gated);
  });
  return fused ? *std::move(fused)
               : composed::gate_backward(d_gated, gate_up, activation, quantisation, orientation, gated);
}

namespace composed {

namespace {
at::Tensor amax_for(const at::Tensor& y, const Quantisation& quantisation) {
  return quantisation.scaling == Scaling::tensor ? quantise::amax(y) : at::Tensor();
}
}  // namespace

Normed norm(const at::Tensor& x, const at::Tensor& gain, double eps, const Quantisation& quantisation,
            Orientation orientation) {
  const auto [y, rstd] = rms_norm::forward(x, gain, eps);
  const at::Tensor most = amax_for(y, quantisation);
  return {quantise::quantise(y, quantisation, orientation, most), rstd, most};
}

Twins norm_again(const at::Tensor& x, const at::Tensor& gain, const at::Tensor& rstd,
                 const Quantisation& quantisation, Orientation orientation, const at::Tensor& amax) {
  // The products of rms_norm::forward, in its order.
  const at::Tensor y = (x.to(rstd.scalar_type()) * rstd.unsqueeze(1)).mul_(gain).to(x.scalar_type());
  return quantise::quantise(y, quantisation, orientation, amax);
}

Twins gate(const at::Tensor& gate_up, Activation activation, const Quantisation& quantisation,
           Orientation orientation) {
  return quantise::quantise(swiglu::forward(gate_up, activation), quantisation, orientation);
}

GateGradient gate_backward(const at::Tensor& d_gated, const at::Tensor& gate_up, Activation activation,
                           const Quantisation& quantisation, Orientation orientation,
                           const std::optional<Quantisation>& gated) {
  const at::Tensor value = d_gated.clone();  // becomes forward's
  const at::Tensor gradient =
      swiglu::backward(value, gate_up.clone(), activation, gated ? ForwardValue::again : ForwardValue::kept);
  GateGradient out;
  out.gate_up = quantise::quantise(gradient, quantisation, orientation);
  if (gated) out.gated = quantise::quantise(value, *gated, Orientation::columns).columns;
  return out;
}

}  // namespace composed

}  // namespace assay::impl::quantise
