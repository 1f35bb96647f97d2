#pragma once
#include "impl/ops/cuda_launch.hpp"
#include "spec/ops/cross_entropy/cross_entropy.hpp"

namespace assay::impl::cross_entropy::cuda {

/// Rows of logits [N, V], `apart` elements apart, and their targets [N], device pointers of
/// impl/ops/cross_entropy/cross_entropy.hpp. `ignore`: the target of a row that takes no part.
struct RowArguments {
  Dtype dtype;
  std::int64_t N, V, apart, ignore;
  spec::cross_entropy::Terms of;
  const void* logits;
  const std::int64_t* targets;
};

/// lse [N] fp32 for bf16, else of `dtype`. `terms` [2, N] fp64: each row's lse - logit of the target, and
/// lse^2; 0 where ignored.
struct ForwardArguments {
  RowArguments rows;
  void* lse;
  double* terms;
};
ASSAY_KERNEL void launch_forward(const ForwardArguments& a, cudaStream_t stream);

/// Of the columns of one tensor rank, V >= 0: each row's largest logit, the sum of exp(logit - top), and the
/// logit of its target, 0 where the target is negative: ignored, or of another rank. All [N], of lse's type.
struct PartialArguments {
  RowArguments rows;
  void *top, *sum, *of_target;
};
ASSAY_KERNEL void launch_partial(const PartialArguments& a, cudaStream_t stream);

/// lse [N] and terms [2, N] of launch_forward from those numbers over all ranks. `dtype`: theirs and lse's.
struct CombineArguments {
  Dtype dtype;
  std::int64_t N, ignore;
  const void *top, *sum, *of_target;
  const std::int64_t* targets;
  void* lse;
  double* terms;
};
ASSAY_KERNEL void launch_combine(const CombineArguments& a, cudaStream_t stream);

/// Writes the gradient over the logits. A target that is no column is of another rank:
/// a valid row, of which no entry takes the -1.
struct BackwardArguments {
  RowArguments rows;
  void* logits;
  const void* lse;
  const double* normalizer;  ///< on the device
};
ASSAY_KERNEL void launch_backward(const BackwardArguments& a, cudaStream_t stream);

/// Both, the gradient written over `logits`, which `a` reads.
ASSAY_KERNEL void launch_forward_backward(const ForwardArguments& a, void* logits, const double* normalizer,
                                          cudaStream_t stream);

}  // namespace assay::impl::cross_entropy::cuda
