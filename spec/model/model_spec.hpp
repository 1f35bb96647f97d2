#pragma once
// What a decoder-only language model is: the few integers from which parameters, shapes, FLOPs and bytes
// follow.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "spec/count.hpp"
#include "spec/error.hpp"

namespace assay::spec {

enum class Family { llama, qwen2, qwen3, gpt2, mixtral, qwen3_moe, deepseek_v3, olmoe };
enum class Norm { rms_norm, layer_norm };
enum class Mlp { swiglu, gelu, geglu };  ///< swiglu, geglu: gate, up, down; gelu: up, down
enum class Positions { rope, learned };  ///< learned: a table [context, D] added to the embedding

/// "llama", "qwen3_moe": the model_type of Hugging Face's config.json.
std::string_view to_string(Family family);
std::string_view to_string(Norm norm);            ///< "rms_norm"
std::string_view to_string(Mlp mlp);              ///< "swiglu"
std::string_view to_string(Positions positions);  ///< "rope"

bool gated(Mlp mlp);  ///< whether a gate projection stands beside up

/// Meta's of Llama 3.1; yarn: Peng et al., arXiv:2309.00071, as DeepSeek-V3 and long Qwens
/// (spec/ops/rope/rope.md).
enum class RopeScalingKind { llama3, yarn };
std::string_view to_string(RopeScalingKind kind);  ///< "llama3"

/// All values of a choice, in the order of the enum, whose values count from 0: those that to_string names.
template <class Choice>
std::vector<Choice> choices() {
  std::vector<Choice> all;
  for (int i = 0; !to_string(static_cast<Choice>(i)).empty(); ++i) all.push_back(static_cast<Choice>(i));
  return all;
}

/// Frequency scaling of rotary embeddings. `original_context` in tokens. A kind reads its own fields and
/// those of both.
struct RopeScaling {
  double factor = 1;
  double low_freq_factor = 1;   ///< of llama3
  double high_freq_factor = 4;  ///< of llama3
  std::int64_t original_context = 8192;
  RopeScalingKind kind = RopeScalingKind::llama3;
  double beta_fast =
      32;                ///< of yarn: pairs that turn more often in the original context keep their frequency
  double beta_slow = 1;  ///< of yarn: pairs that turn less often are slowed by the whole factor
  double mscale = 0;     ///< of yarn: growth of the attention factor with log(factor); 0: not stated
  double mscale_all_dim = 0;    ///< of yarn: the same for all entries of a latent head; 0: not stated
  double attention_factor = 0;  ///< of yarn: of cosines and sines; 0: follows from factor and the two mscales
  bool operator==(const RopeScaling&) const = default;
};

enum class Scoring { softmax, sigmoid };      ///< how a router makes scores of its logits
std::string_view to_string(Scoring scoring);  ///< "softmax"

/// Mixture of experts in place of the MLP of every sparse layer. Layer l (from 0) is sparse when
/// l >= first_dense and (l + 1) is a multiple of `every`; the others have an MLP of width `ModelSpec::ffn`.
/// How the experts of a token are chosen and weighted: spec/ops/router/router.md.
struct Experts {
  std::int64_t count = 0;         ///< [X] routed experts of a layer
  std::int64_t active = 0;        ///< [A] routed experts that each token visits (top-k)
  std::int64_t width = 0;         ///< [G] inner width of one routed expert
  std::int64_t shared_width = 0;  ///< [S] inner width of all shared experts together; 0: none
  std::int64_t first_dense = 0;   ///< leading dense layers
  std::int64_t every = 1;         ///< period of sparse layers
  bool router_bias = false;       ///< [X] correction of the scores; moved by no gradient, so no parameter
  Scoring scoring = Scoring::softmax;
  bool renormalised = true;        ///< whether the weights of a token's experts are divided by their sum
  std::int64_t groups = 1;         ///< groups of neighbouring experts, of equal size
  std::int64_t active_groups = 1;  ///< groups in which a token's experts lie
  double scaling_factor = 1;       ///< of the weights, behind renormalising
  bool operator==(const Experts&) const = default;
};

/// Multi-head latent attention: queries, keys and values pass through narrow projections. A query or key head
/// has head_dim entries, of which the last rope_dim are turned; the key's turned part is one for all heads.
struct LatentAttention {
  std::int64_t query_rank = 0;      ///< [Cq] width of the compressed query; 0: queries are not compressed
  std::int64_t key_value_rank = 0;  ///< [Ckv] width of the compressed keys and values
  std::int64_t rope_dim = 0;        ///< [R] entries of a query or key head that are turned; even, below E
  std::int64_t value_dim = 0;       ///< [W] entries of a value head
  bool interleaved = true;  ///< turned entries are paired (2i, 2i + 1), as published; false: (i, i + R/2)
  double norm_eps = 1e-6;   ///< of the norms of compressed values, whatever the model's norm_eps
  bool operator==(const LatentAttention&) const = default;
};

/// Symbols of spec/notation.md in brackets. All integers >= 1 unless said otherwise. The defaults describe a
/// Llama; what the trainer can train is narrower (spec/model/trainable.hpp). A new field is entered in
/// spec/model/fields.hpp, whose users then do not compile until each says what it does with the field.
struct ModelSpec {
  std::string name;
  Family family = Family::llama;  ///< decides the parameters' names, not the structure
  std::int64_t vocab = 0;         ///< [V] entries of the vocabulary
  std::int64_t width = 0;         ///< [D] residual stream
  std::int64_t layers = 0;        ///< [L]
  std::int64_t heads = 0;         ///< [H] query heads
  std::int64_t kv_heads = 0;      ///< [K] key/value heads, divides H
  std::int64_t head_dim = 0;      ///< [E] entries of a query and key head; even with rope
  std::int64_t ffn = 0;           ///< [F] inner width of a dense MLP; unused when every layer is sparse
  std::int64_t context = 0;       ///< longest sequence [tokens]
  bool tied_embeddings = false;
  bool qk_norm = false;  ///< RMSNorm of queries and keys before rope, over E of each head (Qwen3)
  double norm_eps = 1e-5;
  double rope_theta = 10000;  ///< without rope: not read
  std::optional<RopeScaling> rope_scaling = std::nullopt;
  double init_std = 0.02;  ///< standard deviation of every initial matrix (spec/ops/init/init.md)
  Norm norm = Norm::rms_norm;
  Mlp mlp = Mlp::swiglu;
  Positions positions = Positions::rope;
  bool qkv_bias = false;     ///< of the query, key and value projections (GPT-2, Qwen2)
  bool output_bias = false;  ///< of the attention's output projection
  bool mlp_bias = false;     ///< of every matrix of the MLP
  bool norm_bias = false;    ///< of the norms of D entries; layer_norm only
  std::optional<Experts> experts = std::nullopt;
  std::optional<LatentAttention> latent = std::nullopt;
  std::int64_t multi_token_layers = 0;  ///< extra blocks that each predict one token further; 0: none
  std::int64_t window = 0;  ///< [tokens] a token sees at most, itself among them (Mistral); 0: no limit
  bool qk_norm_across_heads = false;  ///< qk_norm over all heads at once, H E and K E entries (OLMoE)

