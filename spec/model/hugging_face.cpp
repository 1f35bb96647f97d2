// Reads a model from Hugging Face's config.json. Absent keys take the defaults of transformers' configuration
// classes (v4.57 and v5, read 2026-11-21); whatever the spec does not have is refused by name.
#include "spec/model/hugging_face.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <set>

#include "spec/error.hpp"
#include "spec/model/fields.hpp"
#include "spec/text/json.hpp"
#include "spec/text/quote.hpp"

namespace assay::spec {

namespace {
using document::Item;
using document::Kind;

/// Typed access to one JSON object in which null is as good as absent. It keeps which keys were read, so that
/// what nobody reads can be named (`options_left`).
class Fields {
 public:
  explicit Fields(Item object) : object_(object) {}

  [[noreturn]] void refuse(const std::string& what) const { object_.refuse(what); }
  std::optional<Item> find(const char* key) const {
    const auto found = look_up(key);
    return found && found->is(Kind::null) ? std::nullopt : found;
  }
  bool has(const char* key) const { return look_up(key).has_value(); }  ///< null counts
  std::int64_t integer(const char* key) const { return required(key).integer(); }
  std::int64_t integer(const char* key, std::int64_t otherwise) const {
    const auto value = find(key);
    return value ? value->integer() : otherwise;
  }
  double real(const char* key) const { return required(key).real(); }
  double real(const char* key, double otherwise) const {
    const auto value = find(key);
    return value ? value->real() : otherwise;
  }
  bool flag(const char* key, bool otherwise) const {
    const auto value = find(key);
    return value ? value->boolean() : otherwise;
  }
  std::string word(const char* key, const std::string& otherwise) const {
    const auto value = find(key);
    return value ? value->text() : otherwise;
  }
  Item object() const { return object_; }
  bool was_read(const std::string& key) const { return read_->contains(key); }

 private:
  std::optional<Item> look_up(const char* key) const {
    read_->insert(key);
    return object_.find(key);
  }
  Item required(const char* key) const {
    constexpr const char* advice = "this is not a complete config.json";
    read_->insert(key);
    if (const auto value = object_.at(key, advice); !value.is(Kind::null)) return value;
    object_.refuse(quote(key) + " is null; " + advice);
  }

