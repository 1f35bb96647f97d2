#pragma once
// What a decoder-only language model is: the few integers from which parameters, shapes, FLOPs and bytes
// follow.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "spec/count.hpp"

namespace assay::spec {

enum class Family { llama, qwen3 };

/// "llama", "qwen3": the model_type of Hugging Face's config.json.
std::string_view to_string(Family family);

/// Frequency scaling of rotary embeddings as in Llama 3.1 (spec/ops/rope.md). `original_context` in tokens.
struct RopeScaling {
  double factor = 1;
  double low_freq_factor = 1;
  double high_freq_factor = 4;
  std::int64_t original_context = 8192;
  bool operator==(const RopeScaling&) const = default;
};

/// Symbols of spec/notation.md in brackets. All integers >= 1.
struct ModelSpec {
  std::string name;
  Family family = Family::llama;
  std::int64_t vocab = 0;     ///< [V] entries of the vocabulary
  std::int64_t width = 0;     ///< [D] residual stream
  std::int64_t layers = 0;    ///< [L]
  std::int64_t heads = 0;     ///< [H] query heads
  std::int64_t kv_heads = 0;  ///< [K] key/value heads, divides H
  std::int64_t head_dim = 0;  ///< [E] even
  std::int64_t ffn = 0;       ///< [F] SwiGLU inner width
  std::int64_t context = 0;   ///< longest sequence [tokens]
  bool tied_embeddings = false;
  bool qk_norm = false;  ///< RMSNorm over E of each query and key head before rope (Qwen3)
  double norm_eps = 1e-5;
  double rope_theta = 10000;
  std::optional<RopeScaling> rope_scaling;
  double init_std = 0.02;  ///< standard deviation of every initial matrix (spec/ops/init.md)

  bool operator==(const ModelSpec&) const = default;
};

/// Checks every constraint of spec/model/model.md. Errors: SpecError model_c1..c9; the message names field
/// and value.
void check(const ModelSpec& model);

/// Parameters by the closed form of spec/model/model.md; equals inventory(model).parameter_count(). [1]
Count parameter_count(const ModelSpec& model);

/// Reads a model from TOML text. `origin` (a path or a name) is quoted in errors.
/// Errors: UserError(usage) on syntax, an unknown key (with the nearest key), a missing key, a wrong type;
/// SpecError as `check`.
ModelSpec model_from_toml(std::string_view text, const std::string& origin);

/// TOML text that `model_from_toml` reads back to an equal model.
std::string to_toml(const ModelSpec& model);

/// Reads a Hugging Face `config.json` with model_type llama or qwen3. Errors: as model_from_toml, and
/// UserError(usage) for a feature of the file that the spec does not have (attention_bias, another
/// hidden_act, sliding window ...).
ModelSpec model_from_hugging_face(std::string_view json, const std::string& origin);

/// Finds MODEL as users name it: a name of spec/models (built into the library), a path to a .toml, a path to
/// a config.json or a folder that holds one. Errors: UserError(usage) with the nearest known names.
ModelSpec find_model(const std::string& name_or_path);

/// Names of the models built into the library, in alphabetical order.
std::vector<std::string> model_names();

}  // namespace assay::spec
