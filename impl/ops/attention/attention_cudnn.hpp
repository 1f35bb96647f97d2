#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "impl/ops/attention/attention.hpp"

namespace assay::impl::attention::cudnn {

/// The gradient of causal attention by cuDNN, written into one tensor: dq | dk | dv of each token,
/// contiguous, each entry written once. [NVIDIA cuDNN documentation, "Graph API", "Fused Flash
/// Attention bprop"; the operations: spec/ops/attention/attention.md,
/// docs/decisions/0015-cudnns-graph-by-hand.md] dy, y [B, T, H, W], heads in bf16 of as many keys as queries,
/// copied together where they are not joined, lse [B, H, T] in fp32 as attention::Forward holds it, all
/// contiguous on the same GPU. `fixed_order`: the same bits at every call. Products add in fp32; dq is summed
/// in fp32 and rounded once. The first call for a shape prepares cuDNN's plan for it, in up to seconds; later
/// ones only enqueue it on the current stream, also while a CUDA graph is recorded. Memory for the call comes
/// from the caching allocator: fp32 [B, H, T, E] and [B, H, T] and the plan's own. `plan`: which of `plans`.
/// Errors: c10::Error with cuDNN's reason where it does not take the shape, and where a tensor is not
/// contiguous or does not begin at a multiple of 16 bytes; nothing has run then.
Gradients backward(const at::Tensor& dy, const Heads& x, const at::Tensor& y, const at::Tensor& lse,
                   bool fixed_order, std::size_t plan = 0);

/// While one lives, backward refuses every shape as it does those that the library does not take, so that
/// what runs then can be tried on a GPU whose library takes all.
class Refusing {
 public:
  Refusing();
  ~Refusing();
  Refusing(const Refusing&) = delete;
  Refusing& operator=(const Refusing&) = delete;

 private:
  bool before_;
};

struct PlanFacts {
  std::string name;              ///< engine and choices of its knobs, by cuDNN's numbers
  std::int64_t workspace_bytes;  ///< beside the sums named above
};
/// What backward may run by for this shape, cuDNN's best guess first; every one is prepared. Errors: as
/// backward.
std::vector<PlanFacts> plans(const Heads& x, bool fixed_order);

}  // namespace assay::impl::attention::cudnn
