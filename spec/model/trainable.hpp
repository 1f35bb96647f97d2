#pragma once
// What of the described models the trainer computes, Llamas, Qwens and mixtures of
// experts, and what the reference does, which is ahead of it. trainable.cpp states both field by field; a
// field of ModelSpec without an entry does not compile.
#include <string>

#include "spec/model/model_spec.hpp"

namespace assay::spec {

/// The first feature of the model that the trainer does not compute, in words ("latent attention"); empty
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
