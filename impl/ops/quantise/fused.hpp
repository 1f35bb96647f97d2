#pragma once
// Norm and gated activation whose results leave in FP8 alone. Every result has the bits of quantise() of what
// the op itself gives in x's dtype; on a GPU that is never written to memory, elsewhere and where no kernel
// takes the shape (rows that are no multiple of 16 bytes) it is.
#include <optional>

#include "impl/ops/quantise/quantise.hpp"
#include "spec/ops/swiglu/gate_activation.hpp"

namespace assay::impl::quantise {

using spec::swiglu::Activation;

struct Normed {
  Twins y;
  at::Tensor rstd;  ///< [N], as rms_norm::forward gives it
  at::Tensor amax;  ///< of y, for Scaling::tensor
};

/// rms_norm::forward of x [N, D], quantised. Errors: as rms_norm::forward.
Normed norm(const at::Tensor& x, const at::Tensor& gain, double eps, const Quantisation& quantisation,
            Orientation orientation);

/// y of rms_norm::forward again, quantised, from what forward kept: x [N, D], gain [D], rstd [N]. `amax` [1]
/// fp32: for Scaling::tensor, found here where it was not kept. Errors: as rms_norm::forward.
Twins norm_again(const at::Tensor& x, const at::Tensor& gain, const at::Tensor& rstd,
                 const Quantisation& quantisation, Orientation orientation, const at::Tensor& amax = {});

/// swiglu::forward of gate_up [N, 2F], quantised: [N, F] and [F, N]. Errors: as swiglu::forward.
Twins gate(const at::Tensor& gate_up, Activation activation, const Quantisation& quantisation,
           Orientation orientation);

struct GateGradient {
  Twins gate_up;    ///< gradient of gate_up, [N, 2F] and [2F, N]
  Quantised gated;  ///< swiglu::forward again, [F, N]: what the gradient of the weight behind it reads
};

/// swiglu::backward from d_gated [N, F] and gate_up [N, 2F], which stay as they are. `gated`: how forward's
/// value is quantised, of the same scaling; undefined where it is not given.
GateGradient gate_backward(const at::Tensor& d_gated, const at::Tensor& gate_up, Activation activation,
                           const Quantisation& quantisation, Orientation orientation,
                           const std::optional<Quantisation>& gated);

/// The implementations behind these functions, arguments unchecked: `composed` of the ops, on any device;
/// `cuda` kernels, empty where none takes the arguments.
namespace composed {
decltype(quantise::norm) norm;
decltype(quantise::norm_again) norm_again;
decltype(quantise::gate) gate;
decltype(quantise::gate_backward) gate_backward;
}  // namespace composed
namespace cuda {
std::optional<Normed> norm(const at::Tensor& x, const at::Tensor& gain, double eps,
                           const Quantisation& quantisation, Orientation orientation);
std::optional<Twins> norm_again(const at::Tensor& x, const at::Tensor& gain, const at::Tensor& rstd,
                                const Quantisation& quantisation, Orientation orientation,
                                const at::Tensor& amax);
std::optional<Twins> gate(const at::Tensor& gate_up, Activation activation, const Quantisation& quantisation,
                          Orientation orientation);
std::optional<GateGradient> gate_backward(const at::Tensor& d_gated, const at::Tensor& gate_up,
                                          Activation activation, const Quantisation& quantisation,
                                          Orientation orientation, const std::optional<Quantisation>& gated);
}  // namespace cuda

}  // namespace assay::impl::quantise
