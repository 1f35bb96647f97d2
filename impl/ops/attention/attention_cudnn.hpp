#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace assay::impl::attention::cudnn {

// Attention by cuDNN's fused kernels, without ATen. [NVIDIA cuDNN documentation, "Graph API", "Fused Flash
// Attention fprop" and "bprop", ragged tensors; the operations: spec/ops/attention.md,
// docs/decisions/0015-cudnns-graph-by-hand.md, 0021-documents-through-cudnn.md]
// qkv [B, T, H + 2K, E], heads ordered q | k | v, and y, dy [B, T, H, E] in bf16, lse [B, H, T] in fp32 as
// attention::Forward holds it, all contiguous on the same GPU. `offsets` [S + 1] int32 of documents
// (impl/data/document_offsets.hpp), undefined where each sequence is one. Products add in fp32. The first
// call for a shape prepares cuDNN's plan for it, in up to seconds; later ones only enqueue it on the current
// stream, also while a CUDA graph is captured. Errors: c10::Error with cuDNN's reason where it does not take
// the shape, and where a tensor is not contiguous or does not begin at a multiple of 16 bytes; nothing has
// run then.

struct Forward {
  at::Tensor y, lse;
};
/// Of documents.
Forward forward(const at::Tensor& qkv, std::int64_t heads, std::int64_t kv_heads, const at::Tensor& offsets);

/// The gradient, written into one tensor: dqkv [B, T, H + 2K, E] contiguous, each entry written once.
/// `fixed_order`: the same bits at every call; there is none for documents. dq is summed in fp32 and rounded
/// once. Memory for the call comes from the caching allocator (spec/memory/attention.cpp). `plan`: which of
/// `plans`.
at::Tensor backward(const at::Tensor& dy, const at::Tensor& qkv, const at::Tensor& y, const at::Tensor& lse,
                    std::int64_t heads, std::int64_t kv_heads, bool fixed_order,
                    const at::Tensor& offsets = {}, std::size_t plan = 0);

/// While one lives, both passes refuse every shape as they do those that the library does not take, so that
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
  std::int64_t workspace_bytes;  ///< beside the tensors of the graph
};
/// What backward may run by for this shape, cuDNN's best guess first; every one is prepared. Errors: as
/// backward.
std::vector<PlanFacts> plans(const at::Tensor& qkv, std::int64_t heads, std::int64_t kv_heads,
                             bool fixed_order, const at::Tensor& offsets = {});

}  // namespace assay::impl::attention::cudnn
