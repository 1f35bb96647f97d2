// Reads the TOML form of a model. Every field is a key of its own name.
#include <initializer_list>
#include <utility>

#include "spec/error.hpp"
#include "spec/model/model_spec.hpp"
#include "spec/text/quote.hpp"
#include "spec/text/toml.hpp"

namespace assay::spec {

namespace {

const std::vector<std::string> model_keys = {"name",
                                             "family",
                                             "vocab",
                                             "width",
                                             "layers",
                                             "heads",
                                             "kv_heads",
                                             "head_dim",
                                             "ffn",
                                             "context",
                                             "norm",
                                             "mlp",
                                             "positions",
                                             "qkv_bias",
                                             "output_bias",
                                             "mlp_bias",
                                             "norm_bias",
                                             "tied_embeddings",
                                             "qk_norm",
                                             "norm_eps",
                                             "rope_theta",
                                             "init_std",
                                             "rope_scaling",
                                             "experts",
                                             "parameters",
                                             "latent_attention",
                                             "multi_token_layers",
                                             "active_parameters",
                                             "published_parameters"};

using document::Item;

Item required(Item table, const char* key) { return table.at(key, "add it (meaning: spec/model/model.md)"); }

/// Replaces `value` when the table has the key.
void read_if_given(Item table, const char* key, bool& value) {
  if (const auto found = table.find(key)) value = found->boolean();
}
void read_if_given(Item table, const char* key, std::int64_t& value) {
  if (const auto found = table.find(key)) value = found->integer();
}
void read_if_given(Item table, const char* key, double& value) {
  if (const auto found = table.find(key)) value = found->real();
}

/// The choice whose name the text is. `what` names the field in errors.
template <class Choice>
Choice choice_from(Item name, const char* what, std::initializer_list<Choice> choices) {
  std::string all;
  for (Choice choice : choices) {
    if (name.text() == to_string(choice)) return choice;
    all += (all.empty() ? "" : ", ") + quote(to_string(choice));
  }
  name.refuse(what + (" " + quote(name.text())) + " is not known; give one of " + all);
}
template <class Choice>
void read_choice_if_given(Item table, const char* key, Choice& value, std::initializer_list<Choice> choices) {
  if (const auto found = table.find(key)) value = choice_from(*found, key, choices);
}

Item table_at(Item item, const std::vector<std::string>& keys) {
  if (!item.is(document::Kind::object)) item.wrong("a table");
  item.allow_only(keys);
  return item;
}

RopeScaling scaling_from(Item item) {
  const Item table =
      table_at(item, {"kind", "factor", "low_freq_factor", "high_freq_factor", "original_context"});
  RopeScaling scaling;
  read_choice_if_given(table, "kind", scaling.kind, {RopeScalingKind::llama3, RopeScalingKind::yarn});
  scaling.factor = required(table, "factor").real();
  if (scaling.kind == RopeScalingKind::llama3) {
    scaling.low_freq_factor = required(table, "low_freq_factor").real();
    scaling.high_freq_factor = required(table, "high_freq_factor").real();
  }
  scaling.original_context = required(table, "original_context").integer();
  return scaling;
}

Experts experts_from(Item item) {
  const Item table =
      table_at(item, {"count", "active", "width", "shared_width", "first_dense", "every", "router_bias"});
  Experts experts{.count = required(table, "count").integer(),
                  .active = required(table, "active").integer(),
                  .width = required(table, "width").integer()};
  read_if_given(table, "shared_width", experts.shared_width);
  read_if_given(table, "first_dense", experts.first_dense);
  read_if_given(table, "every", experts.every);
  read_if_given(table, "router_bias", experts.router_bias);
  return experts;
}

LatentAttention latent_from(Item item) {
  const Item table = table_at(item, {"query_rank", "key_value_rank", "rope_dim", "value_dim"});
  return LatentAttention{.query_rank = required(table, "query_rank").integer(),
                         .key_value_rank = required(table, "key_value_rank").integer(),
                         .rope_dim = required(table, "rope_dim").integer(),
                         .value_dim = required(table, "value_dim").integer()};
}

/// What a Llama does not have, and has defaults for that reason.
void read_structure(Item table, ModelSpec& model) {
  read_choice_if_given(table, "norm", model.norm, {Norm::rms_norm, Norm::layer_norm});
  read_choice_if_given(table, "mlp", model.mlp, {Mlp::swiglu, Mlp::gelu});
  read_choice_if_given(table, "positions", model.positions, {Positions::rope, Positions::learned});
  read_if_given(table, "qkv_bias", model.qkv_bias);
  read_if_given(table, "output_bias", model.output_bias);
  read_if_given(table, "mlp_bias", model.mlp_bias);
  read_if_given(table, "norm_bias", model.norm_bias);
  read_if_given(table, "multi_token_layers", model.multi_token_layers);
  if (const auto scaling = table.find("rope_scaling")) model.rope_scaling = scaling_from(*scaling);
  if (const auto experts = table.find("experts")) model.experts = experts_from(*experts);
  if (const auto latent = table.find("latent_attention")) model.latent = latent_from(*latent);
}

/// Holds the counts that a file states to those that its fields give.
void check_stated_counts(Item table, const ModelSpec& model) {
  const ParameterCounts counts = parameter_counts(model);
  const std::pair<const char*, Count> keys[] = {{"parameters", counts.total},
                                                {"published_parameters", counts.total},
                                                {"active_parameters", counts.active}};
  for (const auto& [key, count] : keys) {
    const auto stated = table.find(key);
    if (!stated) continue;
    if (stated->integer() < 0 || Count(stated->integer()) != count)
      stated->refuse(quote(key) + " states " + std::to_string(stated->integer()) + ", but the fields give " +
                     count.to_string() + "; correct one of them");
  }
}

}  // namespace

ModelSpec model_from_toml(std::string_view text, const std::string& origin) {
  const document::Tree tree = parse_toml(text, origin);
  const Item table = tree.root();
  table.allow_only(model_keys);
  const auto integer = [&](const char* key) { return required(table, key).integer(); };
  ModelSpec model;
  model.name = required(table, "name").text();
  model.family = choice_from(required(table, "family"), "family",
                             {Family::llama, Family::qwen2, Family::qwen3, Family::gpt2, Family::mixtral,
                              Family::qwen3_moe, Family::deepseek_v3});
  model.vocab = integer("vocab");
  model.width = integer("width");
  model.layers = integer("layers");
  model.heads = integer("heads");
  model.kv_heads = integer("kv_heads");
  model.head_dim = integer("head_dim");
  model.ffn = integer("ffn");
  model.context = integer("context");
  model.tied_embeddings = required(table, "tied_embeddings").boolean();
  model.qk_norm = required(table, "qk_norm").boolean();
  model.norm_eps = required(table, "norm_eps").real();
  read_structure(table, model);
  if (model.positions == Positions::rope)
    model.rope_theta = required(table, "rope_theta").real();
  else
    read_if_given(table, "rope_theta", model.rope_theta);
  read_if_given(table, "init_std", model.init_std);
  check(model);
  check_stated_counts(table, model);
  return model;
}

}  // namespace assay::spec