  Item object_;
  std::shared_ptr<std::set<std::string>> read_ = std::make_shared<std::set<std::string>>();
};

constexpr const char* not_in_spec = " is not supported: the spec has no such model (spec/model/model.md)";

/// The gate's activation of a geglu MLP.
constexpr const char* tanh_gelu = "gelu_pytorch_tanh";

/// Llama's layers under another name, with other defaults.
constexpr const char* mistral = "mistral";

Family family_of(const Fields& fields) {
  const std::string type = fields.word("model_type", "");
  if (type == mistral) return Family::llama;
  std::string all = quote(mistral);
  for (Family family : choices<Family>()) {
    if (type == to_string(family)) return family;
    all += ", " + quote(to_string(family));
  }
  if (type.empty()) fields.refuse("\"model_type\" is missing; it must be one of " + all);
  // Configured like a Llama, but another model: what differs stands in no field of its file.
  if (type.starts_with("gemma"))
    fields.refuse("model_type " + quote(type) +
                  ": embeddings scaled by the root of the width and norms whose gain is 1 + weight" +
                  not_in_spec + "; a Llama with Gemma's MLP has \"hidden_act\" = \"gelu_pytorch_tanh\"");
  fields.refuse("model_type " + quote(type) + " is not supported; the spec has " + all);
}

constexpr const char* sliding_layer = "sliding_attention";

bool is_mistral(const Fields& fields) { return fields.word("model_type", "") == mistral; }

/// Which layers have a window of attention.
enum class Windowed { none, some, all };

/// Of a Qwen2 or Qwen3 that uses its window.
Windowed windowed_layers_of_qwen(const Fields& fields, const ModelSpec& model) {
  std::int64_t windowed = std::max<std::int64_t>(model.layers - fields.integer("max_window_layers", 28), 0);
  if (const auto types = fields.find("layer_types")) {
    windowed = 0;
    for (std::size_t i = 0; i < types->size(); ++i) windowed += (*types)[i].text() == sliding_layer;
  }
  return windowed == 0 ? Windowed::none : windowed >= model.layers ? Windowed::all : Windowed::some;
}

/// As transformers reads the file (v5.23).
Windowed windowed_layers(const Fields& fields, const ModelSpec& model) {
  const Family family = model.family;
  if (is_mistral(fields) || family == Family::mixtral) return Windowed::all;
  const bool qwen = family == Family::qwen2 || family == Family::qwen3 || family == Family::qwen3_moe;
  // Qwen files keep a window size beside use_sliding_window = false.
  if (!fields.flag("use_sliding_window", !qwen && fields.find("sliding_window"))) return Windowed::none;
  if (!qwen || !fields.find("sliding_window")) return Windowed::some;
  return family == Family::qwen3_moe ? Windowed::all : windowed_layers_of_qwen(fields, model);
}

/// Reads the window that all layers have, and refuses one that some have and that leaves out something of
/// sequences of `longest` tokens, or else of as many as the file has positions.
void read_window(const Fields& fields, ModelSpec& model, std::optional<std::int64_t> longest) {
  constexpr std::int64_t of_mistral = 4096;
  const Windowed layers = windowed_layers(fields, model);
  if (layers == Windowed::none) return;
  const bool stated = fields.find("sliding_window").has_value(),
             missing = is_mistral(fields) && !fields.has("sliding_window");
  if (layers == Windowed::all && !stated && !missing) return;
  const std::int64_t window = stated ? fields.integer("sliding_window") : missing ? of_mistral : 0;
  if (stated && window < 1)
    fields.refuse("\"sliding_window\" = " + std::to_string(window) + " must be at least 1, or null for none");
  if (layers == Windowed::all) {
    if (window < model.context) model.window = window;
    return;
  }
  if (longest.value_or(model.context) <= window) return;
  const std::string within = window < 1 ? ""
                                        : "; sequences of up to " + std::to_string(window) +
                                              " tokens lie within it: say that they are no longer (--seq " +
                                              std::to_string(window) + ")";
  const bool flagged = fields.find("use_sliding_window").has_value();
  fields.refuse(quote(flagged ? "use_sliding_window" : "sliding_window") + ": a sliding attention window" +
                (!stated   ? " of a length that is not said"
                 : flagged ? " of some layers only"
                           : " under this model_type") +
                not_in_spec + within);
}

/// Layers of other types than full attention, or one window that all have (`read_window`).
void refuse_other_layers(const Fields& fields, Family family) {
  const auto types = fields.find("layer_types");
  if (!types) return;
  if (!types->is(Kind::list)) types->wrong("an array");
  const bool may_slide =
      (family == Family::qwen2 || family == Family::qwen3) && fields.flag("use_sliding_window", false);
  for (std::size_t i = 0; i < types->size(); ++i) {
    const Item type = (*types)[i];
    if (!type.is(Kind::text) ||
        !(type.text() == "full_attention" || (may_slide && type.text() == sliding_layer)))
      fields.refuse("layer type " + type.shown() + not_in_spec);
  }
}

void refuse_what_the_spec_lacks(const Fields& fields, Family family) {
  const bool gpt2 = family == Family::gpt2;
  const char* const key = gpt2 ? "activation_function" : "hidden_act";
  const std::string act = fields.word(key, gpt2 ? "gelu_new" : "silu");
  const auto one_of = [&](std::initializer_list<const char*> names) {
    return std::find(names.begin(), names.end(), act) != names.end();
  };
  if (gpt2 ? !one_of({"gelu_new", "gelu", "gelu_pytorch_tanh", "gelu_fast"})
           : !one_of({"silu", "swish", tanh_gelu}))
    fields.refuse(key + (" " + quote(act)) + not_in_spec + "; it must be " +
                  (gpt2 ? "\"gelu_new\" or another \"gelu\"" : "\"silu\" or " + quote(tanh_gelu)));
  // Gemma's name for it; the other families' code reads hidden_act alone.
  if (const std::string other = fields.word("hidden_activation", act); other != act)
    fields.refuse("\"hidden_activation\" " + quote(other) + " beside " + quote(key) + " " + quote(act) +
                  not_in_spec + "; state the activation in " + quote(key) + " alone");
  for (const char* feature : {"scale_attn_by_inverse_layer_idx", "add_cross_attention"})
    if (fields.flag(feature, false)) fields.refuse(quote(feature) + " = true" + not_in_spec);
  if (gpt2 && !fields.flag("scale_attn_weights", true))
    fields.refuse("\"scale_attn_weights\" = false" + std::string(not_in_spec));
  // Of GPT-2, which is counted and not trained, dropout changes nothing.
  if (!gpt2 && fields.real("attention_dropout", 0) != 0)
    fields.refuse("\"attention_dropout\" other than 0" + std::string(not_in_spec));
  refuse_other_layers(fields, family);
  if (fields.find("clip_qkv"))
    fields.refuse("\"clip_qkv\": queries, keys and values that are clipped" + std::string(not_in_spec) +
                  "; it must be null");
  if (fields.real("partial_rotary_factor", 1) != 1)
    fields.refuse("\"partial_rotary_factor\" other than 1" + std::string(not_in_spec));
  if (const auto quantized = fields.find("quantization_config")) {
    // DeepSeek-V3 is published in fp8: the same parameters, with scales beside them that are none.
    const bool published = family == Family::deepseek_v3 && quantized->is(Kind::object) &&
                           Fields(*quantized).word("quant_method", "") == "fp8";
    if (!published) fields.refuse("\"quantization_config\": quantised weights" + std::string(not_in_spec));
  }
}

/// A key that changes nothing of what is computed here, and why.
struct WithoutEffect {
  const char *key, *why;
};

/// What describes the file or its text and is no option of the model.
constexpr std::array descriptions = {"_name_or_path",
                                     "name_or_path",
                                     "architectures",
                                     "auto_map",
                                     "dtype",
                                     "torch_dtype",
                                     "transformers_version",
                                     "unsloth_version",
                                     "unsloth_fixed",
                                     "bos_token_id",
                                     "eos_token_id",
                                     "pad_token_id",
                                     "sep_token_id",
                                     "unk_token_id",
                                     "tokenizer_class",
                                     "task_specific_params",
                                     "id2label",
                                     "label2id",
                                     "_attn_implementation",
                                     "_experts_implementation",
                                     "attn_implementation"};

constexpr const char* of_experts = "no layer has experts";
constexpr const char* of_generation = "it concerns generation or what is returned";
constexpr const char* of_dropout = "GPT-2 is counted, not trained";
// Looked at where no reader asked for the key.
constexpr WithoutEffect without_effect[] = {
    {"use_cache", of_generation},
    {"output_attentions", of_generation},
    {"output_hidden_states", of_generation},
    {"output_router_logits", of_generation},
    {"return_dict", of_generation},
    {"use_return_dict", of_generation},
    {"pretraining_tp", "it cuts GEMMs in parts and adds these up: the same sums"},
    {"router_aux_loss_coef", "experts.balance is the run's"},
    {"aux_loss_alpha", "experts.balance is the run's"},
    {"seq_aux", "experts.balance is the run's, over each sequence"},
    {"ep_size", "placement of experts is the run's"},
    {"max_sequence_length", "max_position_embeddings counts"},
    {"max_window_layers", "no layer has a window"},
    {"sliding_window", "no layer has a window"},
    {"head_dim", "it follows from other fields"},
    {"qk_head_dim", "it follows from other fields"},
    {"num_key_value_heads", "latent attention has none"},
    {"n_routed_experts", of_experts},
    {"num_experts_per_tok", of_experts},
    {"moe_intermediate_size", of_experts},
    {"n_shared_experts", of_experts},
    {"norm_topk_prob", of_experts},
    {"n_group", of_experts},
    {"topk_group", of_experts},
    {"routed_scaling_factor", of_experts},
    {"scoring_func", of_experts},
    {"topk_method", of_experts},
    {"moe_layer_freq", of_experts},
    {"n_ctx", "n_positions counts"},
    {"attn_pdrop", of_dropout},
    {"embd_pdrop", of_dropout},
    {"resid_pdrop", of_dropout},
    {"summary_activation", of_generation},
    {"summary_first_dropout", of_generation},
    {"summary_proj_to_labels", of_generation},
    {"summary_type", of_generation},
    {"summary_use_proj", of_generation},
};
/// Of the table of rotary positions.
constexpr const char* of_other_scaling = "this rope_type does not read it";
constexpr WithoutEffect without_effect_on_rope[] = {
    {"factor", of_other_scaling},           {"low_freq_factor", of_other_scaling},
    {"high_freq_factor", of_other_scaling}, {"beta_fast", of_other_scaling},
    {"beta_slow", of_other_scaling},        {"mscale", of_other_scaling},
    {"mscale_all_dim", of_other_scaling},   {"attention_factor", of_other_scaling},
    {"truncate", of_other_scaling},         {"original_max_position_embeddings", of_other_scaling}};

/// Nothing, as most options that are off are written.
bool is_off(Item value) {
  switch (value.kind()) {
    case Kind::boolean:
      return !value.boolean();
    case Kind::integer:
    case Kind::real:
      return value.real() == 0;
    case Kind::text:
      return value.text().empty();
    case Kind::list:
    case Kind::object:
      return value.size() == 0;
    default:
      return true;
  }
}

/// Names the options of the file that no reader asked for. Errors: UserError for one that is not known to
/// change nothing, and is not off.
void options_left(const Fields& fields, std::span<const WithoutEffect> known, const std::string& type,
                  std::vector<std::string>& named) {
  const Item object = fields.object();
  for (std::size_t i = 0; i < object.size(); ++i) {
    const std::string& key = object.key(i);
    const Item value = object[i];
    if (fields.was_read(key) || value.is(Kind::null) ||
        std::find(descriptions.begin(), descriptions.end(), key) != descriptions.end())
      continue;
    const auto entry =
        std::find_if(known.begin(), known.end(), [&](const WithoutEffect& each) { return key == each.key; });
    const std::string shown = value.path() + " = " + value.shown();
    if (entry != known.end())
      named.push_back(shown + " (" + entry->why + ")");
    else if (is_off(value))
      named.push_back(shown + " (an option that is off)");
    else
      value.refuse(shown + ": Assay computes no such option of a " + quote(type) +
                   ", nor knows it to change nothing; take a model without it, or remove the key if it is a "
                   "remark");
  }
}

void read_scaling(const Fields& rope, ModelSpec& model) {
  const std::string type = rope.word("rope_type", rope.word("type", "default"));
  if (type == "default") return;
  RopeScaling scaling;
  if (type == "llama3") {
    scaling.low_freq_factor = rope.real("low_freq_factor");
    scaling.high_freq_factor = rope.real("high_freq_factor");
  } else if (type == "yarn") {
    scaling.kind = RopeScalingKind::yarn;
    scaling.beta_fast = rope.real("beta_fast", scaling.beta_fast);
    scaling.beta_slow = rope.real("beta_slow", scaling.beta_slow);
    scaling.mscale = rope.real("mscale", 0);
    scaling.mscale_all_dim = rope.real("mscale_all_dim", 0);
    scaling.attention_factor = rope.real("attention_factor", 0);
    if (rope.find("attention_factor") && scaling.attention_factor == 0)
      rope.refuse("\"attention_factor\" = 0 turns every query and key to zero; leave it out");
    if (!rope.flag("truncate", true)) rope.refuse("\"truncate\" = false" + std::string(not_in_spec));
  } else {
    rope.refuse("rope_type " + quote(type) + not_in_spec +
                "; it must be \"default\", \"llama3\" or \"yarn\"");
  }
  scaling.factor = rope.real("factor");
  const auto original = rope.find("original_max_position_embeddings");
  scaling.original_context = original || scaling.kind == RopeScalingKind::llama3
                                 ? rope.integer("original_max_position_embeddings")
                                 : model.context;
  model.rope_scaling = scaling;
}

/// rope_theta and the scaling, from the top level and `rope_scaling` (transformers v4) or `rope_parameters`
/// (v5).
void read_rope(const Fields& fields, ModelSpec& model, std::vector<std::string>& named) {
  model.rope_theta = fields.real("rope_theta", model.family == Family::mixtral ? 1e6 : 1e4);
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    const auto table = fields.find(key);
    if (!table) continue;
    const Fields rope(*table);
    model.rope_theta = rope.real("rope_theta", model.rope_theta);
    if (rope.real("partial_rotary_factor", 1) != 1)
      rope.refuse("\"partial_rotary_factor\" other than 1" + std::string(not_in_spec));
    read_scaling(rope, model);
    options_left(rope, without_effect_on_rope, "rope_type", named);
  }
}

std::int64_t width_per_head(const Fields& fields, const ModelSpec& model) {
  if (model.heads < 1 || model.width % model.heads != 0)
    fields.refuse("\"head_dim\" is missing, and the width " + std::to_string(model.width) +
                  " is not a multiple of the number of heads, " + std::to_string(model.heads));
  return model.width / model.heads;
}

/// Key/value heads of a file that does not name them; null stands for as many as query heads.
std::int64_t usual_key_value_heads(const Fields& fields, const ModelSpec& model) {
  if (fields.has("num_key_value_heads")) return model.heads;
  if (model.family == Family::mixtral || is_mistral(fields)) return 8;
  return model.family == Family::qwen3_moe ? 4 : model.heads;
}

/// Query and key/value heads and what projects them.
void read_attention(const Fields& fields, ModelSpec& model) {
  model.kv_heads = fields.integer("num_key_value_heads", usual_key_value_heads(fields, model));
  model.qk_norm_across_heads = model.family == Family::olmoe;
  model.qk_norm =
      model.qk_norm_across_heads || model.family == Family::qwen3 || model.family == Family::qwen3_moe;
  model.qkv_bias = model.family == Family::qwen2;
  if (fields.flag("attention_bias", false)) model.qkv_bias = model.output_bias = true;
  if (fields.find("head_dim"))
    model.head_dim = fields.integer("head_dim");
  else
    model.head_dim = model.family == Family::qwen3 ? 128 : width_per_head(fields, model);
}

void read_latent_attention(const Fields& fields, ModelSpec& model) {
  if (fields.flag("attention_bias", false))
    fields.refuse("\"attention_bias\" = true beside latent attention" + std::string(not_in_spec));
  LatentAttention latent;
  // A null rank means queries that are not compressed; a missing one means a file that is not whole.
  if (fields.find("q_lora_rank") || !fields.has("q_lora_rank"))
    latent.query_rank = fields.integer("q_lora_rank");
  latent.key_value_rank = fields.integer("kv_lora_rank");
  latent.rope_dim = fields.integer("qk_rope_head_dim");
  latent.value_dim = fields.integer("v_head_dim");
  // As in transformers, null is false.
  latent.interleaved = fields.flag("rope_interleave", !fields.has("rope_interleave"));
  const std::int64_t plain = fields.integer("qk_nope_head_dim"), most = std::int64_t{1} << 31;
  if (plain < 1 || plain >= most || latent.rope_dim >= most)
    fields.refuse("\"qk_nope_head_dim\" = " + std::to_string(plain) + " must be at least 1 and below 2^31");
  model.head_dim = plain + latent.rope_dim;
  model.kv_heads = model.heads;
  model.latent = latent;
}

/// How many leading layers the list of dense layers names. Errors: UserError when it names others.
std::int64_t leading_layers(const Fields& fields) {
  const auto layers = fields.find("mlp_only_layers");
  if (!layers) return 0;
  if (!layers->is(Kind::list)) layers->wrong("an array");
  for (std::size_t i = 0; i < layers->size(); ++i)
    if ((*layers)[i].integer() != static_cast<std::int64_t>(i))
      fields.refuse("\"mlp_only_layers\" other than the first ones" + std::string(not_in_spec));
  return static_cast<std::int64_t>(layers->size());
}

void read_experts(const Fields& fields, ModelSpec& model) {
  Experts experts;
  if (model.family == Family::mixtral) {
    experts = {.count = fields.integer("num_local_experts", 8),
               .active = fields.integer("num_experts_per_tok", 2),
               .width = model.ffn};
    if (fields.real("router_jitter_noise", 0) != 0)
      fields.refuse("\"router_jitter_noise\" other than 0" + std::string(not_in_spec));
  } else if (model.family == Family::olmoe) {
    experts = {.count = fields.integer("num_experts", 64),
               .active = fields.integer("num_experts_per_tok", 8),
               .width = model.ffn,
               .renormalised = fields.flag("norm_topk_prob", false)};
  } else if (model.family == Family::qwen3_moe) {
    const auto count = fields.integer("num_local_experts", 128);  // its name since transformers v5
    experts = {.count = fields.integer("num_experts", count),
               .active = fields.integer("num_experts_per_tok", 8),
               .width = fields.integer("moe_intermediate_size", 768),
               .first_dense = leading_layers(fields),
               .every = fields.integer("decoder_sparse_step", 1),
               .renormalised = fields.flag("norm_topk_prob", false)};
  } else {
    model.multi_token_layers = fields.integer("num_nextn_predict_layers", 0);
    if (fields.integer("first_k_dense_replace") >= model.layers) return;  // every layer is dense
    experts = {.count = fields.integer("n_routed_experts"),
               .active = fields.integer("num_experts_per_tok"),
               .width = fields.integer("moe_intermediate_size"),
               .first_dense = fields.integer("first_k_dense_replace"),
               .router_bias = true,
               .scoring = Scoring::sigmoid,
               .renormalised = fields.flag("norm_topk_prob", true),
               .groups = fields.integer("n_group", 8),
               .active_groups = fields.integer("topk_group", 4),
               .scaling_factor = fields.real("routed_scaling_factor", 2.5)};
    for (const auto& [key, only] :
         {std::pair("scoring_func", "sigmoid"), std::pair("topk_method", "noaux_tc")})
      if (const std::string given = fields.word(key, only); given != only)
        fields.refuse(quote(key) + " " + quote(given) + not_in_spec + "; it must be " + quote(only));
    const std::int64_t shared = fields.integer("n_shared_experts", 0), most = std::int64_t{1} << 31;
    if (shared < 0 || shared >= most || experts.width < 0 || experts.width >= most)
      fields.refuse("\"n_shared_experts\" and \"moe_intermediate_size\" must lie in [0, 2^31)");
    experts.shared_width = shared * experts.width;
    if (fields.integer("moe_layer_freq", 1) != 1)
      fields.refuse("\"moe_layer_freq\" other than 1" + std::string(not_in_spec));
  }
  model.experts = experts;
}

void read_gpt2(const Fields& fields, ModelSpec& model) {
  model.width = fields.integer("n_embd");
  model.layers = fields.integer("n_layer");
  model.heads = model.kv_heads = fields.integer("n_head");
  model.context = fields.integer("n_positions");
  model.head_dim = width_per_head(fields, model);
  // Beyond 2^31 the width is refused by `check`; until then four times it must not overflow.
  model.ffn = fields.integer("n_inner", std::clamp<std::int64_t>(model.width, 0, std::int64_t{1} << 31) * 4);
  model.tied_embeddings = fields.flag("tie_word_embeddings", true);
  model.norm = Norm::layer_norm;
  model.mlp = Mlp::gelu;
  model.positions = Positions::learned;
  model.qkv_bias = model.output_bias = model.mlp_bias = model.norm_bias = true;
  model.norm_eps = fields.real("layer_norm_epsilon", 1e-5);
}

/// The families that share Llama's names for what they share.
void read_llama_like(const Fields& fields, ModelSpec& model, std::vector<std::string>& named) {
  model.width = fields.integer("hidden_size");
  model.layers = fields.integer("num_hidden_layers");
  model.heads = fields.integer("num_attention_heads");
  model.ffn = fields.integer("intermediate_size");
  model.context = fields.integer("max_position_embeddings");
  model.tied_embeddings = fields.flag("tie_word_embeddings", false);
  model.mlp_bias = fields.flag("mlp_bias", false);
  if (fields.word("hidden_act", "silu") == tanh_gelu) model.mlp = Mlp::geglu;
  const bool coarser = model.family == Family::mixtral || model.family == Family::olmoe;
  model.norm_eps = fields.real("rms_norm_eps", coarser ? 1e-5 : 1e-6);
  if (model.family == Family::deepseek_v3)
    read_latent_attention(fields, model);
  else
    read_attention(fields, model);
  if (model.family == Family::mixtral || model.family == Family::qwen3_moe ||
      model.family == Family::deepseek_v3 || model.family == Family::olmoe)
    read_experts(fields, model);
  read_rope(fields, model, named);
}

/// "path/to/Qwen3-0.6B/config.json" -> "Qwen3-0.6B"
std::string name_of(const std::string& origin) {
  std::string path = origin;
  for (const std::string end : {"/config.json", "config.json"})
    if (path.size() >= end.size() && path.compare(path.size() - end.size(), end.size(), end) == 0)
      path.resize(path.size() - end.size());
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  const std::string last = path.substr(path.rfind('/') + 1);
  return last.empty() || last == "." || last == ".." ? "model" : last;
}
}  // namespace

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

