#pragma once
#include <ATen/core/Tensor.h>

namespace assay::impl::embedding {

/// Rows of a table. [spec/ops/embedding/embedding.md] Shapes: table [V, D], ids [N] int64 -> [N, D]. The
/// table may be a slice of the vocabulary: the row of an id that is spec::foreign is zeros (own_ids.hpp).
/// Errors: SpecError embedding_c1 (an id neither in [0, V) nor foreign, CPU only: on a GPU the loader has
/// checked the ids).
at::Tensor forward(const at::Tensor& table, const at::Tensor& ids);

/// dtable[ids[n]] += dy[n] in order of n, so that repeats always sum alike. dy [N, D], dtable [V, D] (its
/// dtype sums). Nothing is added for foreign ids.
void backward(const at::Tensor& dy, const at::Tensor& ids, at::Tensor dtable);

/// The implementations behind these functions, of the same meaning, arguments unchecked: `cpu` are fused
/// loops for CPU tensors, `cuda` our kernels and vendor libraries for CUDA tensors, `aten` is written in ATen
/// calls and runs on any device.
namespace cpu {
decltype(embedding::forward) forward;
decltype(embedding::backward) backward;
}  // namespace cpu
namespace cuda {
decltype(embedding::forward) forward;
decltype(embedding::backward) backward;
}  // namespace cuda
namespace aten {
decltype(embedding::forward) forward;
decltype(embedding::backward) backward;
}  // namespace aten

}  // namespace assay::impl::embedding
