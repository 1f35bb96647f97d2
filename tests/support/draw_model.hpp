#pragma once
// Random small models for property tests: what the trainer has (every combination of GQA ratio, tying,
// gate, biases, QK-norm and head width), and whatever the spec describes.
#include "spec/model/model_spec.hpp"

namespace assay::tests {

/// A valid ModelSpec that can be trained: V 1..40, D 1..24, L 1..4, K 1..3, H = K * (1..3), E 2..8 even,
/// F 1..24, context 1..32, half with a window of 1..16 tokens.
spec::ModelSpec draw_model();

/// Gives a model with rope latent attention, and what that does not go with is taken from it.
void draw_latent(spec::ModelSpec& m);

/// draw_model's, a third of them with latent attention.
spec::ModelSpec draw_trainable_model();

/// Experts of a model with `layers` layers: 1 to 15 in 1 to 3 groups, of which 1 to all are visited, dense
/// layers in between.
spec::Experts draw_experts(std::int64_t layers);

/// A valid ModelSpec of any kind (every field varies, which tests/spec/model/fields_test.cpp holds):
/// draw_model's extents with any norm, MLP, positions and biases, GPT-2 or Llama names, with or without
/// experts, latent attention and multi-token blocks.
spec::ModelSpec draw_described_model();

}  // namespace assay::tests