/// `values` of a SpecError, "kv_heads=3 does not divide heads=8", in config.json's words; `where` becomes the
/// place of the first of them that the file holds.
std::string in_config_json_words(const std::string& values, const ModelSpec& model, Item root,
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
}  // namespace

HuggingFaceModel read_hugging_face(std::string_view text, const std::string& origin,
                                   std::optional<std::int64_t> longest) {
  document::Source source{origin, ExitCode::usage};
  document::Node root;
  if (auto fault = read_json(text, root)) {
    fault->why += "; give the config.json of a Hugging Face model";
    source.refuse(*fault);
  }
  locate_values(text, root);
  const document::Tree tree(std::move(source), std::move(root));
  if (!tree.root().is(Kind::object))
    tree.root().refuse("not a JSON object; give the config.json of a Hugging Face model");
  const Fields fields(tree.root());
  HuggingFaceModel out;
  ModelSpec& model = out.model;
  model.family = family_of(fields);
  refuse_what_the_spec_lacks(fields, model.family);
  model.name = name_of(origin);
  model.vocab = fields.integer("vocab_size");
  if (model.family == Family::gpt2)
    read_gpt2(fields, model);
  else
    read_llama_like(fields, model, out.without_effect);
  read_window(fields, model, longest);
  model.init_std = fields.real("initializer_range", 0.02);
  try {
    check(model);
  } catch (const SpecError& error) {
    // The spec's words for its sizes are not config.json's, and of several files it must be clear which.
    std::string where = origin;
    const std::string values = error.values();
    const std::string told = in_config_json_words(values, model, tree.root(), where);
    throw SpecError(error.label(), told + "; correct it in " + where + " (names: spec/model/model.md)");
  }
  options_left(fields, without_effect, fields.word("model_type", ""), out.without_effect);
  return out;
}

ModelSpec model_from_hugging_face(std::string_view text, const std::string& origin,
                                  std::optional<std::int64_t> longest) {
  return read_hugging_face(text, origin, longest).model;
}

}  // namespace assay::spec
