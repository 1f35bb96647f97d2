// What config.json calls the fields of a model, for errors in its own words.
#include <algorithm>
#include <tuple>

#include "spec/model/config_json.hpp"
#include "spec/model/fields.hpp"

namespace assay::spec::config_json {

namespace {
/// What config.json calls a field. Null: the family decides the field, or its key's name differs by family.
struct ConfigKey {
  const char *gpt2, *others;
};
constexpr ConfigKey by_family = {nullptr, nullptr};

// Every field stands here, so that a new one is not left at its default in silence: read it above, or refuse
// the files that state it.
constexpr std::tuple model_config_keys = {
    of(&ModelSpec::name, by_family),  // of the file's folder
    of(&ModelSpec::family, ConfigKey{"model_type", "model_type"}),
    of(&ModelSpec::vocab, ConfigKey{"vocab_size", "vocab_size"}),
    of(&ModelSpec::width, ConfigKey{"n_embd", "hidden_size"}),
    of(&ModelSpec::layers, ConfigKey{"n_layer", "num_hidden_layers"}),
    of(&ModelSpec::heads, ConfigKey{"n_head", "num_attention_heads"}),
    of(&ModelSpec::kv_heads, ConfigKey{"n_head", "num_key_value_heads"}),
    of(&ModelSpec::head_dim, ConfigKey{"head_dim", "head_dim"}),
    of(&ModelSpec::ffn, ConfigKey{"n_inner", "intermediate_size"}),
    of(&ModelSpec::context, ConfigKey{"n_positions", "max_position_embeddings"}),
    of(&ModelSpec::tied_embeddings, ConfigKey{"tie_word_embeddings", "tie_word_embeddings"}),
    of(&ModelSpec::qk_norm, by_family),
    of(&ModelSpec::norm_eps, ConfigKey{"layer_norm_epsilon", "rms_norm_eps"}),
    of(&ModelSpec::rope_theta, ConfigKey{nullptr, "rope_theta"}),
    of(&ModelSpec::rope_scaling, by_family),  // rope_scaling or rope_parameters
    of(&ModelSpec::init_std, ConfigKey{"initializer_range", "initializer_range"}),
    of(&ModelSpec::norm, by_family),
    of(&ModelSpec::mlp, ConfigKey{"activation_function", "hidden_act"}),
    of(&ModelSpec::positions, by_family),
    of(&ModelSpec::qkv_bias, by_family),  // and attention_bias
    of(&ModelSpec::output_bias, by_family),
    of(&ModelSpec::mlp_bias, ConfigKey{nullptr, "mlp_bias"}),
    of(&ModelSpec::norm_bias, by_family),
    of(&ModelSpec::experts, by_family),
    of(&ModelSpec::latent, by_family),
    of(&ModelSpec::multi_token_layers, ConfigKey{nullptr, "num_nextn_predict_layers"}),
    of(&ModelSpec::window, ConfigKey{nullptr, "sliding_window"}),
    of(&ModelSpec::qk_norm_across_heads, by_family)};
static_assert(covers(model_fields, model_config_keys),
              "read the new field from config.json, and enter its key");

constexpr std::tuple scaling_config_keys = {
    of(&RopeScaling::kind, ConfigKey{nullptr, "rope_type"}),
    of(&RopeScaling::factor, ConfigKey{nullptr, "factor"}),
    of(&RopeScaling::low_freq_factor, ConfigKey{nullptr, "low_freq_factor"}),
    of(&RopeScaling::high_freq_factor, ConfigKey{nullptr, "high_freq_factor"}),
    of(&RopeScaling::original_context, by_family),  // its own key, else the context
    of(&RopeScaling::beta_fast, ConfigKey{nullptr, "beta_fast"}),
    of(&RopeScaling::beta_slow, ConfigKey{nullptr, "beta_slow"}),
    of(&RopeScaling::mscale, ConfigKey{nullptr, "mscale"}),
    of(&RopeScaling::mscale_all_dim, ConfigKey{nullptr, "mscale_all_dim"}),
    of(&RopeScaling::attention_factor, ConfigKey{nullptr, "attention_factor"})};
static_assert(covers(scaling_fields, scaling_config_keys), "read the new field from config.json");

constexpr std::tuple experts_config_keys = {
    of(&Experts::count, by_family),
    of(&Experts::active, ConfigKey{nullptr, "num_experts_per_tok"}),
    of(&Experts::width, ConfigKey{nullptr, "moe_intermediate_size"}),
    of(&Experts::shared_width, by_family),  // n_shared_experts of that width
    of(&Experts::first_dense, by_family),
    of(&Experts::every, by_family),
    of(&Experts::router_bias, by_family),
    of(&Experts::scoring, by_family),
    of(&Experts::renormalised, ConfigKey{nullptr, "norm_topk_prob"}),
    of(&Experts::groups, ConfigKey{nullptr, "n_group"}),
    of(&Experts::active_groups, ConfigKey{nullptr, "topk_group"}),
    of(&Experts::scaling_factor, ConfigKey{nullptr, "routed_scaling_factor"})};
static_assert(covers(experts_fields, experts_config_keys), "read the new field from config.json");

constexpr std::tuple latent_config_keys = {
    of(&LatentAttention::query_rank, ConfigKey{nullptr, "q_lora_rank"}),
    of(&LatentAttention::key_value_rank, ConfigKey{nullptr, "kv_lora_rank"}),
    of(&LatentAttention::rope_dim, ConfigKey{nullptr, "qk_rope_head_dim"}),
    of(&LatentAttention::value_dim, ConfigKey{nullptr, "v_head_dim"}),
    of(&LatentAttention::interleaved, ConfigKey{nullptr, "rope_interleave"}),
    of(&LatentAttention::norm_eps, by_family)};  // 1e-6, in no key
static_assert(covers(latent_fields, latent_config_keys), "read the new field from config.json");

/// The key of the field that `check` calls `prefix` + its name; null: no such field, or none of one name.
template <class Fields, class Entries>
const char* key_of(std::string_view name, std::string_view prefix, const Fields& fields,
                   const Entries& entries, Family family) {
  if (!name.starts_with(prefix)) return nullptr;
  name.remove_prefix(prefix.size());
  const char* key = nullptr;
  for_each(fields, [&](const auto& field) {
    if (field.name != name) return;
    for_each(entries, [&](const auto& entry) {
      if (same_field(field, entry)) key = family == Family::gpt2 ? entry.said.gpt2 : entry.said.others;
    });
  });
  return key;
}
const char* config_json_key(std::string_view name, Family family) {
  if (const char* key = key_of(name, "", model_fields, model_config_keys, family)) return key;
  if (const char* key = key_of(name, "", scaling_fields, scaling_config_keys, family)) return key;
  if (const char* key = key_of(name, "experts.", experts_fields, experts_config_keys, family)) return key;
  return key_of(name, "latent_attention.", latent_fields, latent_config_keys, family);
}
}  // namespace

std::string in_config_json_words(const std::string& values, const ModelSpec& model, document::Item root,
                                 std::string& where) {
  std::string out;
  bool placed = false;
  for (std::size_t at = 0; at < values.size();) {
    const std::size_t end = std::min(values.find_first_of("= ,;", at), values.size());
    const std::string word = values.substr(at, end - at);
    const char* key =
        end < values.size() && values[end] == '=' ? config_json_key(word, model.family) : nullptr;
    out += key ? key : word;
    if (end < values.size()) out += values[end];
    at = end + 1;
    if (const auto value = key && !placed ? root.find(key) : std::nullopt) {
      where = value->where();
      placed = true;
    }
  }
  return out;
}

}  // namespace assay::spec::config_json
