#pragma once
// Random small models for property tests: every combination of GQA ratio, tying, QK-norm and head width.
#include <rapidcheck.h>

#include "spec/model/model_spec.hpp"

namespace assay::tests {

/// A valid ModelSpec: V 1..40, D 1..24, L 1..4, K 1..3, H = K * (1..3), E 2..8 even, F 1..24, context 1..32.
inline spec::ModelSpec draw_model() {
  const auto between = [](std::int64_t low, std::int64_t high) {
    return *rc::gen::inRange<std::int64_t>(low, high + 1);
  };
  spec::ModelSpec model;
  model.name = "drawn";
  model.vocab = between(1, 40);
  model.width = between(1, 24);
  model.layers = between(1, 4);
  model.kv_heads = between(1, 3);
  model.heads = model.kv_heads * between(1, 3);
  model.head_dim = 2 * between(1, 4);
  model.ffn = between(1, 24);
  model.context = between(1, 32);
  model.tied_embeddings = *rc::gen::arbitrary<bool>();
  model.qk_norm = *rc::gen::arbitrary<bool>();
  model.family = model.qk_norm ? spec::Family::qwen3 : spec::Family::llama;
  if (*rc::gen::arbitrary<bool>())
    model.rope_scaling = {.factor = 8, .low_freq_factor = 1, .high_freq_factor = 4, .original_context = 16};
  return model;
}

}  // namespace assay::tests
