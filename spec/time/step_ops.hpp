#pragma once
// The ops of a training step: what runs, how often, and what each call must do. Definitions, source and
// worked example: spec/time/step_ops.md.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "spec/count.hpp"
#include "spec/parallel/parameter_sets.hpp"
#include "spec/tolerance.hpp"

namespace assay::spec::time {

/// What a part of a step computes. GEMMs by the matrix; `other_gemm` belongs to no part of the model.
enum class StepOp {
  embedding,
  rms_norm,
  qkv,
  bias,
  qk_norm_rope,
  rope,
  latent_projections,  ///< down to compressed queries, keys and values, and up to all heads
  latent_split,        ///< compressed keys and values from the shared key, and back
  latent_expand,       ///< q, k and v of all heads from their projections
  attention,
  attention_output,
  gate_up,
  swiglu,
  down,
  router,
  permute,  ///< rows to their experts and back
  experts,  ///< GEMMs of the routed experts
  shared_experts,
  quantise,
  head,
  other_gemm,
  cross_entropy,
  zero_gradients,
  clip_grad_norm,
  adamw
};
inline constexpr std::size_t step_ops_count = 25;
std::string_view to_string(StepOp op);  ///< "attention_output"

/// `recompute`: forward again, for backward's sake. A GEMM's backward is two calls.
enum class StepPass { forward, recompute, backward, input_gradient, weight_gradient, update };
inline constexpr std::size_t step_passes = 6;
std::string_view to_string(StepPass pass);  ///< "weight gradient"

/// "qkv weight gradient".
std::string name_of(StepOp op, StepPass pass);

/// Ops that a waterfall shows as one.
enum class StepClass { gemm, attention, elementwise, loss, optimizer };
StepClass class_of(StepOp op);
std::string_view to_string(StepClass kind);  ///< "gemm"

/// One call of an op.
struct StepOpCount {
  StepOp op;
  StepPass pass;
  double calls = 0;  ///< alike in a step
  Flops flops;       ///< of one call
  Count bytes;       ///< of one call [B]
};

/// What clip and update do, once a step, over the parameters of a rank's model, whatever the layout.
/// `states`: dtype of moments and master weights beside bf16 weights.
std::vector<StepOpCount> optimizer_ops(const Share& share, Dtype dtype, Dtype states);

/// What a GPU can do at most; 0: not known.
struct Ceiling {
  double peak = 0;       ///< dense, of the precision that computes [flop/s]
  double bandwidth = 0;  ///< of its memory [B/s]
};

/// Least seconds of a call; nothing when neither bound is known. [s]
std::optional<double> roofline(const Flops& flops, const Count& bytes, const Ceiling& ceiling);

}  // namespace assay::spec::time
