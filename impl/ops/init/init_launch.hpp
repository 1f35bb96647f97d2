#pragma once
#include "impl/ops/cuda_launch.hpp"
#include "spec/random/philox.hpp"

namespace assay::impl::init::cuda {

/// Writes scale * normal number first + i / row * apart + i % row of `numbers` to values[i], i in [0, n): the
/// bits of spec::init.
struct Arguments {
  Dtype dtype;
  void* values;
  std::int64_t n;
  std::int64_t first, row, apart;
  spec::random::Stream numbers;
  double scale;
};
ASSAY_KERNEL void launch(const Arguments& a, cudaStream_t stream);

}  // namespace assay::impl::init::cuda
