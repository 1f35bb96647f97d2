#pragma once
#include <ATen/core/Tensor.h>

#include "impl/ops/rope/rope.hpp"
#include "spec/ops/latent_attention/latent_attention.hpp"
#include "spec/ops/rope/rope.hpp"

namespace assay::impl::latent_attention {

using spec::latent_attention::Shape;
using spec::rope::Pairs;

/// The projection down of keys and values [N, Ckv + R] in its two parts.
/// [spec/ops/latent_attention/latent_attention.md]
struct Split {
  at::Tensor key_value, shared_key;  ///< [N, Ckv] and [N, R], each contiguous
};
/// Errors: SpecError latent_attention_c1 (fewer columns than R).
Split split(const at::Tensor& down, std::int64_t R);
/// Its backward: gradients [N, Ckv] and [N, R] side by side.
at::Tensor join(const at::Tensor& key_value, const at::Tensor& shared_key);

/// q | k | v of every head, as attention::forward reads them: the last R entries of each q turned,
/// k_h = [keys of key_value's head h, shared key turned], v_h. Shapes: query [N, H E], key_value
/// [N, H (E - R + W)], of each head E - R entries of its key and then its value, shared_key [N, R], all
/// contiguous, -> [N, H (2E + W)]. `shape` without D, Cq and Ckv; `table`, `positions` as rope::rotate takes
/// them, of R turned entries. Errors: SpecError latent_attention_c1, rope_c3, rope_c5, rope_c6.
at::Tensor expand(const at::Tensor& query, const at::Tensor& key_value, const at::Tensor& shared_key,
                  const Shape& shape, Pairs pairs, const rope::Table& table, const at::Tensor& positions);

struct Gradient {
  at::Tensor query, key_value, shared_key;  ///< shaped as what expand takes
};
/// Gradient of expand for upstream dqkv [N, H (2E + W)]. That of the shared key is summed over the heads, in
/// their order, in the arithmetic type, turned back and rounded once. Errors: as expand.
Gradient expand_backward(const at::Tensor& dqkv, const Shape& shape, Pairs pairs, const rope::Table& table,
                         const at::Tensor& positions);

/// The implementations behind these functions, arguments unchecked: `cpu` loops, `cuda` a kernel each way,
/// `aten` is written in ATen calls and runs on any device.
namespace cpu {
decltype(latent_attention::expand) expand;
decltype(latent_attention::expand_backward) expand_backward;
}  // namespace cpu
namespace cuda {
decltype(latent_attention::expand) expand;
decltype(latent_attention::expand_backward) expand_backward;
}  // namespace cuda
namespace aten {
decltype(latent_attention::expand) expand;
decltype(latent_attention::expand_backward) expand_backward;
}  // namespace aten

}  // namespace assay::impl::latent_attention
