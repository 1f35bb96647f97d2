#include "spec/model/trainable.hpp"

#include "spec/error.hpp"
#include "spec/text/quote.hpp"

namespace assay::spec {

std::string untrainable_feature(const ModelSpec& m) {
  if (m.latent) return "latent attention";
  if (m.experts) return "a mixture of experts";
  if (m.multi_token_layers > 0) return "multi-token prediction";
  if (m.norm != Norm::rms_norm) return "layer_norm";
  if (m.mlp != Mlp::swiglu) return "a gelu MLP";
  if (m.positions != Positions::rope) return "learned positions";
  if (m.rope_scaling && m.rope_scaling->kind != RopeScalingKind::llama3)
    return "rope scaling of kind " + std::string(to_string(m.rope_scaling->kind));
  if (m.qkv_bias || m.output_bias || m.mlp_bias) return "biases of its projections";
  // Names of tensors follow the family, and readers of checkpoints ask for those of Llama and Qwen3.
  if (m.family != Family::llama && m.family != Family::qwen3)
    return "the parameter names of family " + std::string(to_string(m.family));
  return "";
}

void require_trainable(const ModelSpec& model) {
  const std::string feature = untrainable_feature(model);
  if (feature.empty()) return;
  throw UserError(ExitCode::usage,
                  "model " + quote(model.name) + " cannot be trained: it has " + feature +
                      ", which the trainer does not compute; `assay flops` and `assay audit` take it; train "
                      "a Llama or a dense Qwen3, such as \"tiny-llama\" or \"qwen3-0.6b\"");
}

}  // namespace assay::spec
