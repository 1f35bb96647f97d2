#pragma once
// What of the described models the reference and the trainer compute: dense Llama, Qwen2 and Qwen3.
// trainable.cpp states it field by field; a field of ModelSpec without an entry does not compile.
#include <string>

#include "spec/model/model_spec.hpp"

namespace assay::spec {

/// The first feature of the model that the reference and the trainer do not compute, in words ("a mixture of
/// experts"); empty when the model can be trained.
std::string untrainable_feature(const ModelSpec& model);

/// Errors: UserError(usage) that names the model, the feature and what can be trained instead.
void require_trainable(const ModelSpec& model);

}  // namespace assay::spec
