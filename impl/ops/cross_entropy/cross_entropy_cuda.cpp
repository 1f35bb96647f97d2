#include <ATen/ATen.h>

#include "impl/ops/cross_entropy/cross_entropy.hpp"
#include "impl/ops/cross_entropy/cross_entropy_launch.hpp"
#include "impl/ops/cuda_tensor.hpp"
#include "spec/ops/cross_entropy.hpp"

namespace assay::impl::cross_entropy::cuda {

using impl::cuda::dtype_of;
using impl::cuda::math_type;
using impl::cuda::stream;

namespace {
/// What forward gives, and where its kernel writes.
struct Rows {
  Forward out;
  at::Tensor terms;
  ForwardArguments arguments;
  Rows(const at::Tensor& logits, const at::Tensor& targets)
      : terms(at::empty({2, logits.size(0)}, logits.options().dtype(at::kDouble))) {
    out.lse = at::empty({logits.size(0)}, logits.options().dtype(math_type(logits.scalar_type())));
    arguments = {.dtype = dtype_of(logits),
                 .N = logits.size(0),
                 .V = logits.size(1),
                 .apart = logits.stride(0),
                 .ignore = spec::cross_entropy::ignore,
                 .logits = logits.const_data_ptr(),
                 .targets = targets.const_data_ptr<std::int64_t>(),
                 .lse = out.lse.data_ptr(),
                 .terms = terms.data_ptr<double>()};
  }
  Forward summed(const at::Tensor& divisor, double z) {
    const at::Tensor sums = terms.sum(1);
    out.loss = sums[0].div(divisor);
    out.z_loss = sums[1].mul(z).div_(divisor);
    return out;
  }
};
}  // namespace

Forward forward(const at::Tensor& logits, const at::Tensor& targets, const Normalizer& normalizer, double z) {
  Rows rows(logits, targets);
  launch_forward(rows.arguments, stream());
  return rows.summed(normalizer.on(logits.device()), z);
}

Forward forward_backward(at::Tensor logits, const at::Tensor& targets, const Normalizer& normalizer,
                         double z) {
  Rows rows(logits, targets);
  const at::Tensor divisor = normalizer.on(logits.device());
  launch_forward_backward(rows.arguments, logits.data_ptr(), divisor.const_data_ptr<double>(), z, stream());
  return rows.summed(divisor, z);
}

at::Tensor backward(at::Tensor logits, const at::Tensor& targets, const at::Tensor& lse,
                    const Normalizer& normalizer, double z) {
  const at::Tensor divisor = normalizer.on(logits.device());
  launch_backward({.dtype = dtype_of(logits),
                   .N = logits.size(0),
                   .V = logits.size(1),
                   .apart = logits.stride(0),
                   .ignore = spec::cross_entropy::ignore,
                   .logits = logits.data_ptr(),
                   .targets = targets.const_data_ptr<std::int64_t>(),
                   .lse = lse.const_data_ptr(),
                   .normalizer = divisor.const_data_ptr<double>(),
                   .z = z},
                  stream());
  return logits;
}

}  // namespace assay::impl::cross_entropy::cuda
