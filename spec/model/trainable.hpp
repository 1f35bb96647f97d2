#pragma once
// What of the described models the trainer computes, Llamas, Qwens and mixtures of experts, and what the
// reference does, which may be ahead of it. The column `computed` of spec/model/fields.hpp states both.
#include <string>

#include "spec/model/model_spec.hpp"

namespace assay::spec {

/// The features of the model that the trainer does not compute, in words ("layer_norm, a gelu MLP"); empty
/// when the model can be trained.
std::string untrainable_feature(const ModelSpec& model);
/// The same of the reference, which computes every model that the trainer does.
std::string uncomputed_feature(const ModelSpec& model);

/// Whether there are models of that family that the trainer computes.
bool trainable(Family family);
/// The model_types of config.json of which that holds: "\"llama\", \"mistral\", ...".
std::string trainable_types();

/// Errors: UserError(usage) that names the model, the feature and what can be trained instead.
void require_trainable(const ModelSpec& model);
/// Errors: UserError(usage) that names the model and the feature that the reference does not compute.
void require_computed(const ModelSpec& model);

}  // namespace assay::spec
