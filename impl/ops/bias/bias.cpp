#include "impl/ops/bias/bias.hpp"

#include <ATen/ATen.h>

#include "impl/metrics/op_times.hpp"
#include "impl/ops/tensor_check.hpp"
#include "spec/ops/bias/bias.hpp"

namespace assay::impl::bias {

void backward(const at::Tensor& dy, at::Tensor dbias) {
  const metrics::OpScope timed(spec::time::StepOp::bias, spec::time::StepPass::backward);
  spec::bias::check({.N = dy.size(0), .out = dy.size(1)}, dbias.numel());
  check_contiguous("bias", {dy, dbias});
  check_statistic("bias", dy, {dbias});
  dy.is_cpu() ? cpu::backward(dy, dbias) : cuda::backward(dy, dbias);
}

namespace aten {
void backward(const at::Tensor& dy, at::Tensor dbias) { dbias.add_(dy.sum(0, false, dbias.scalar_type())); }
}  // namespace aten

}  // namespace assay::impl::bias
