#pragma once
// What of the described models the reference and the trainer have: Llama and Qwen3 dense.
#include <string>

#include "spec/model/model_spec.hpp"

namespace assay::spec {

/// The first part of the model that no op of the reference and the trainer computes, in words ("a mixture of
/// experts"); empty when the model can be trained.
std::string untrainable_feature(const ModelSpec& model);

/// Errors: UserError(usage) that names the model, the feature and what can be trained instead.
void require_trainable(const ModelSpec& model);

}  // namespace assay::spec
