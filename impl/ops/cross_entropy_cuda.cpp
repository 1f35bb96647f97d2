#include <ATen/ATen.h>

#include "impl/ops/cross_entropy.hpp"
#include "impl/ops/cross_entropy_launch.hpp"
#include "impl/ops/cuda_tensor.hpp"
#include "spec/ops/cross_entropy.hpp"

namespace assay::impl::cross_entropy::cuda {

using impl::cuda::dtype_of;
using impl::cuda::math_type;
using impl::cuda::stream;

Forward forward(const at::Tensor& logits, const at::Tensor& targets, const Normalizer& normalizer, double z) {
  const std::int64_t N = logits.size(0), V = logits.size(1);
  Forward out;
  out.lse = at::empty({N}, logits.options().dtype(math_type(logits.scalar_type())));
  const at::Tensor terms = at::empty({2, N}, logits.options().dtype(at::kDouble));
  launch_forward({.dtype = dtype_of(logits),
                  .N = N,
                  .V = V,
                  .apart = logits.stride(0),
                  .ignore = spec::cross_entropy::ignore,
                  .logits = logits.const_data_ptr(),
                  .targets = targets.const_data_ptr<std::int64_t>(),
                  .lse = out.lse.data_ptr(),
                  .terms = terms.data_ptr<double>()},
                 stream());
  const at::Tensor sums = terms.sum(1);
  const at::Tensor divisor = normalizer.on(logits.device());
  out.loss = sums[0].div(divisor);
  out.z_loss = sums[1].mul(z).div_(divisor);
  return out;
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
