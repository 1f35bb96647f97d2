#include <ATen/ATen.h>

#include "impl/ops/cuda_tensor.hpp"
#include "impl/ops/quantise/fused.hpp"
#include "impl/ops/quantise/quantise_target.hpp"
#include "impl/ops/rms_norm/rms_norm_launch.hpp"

namespace assay::impl::quantise::cuda {

using impl::cuda::stream;

namespace {

/// An amax to be raised; undefined where the scaling reads none.
at::Tensor zero_for(Scaling scaling, const at::Tensor& x) {
  return scaling == Scaling::tensor ? at::zeros({1}, x.options().dtype(at::kFloat)) : at::Tensor();
}

NormSource source_of(const at::Tensor& x, const at::Tensor& rstd, const at::Tensor& gain) {
  return {x.const_data_ptr(), rstd.const_data_ptr(), gain.const_data_ptr()};
}

bool taken(const NormSource& source, const at::Tensor& x, const Quantisation& quantisation) {
  return x.scalar_type() == at::kBFloat16 && fits(source, quantisation.scaling, x.size(1));
}

Twins written(const NormSource& source, const at::Tensor& x, const Quantisation& quantisation,
              Orientation orientation, const at::Tensor& amax) {
  const std::int64_t N = x.size(0), D = x.size(1);
  Twins twins = unwritten_twins(N, D, quantisation, orientation, x.device());
  const Target target = target_of(twins, quantisation.format, D, 0, amax);
  launch_quantise(source, quantisation.scaling, {N, D, &target, 1, stream()});
  return twins;
}

}  // namespace

std::optional<Normed> norm(const at::Tensor& x, const at::Tensor& gain, double eps,
                           const Quantisation& quantisation, Orientation orientation) {
  const std::int64_t N = x.size(0), D = x.size(1);
  const at::Tensor rstd = at::empty({N}, gain.options());
  const NormSource source = source_of(x, rstd, gain);
  if (!taken(source, x, quantisation)) return std::nullopt;
  const at::Tensor amax = zero_for(quantisation.scaling, x);
  rms_norm::cuda::launch_forward({.dtype = Dtype::bf16,
                                  .N = N,
                                  .D = D,
                                  .eps = eps,
                                  .x = source.x,
                                  .gain = source.gain,
                                  .y = nullptr,
                                  .rstd = rstd.data_ptr(),
                                  .amax = amax.defined() ? amax.data_ptr<float>() : nullptr},
                                 stream());
  return Normed{written(source, x, quantisation, orientation, amax), rstd, amax};
}

std::optional<Twins> norm_again(const at::Tensor& x, const at::Tensor& gain, const at::Tensor& rstd,
                                const Quantisation& quantisation, Orientation orientation,
                                const at::Tensor& amax) {
  const NormSource source = source_of(x, rstd, gain);
  if (!taken(source, x, quantisation)) return std::nullopt;
  at::Tensor most = amax;
  if (quantisation.scaling == Scaling::tensor && !most.defined()) {
    most = zero_for(quantisation.scaling, x);
    const Target target{.amax = most.data_ptr<float>()};
    launch_amax(source, {x.size(0), x.size(1), &target, 1, stream()});
  }
  return written(source, x, quantisation, orientation, most);
}

std::optional<Twins> gate(const at::Tensor& gate_up, Activation activation, const Quantisation& quantisation,
                          Orientation orientation) {
  const std::int64_t N = gate_up.size(0), F = gate_up.size(1) / 2;
  const GateSource source{activation, gate_up.const_data_ptr()};
  if (gate_up.scalar_type() != at::kBFloat16 || !fits(source, quantisation.scaling, F)) return std::nullopt;
  const at::Tensor most = zero_for(quantisation.scaling, gate_up);
  Twins twins = unwritten_twins(N, F, quantisation, orientation, gate_up.device());
  const Target target = target_of(twins, quantisation.format, F, 0, most);
  if (most.defined()) launch_amax(source, {N, F, &target, 1, stream()});
  launch_quantise(source, quantisation.scaling, {N, F, &target, 1, stream()});
  return twins;
}

std::optional<GateGradient> gate_backward(const at::Tensor& d_gated, const at::Tensor& gate_up,
                                          Activation activation, const Quantisation& quantisation,
                                          Orientation orientation, const std::optional<Quantisation>& gated) {
  const std::int64_t N = gate_up.size(0), F = gate_up.size(1) / 2;
  const GateGradientSource source{activation, d_gated.const_data_ptr(), gate_up.const_data_ptr()};
  if (gate_up.scalar_type() != at::kBFloat16 || !fits(source, quantisation.scaling, F)) return std::nullopt;
  GateGradient out;
  out.gate_up = unwritten_twins(N, 2 * F, quantisation, orientation, gate_up.device());
  if (gated) out.gated = unwritten(F, N, *gated, gate_up.device());
  const at::Tensor of_gradient = zero_for(quantisation.scaling, gate_up),
                   of_value = gated ? zero_for(quantisation.scaling, gate_up) : at::Tensor();
  const Target targets[] = {
      target_of(out.gate_up, quantisation.format, 2 * F, 0, of_gradient),
      target_of(out.gate_up, quantisation.format, 2 * F, F, of_gradient),
      target_of({.rows = {}, .columns = out.gated}, gated.value_or(quantisation).format, F, 0, of_value)};
  const int count = gated ? 3 : 2;
  if (of_gradient.defined()) launch_amax(source, {N, F, targets, count, stream()});
  launch_quantise(source, quantisation.scaling, {N, F, targets, count, stream()});
  return out;
}

}  // namespace assay::impl::quantise::cuda
