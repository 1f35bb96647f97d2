#include "spec/time/step_ops.hpp"

#include <algorithm>

#include "spec/error.hpp"
#include "spec/ops/adamw/adamw.hpp"
#include "spec/ops/clip_grad_norm/clip_grad_norm.hpp"

namespace assay::spec::time {
namespace {

/// Entries whose gradient no GEMM writes: gains, biases, and the embedding unless the head is the same
/// matrix.
Count beside_gemms(const Share& share) {
  Count entries = 0;
  for (const ParameterSet& set : share.sets)
    for (const Parameter& parameter : set.partition.inventory.parameters)
      if (!parameter.matrix() || (parameter.role == Role::embedding && !share.model.tied_embeddings))
        entries += Count(parameter.size);
  return entries;
}

}  // namespace

std::vector<StepOpCount> optimizer_ops(const Share& share, Dtype dtype, Dtype states) {
  const std::int64_t element = element_bytes(dtype), wide = std::max<std::int64_t>(4, element),
                     entries = parameter_count(share.model).to_int64(),
                     state = dtype == Dtype::bf16 ? element_bytes(states) : element;
  const bool masters = dtype == Dtype::bf16 && states != Dtype::bf16;
  return {{StepOp::zero_gradients, StepPass::update, 1, {}, beside_gemms(share) * wide},
          {StepOp::clip_grad_norm,
           StepPass::update,
           1,
           {Count(0), 2 * Count(entries)},
           clip_grad_norm::norm_bytes(entries, wide)},
          {StepOp::adamw, StepPass::update, 1, adamw::update_flops(entries),
           adamw::update_bytes(entries, state, wide, masters ? element : 0)}};
}

std::string_view to_string(StepOp op) {
  static constexpr std::string_view names[step_ops_count] = {"embedding",
                                                             "rms_norm",
                                                             "qkv",
                                                             "bias",
                                                             "qk_norm_rope",
                                                             "rope",
                                                             "latent_projections",
                                                             "latent_split",
                                                             "latent_expand",
                                                             "attention",
                                                             "attention_output",
                                                             "gate_up",
                                                             "swiglu",
                                                             "down",
                                                             "router",
                                                             "permute",
                                                             "experts",
                                                             "shared_experts",
                                                             "quantise",
                                                             "head",
                                                             "other_gemm",
                                                             "cross_entropy",
                                                             "zero_gradients",
                                                             "clip_grad_norm",
                                                             "adamw"};
  return names[static_cast<std::size_t>(op)];
}

std::string_view to_string(StepPass pass) {
  static constexpr std::string_view names[step_passes] = {"forward",        "recompute",       "backward",
                                                          "input gradient", "weight gradient", "update"};
  return names[static_cast<std::size_t>(pass)];
}

std::string name_of(StepOp op, StepPass pass) {
  return std::string(to_string(op)) + " " + std::string(to_string(pass));
}

StepClass class_of(StepOp op) {
  switch (op) {
    case StepOp::qkv:
    case StepOp::latent_projections:
    case StepOp::attention_output:
    case StepOp::gate_up:
    case StepOp::down:
    case StepOp::experts:
    case StepOp::shared_experts:
    case StepOp::head:
    case StepOp::other_gemm:
      return StepClass::gemm;
    case StepOp::attention:
      return StepClass::attention;
    case StepOp::cross_entropy:
      return StepClass::loss;
    case StepOp::zero_gradients:
    case StepOp::clip_grad_norm:
    case StepOp::adamw:
      return StepClass::optimizer;
    case StepOp::embedding:
    case StepOp::rms_norm:
    case StepOp::bias:
    case StepOp::qk_norm_rope:
    case StepOp::rope:
    case StepOp::latent_split:
    case StepOp::latent_expand:
    case StepOp::swiglu:
    case StepOp::router:
    case StepOp::permute:
    case StepOp::quantise:
      return StepClass::elementwise;
  }
  return StepClass::elementwise;
}

std::string_view to_string(StepClass kind) {
  static constexpr std::string_view names[] = {"gemm", "attention", "elementwise", "loss", "optimizer"};
  return names[static_cast<std::size_t>(kind)];
}

std::optional<double> roofline(const Flops& flops, const Count& bytes, const Ceiling& ceiling) {
  if (!(ceiling.peak > 0) && !(ceiling.bandwidth > 0)) return {};
  const double compute = ceiling.peak > 0 ? flops.matmul.to_double() / ceiling.peak : 0;
  const double memory = ceiling.bandwidth > 0 ? bytes.to_double() / ceiling.bandwidth : 0;
  return std::max(compute, memory);
}

}  // namespace assay::spec::time