  /// Entries of a value head: W with latent attention, else E.
  std::int64_t value_dim() const { return latent ? latent->value_dim : head_dim; }
  /// Entries of a query or key head that rope turns: R with latent attention, else E.
  std::int64_t rope_dim() const { return latent ? latent->rope_dim : head_dim; }
  bool sparse(std::int64_t layer) const;                 ///< whether layer l (from 0) has experts
  std::int64_t sparse_layers() const;                    ///< layers with experts, of L
  std::int64_t sparse_before(std::int64_t layer) const;  ///< of those, the ones before layer l

  bool operator==(const ModelSpec&) const = default;
};

/// The constraints of spec/model/model.md that the model breaks, model_c1..c18; each names field and value.
/// Of those that others compute with, the others are left out.
std::vector<SpecError> broken_constraints(const ModelSpec& model);

/// Errors: the first of broken_constraints.
void check(const ModelSpec& model);

/// How many numbers a model learns, by kind (spec/model/model.md, "Parameters"). [1]
struct ParameterCounts {
  Count total;               ///< everything but the multi-token blocks
  Count active;              ///< `total` without the routed experts that a token does not visit
  Count token_embedding;     ///< V D, in `total` and `active`; the head too when tied
  Count position_embedding;  ///< context D when learned, else 0; in `total` and `active`
  Count head;                ///< V D of an untied head, else 0; in `total` and `active`
  Count multi_token;         ///< multi-token blocks, what they share with the model not counted again
  Count multi_token_active;  ///< of those, without the routed experts that a token does not visit
  Count without_embeddings() const { return total - token_embedding - position_embedding; }
  Count active_without_embeddings() const { return active - token_embedding - position_embedding; }
};

/// By the closed forms of spec/model/model.md; equal to the sums over inventory(model). For a model that
/// holds the constraints (see `check`).
ParameterCounts parameter_counts(const ModelSpec& model);
Count parameter_count(const ModelSpec& model);         ///< parameter_counts(model).total
Count active_parameter_count(const ModelSpec& model);  ///< parameter_counts(model).active

/// Reads a model from TOML text. `origin` (a path or a name) is quoted in errors.
/// Errors: UserError(usage) on syntax, an unknown key (with the nearest key), a missing key, a wrong type, a
/// stated parameter count that the fields do not give; SpecError as `check`.
ModelSpec model_from_toml(std::string_view text, const std::string& origin);

/// TOML text that `model_from_toml` reads back to an equal model.
std::string to_toml(const ModelSpec& model);

/// Reads a Hugging Face `config.json` of any Family. Errors: as model_from_toml, and UserError(usage) for a
/// feature of the file that the spec does not have (another hidden_act, windows of some layers only ...). A
/// window as long as the file's positions is none. `longest`: no sequence is longer; of what the spec does
/// not have, a window that is as long leaves nothing out.
ModelSpec model_from_hugging_face(std::string_view json, const std::string& origin,
                                  std::optional<std::int64_t> longest = std::nullopt);

/// Finds MODEL as users name it: a name of spec/models (built into the library), a path to a .toml, a path to
/// a config.json or a folder that holds one. Errors: UserError(usage) with the nearest known names. `longest`
/// as model_from_hugging_face.
ModelSpec find_model(const std::string& name_or_path, std::optional<std::int64_t> longest = std::nullopt);

/// Names of the models built into the library, in alphabetical order.
std::vector<std::string> model_names();

}  // namespace assay::spec
