#pragma once
#include "impl/ops/cuda_launch.hpp"

namespace assay::impl::adamw::cuda {

/// One flat range (impl/ops/adamw/adamw.hpp). Pointers to the first element; `weight` is `master` when there
/// is no separate copy. Scalars are computed once on the host in double; `numbers`, where it is given, holds
/// those that change from step to step (impl/ops/adamw/adamw.hpp) on the device, and the ones here are not
/// read.
struct Arguments {
  Dtype weight_dtype;  ///< bf16 with fp32 state, or that of the state
  Dtype state_dtype;   ///< of master and moments, and of the gradient, which is fp32 with bf16 states
  std::int64_t n;
  void* weight;
  void* master;
  const void* gradient;
  void *moment1, *moment2;
  double beta1, beta2, eps;
  double gradient_scale;      ///< read where `coefficient` is null
  const double* coefficient;  ///< on the device: the gradient's scale, NaN: write nothing
  const double* numbers;      ///< on the device, or null
  double decay;               ///< 1 - learning_rate * weight_decay
  double step_size;           ///< learning_rate / (1 - beta1^step)
  double root_correction;     ///< sqrt(1 - beta2^step)
  std::uint64_t seed;         ///< of the random bits that round bf16 states
  std::uint32_t step;         ///< of those bits; not read where `numbers` is given
  std::uint64_t first;        ///< number of the first entry, which chooses its bits
};
ASSAY_KERNEL void launch(const Arguments& a, cudaStream_t stream);

}  // namespace assay::impl::adamw::cuda
