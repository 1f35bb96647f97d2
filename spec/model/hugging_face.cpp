// Reads a model from Hugging Face's config.json. Absent keys take the defaults of transformers' configuration
// classes (v4.57 and v5, read 2026-11-21); whatever the spec does not have is refused by name.
#include "spec/model/hugging_face.hpp"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "spec/error.hpp"
#include "spec/model/config_json.hpp"
#include "spec/model/fields.hpp"
#include "spec/model/trainable.hpp"
#include "spec/text/json.hpp"
#include "spec/text/quote.hpp"

namespace assay::spec {

namespace {
using config_json::Fields;
using config_json::is_mistral;
using config_json::mistral;
using config_json::not_in_spec;
using document::Item;
using document::Kind;

/// The gate's activation of a geglu MLP.
constexpr const char* tanh_gelu = "gelu_pytorch_tanh";

Family family_of(const Fields& fields) {
  const std::string type = fields.word("model_type", "");
  if (type == mistral) return Family::llama;
  std::string counted;
  for (Family family : choices<Family>()) {
    if (type == to_string(family)) return family;
    if (!trainable(family)) counted += (counted.empty() ? "" : ", ") + quote(to_string(family));
  }
  const std::string all = trainable_types() + ", which train, or " + counted + ", which is counted alone";
  if (type.empty()) fields.refuse("\"model_type\" is missing; it must be " + all);
  // Configured like a Llama, but another model: what differs stands in no field of its file.
  if (type.starts_with("gemma"))
    fields.refuse("model_type " + quote(type) +
                  ": embeddings scaled by the root of the width and norms whose gain is 1 + weight" +
                  not_in_spec + "; a Llama with Gemma's MLP has \"hidden_act\" = \"gelu_pytorch_tanh\"");
  fields.refuse("model_type " + quote(type) + " is not supported; the spec has " + all);
}

void refuse_what_the_spec_lacks(const Fields& fields, Family family) {
  // DeepSeek-V3 is published in fp8: the same parameters, with scales beside them that are none.
  if (const auto quantized = fields.object().find("quantization_config");
      family == Family::deepseek_v3 && quantized && quantized->is(Kind::object) &&
      Fields(*quantized, fields.faults()).word("quant_method", "") == "fp8")
    fields.find("quantization_config");
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
  config_json::refuse_other_layers(fields, family);
}

std::int64_t value_of(const Fields& file, const char* key, std::optional<std::int64_t> otherwise) {
  return otherwise ? file.integer(key, *otherwise) : file.integer(key);
}
double value_of(const Fields& file, const char* key, std::optional<double> otherwise) {
  return otherwise ? file.real(key, *otherwise) : file.real(key);
}
bool value_of(const Fields& file, const char* key, std::optional<bool> otherwise) {
  return file.flag(key, otherwise.value());
}

/// Reads the fields of a part that stand in a file of `type` as they are (spec/model/fields.hpp).
template <class Part>
void read_plain(const Fields& file, std::string_view type, Part& part) {
  for_each(fields<Part>, [&](const auto& field) {
    auto& value = part.*field.member;
    const auto* stated = field.config.of(type);
    if constexpr (std::is_scalar_v<std::remove_cvref_t<decltype(value)>>) {
      if (!stated || stated->use > ConfigUse::stated) return;
      if (stated->otherwise) value = *stated->otherwise;
      std::string key(stated->name());
      bool found = false;
      stated->each_key([&](const std::string& each) {  // all count as read
        if (file.find(each.c_str()) && !std::exchange(found, true)) key = each;
      });
      if constexpr (requires { value = value_of(file, "", stated->otherwise); })
        if (!key.empty()) value = value_of(file, key.c_str(), stated->otherwise);
    }
  });
}

std::string rope_type(const Fields& rope) { return rope.word("rope_type", rope.word("type", "default")); }

void read_scaling(const Fields& file, const Fields& rope, ModelSpec& model) {
  const std::string type = rope_type(rope);
  if (type == "default") return;
  RopeScaling scaling;
  if (type == "yarn")
    scaling.kind = RopeScalingKind::yarn;
  else if (type != "llama3")
    rope.refuse("rope_type " + quote(type) + not_in_spec +
                "; it must be \"default\", \"llama3\" or \"yarn\"");
  read_plain(rope, type, scaling);
  if (rope.find("attention_factor") && scaling.kind == RopeScalingKind::yarn && scaling.attention_factor == 0)
    rope.refuse("\"attention_factor\" = 0 turns every query and key to zero; leave it out");
  const char* const original = "original_max_position_embeddings";  // the file's counts before the table's
  scaling.original_context = file.find(original) ? file.integer(original)
                             : rope.find(original) || scaling.kind == RopeScalingKind::llama3
                                 ? rope.integer(original)
                                 : model.context;
  model.rope_scaling = scaling;
}

/// The scaling, and rope_theta where it does not stand at the top level, from `rope_scaling` (transformers
/// v4) or else `rope_parameters` (v5).
void read_rope(const Fields& fields, ModelSpec& model, std::vector<std::string>& named) {
  const auto older = fields.find("rope_scaling"), newer = fields.find("rope_parameters");
  const auto table = older && !(older->is(Kind::object) && older->size() == 0) ? older : newer;
  if (!table) return;
  if (!table->is(Kind::object)) table->wrong("an object");
  const Fields rope(*table, fields.faults());
  model.rope_theta = rope.real("rope_theta", model.rope_theta);
  read_scaling(fields, rope, model);
  config_json::options_left(rope, config_json::OptionsOf::rope, rope_type(rope), named);
}

std::int64_t width_per_head(const Fields& fields, const ModelSpec& model) {
  if (!fields.faults().none()) return 0;
  if (model.heads < 1 || model.width % model.heads != 0)
    fields.refuse("\"head_dim\" is missing, and the width " + std::to_string(model.width) +
                  " is not a multiple of the number of heads, " + std::to_string(model.heads));
  return model.width / model.heads;
}

/// Key/value heads of a file that does not name them; null stands for as many as query heads.
std::int64_t usual_key_value_heads(const Fields& fields, const ModelSpec& model) {
  if (fields.has("num_key_value_heads")) return model.heads;
  if (model.family == Family::deepseek_v3) return 128;
  if (model.family == Family::mixtral || is_mistral(fields)) return 8;
  if (model.family == Family::qwen2 || model.family == Family::qwen3) return 32;
  return model.family == Family::qwen3_moe ? 4 : model.heads;
}

/// Query and key/value heads and what projects them.
void read_attention(const Fields& fields, ModelSpec& model) {
  model.kv_heads = fields.integer("num_key_value_heads", usual_key_value_heads(fields, model));
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
  read_plain(fields, to_string(model.family), latent);
  // As in transformers, null is false.
  latent.interleaved = fields.flag("rope_interleave", !fields.has("rope_interleave"));
  const std::int64_t plain = fields.integer("qk_nope_head_dim"), most = std::int64_t{1} << 31;
  if (!fields.faults().none()) return;
  for (const auto& [key, only, usual] :
       {std::tuple("head_dim", latent.rope_dim, latent.rope_dim),
        std::tuple("num_key_value_heads", model.heads, usual_key_value_heads(fields, model))})
    if (const std::int64_t given = fields.integer(key, usual); given != only)
      fields.refuse(quote(key) + " = " + std::to_string(given) + " beside latent attention" + not_in_spec +
                    "; it must be " + std::to_string(only));
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
  if (model.family == Family::deepseek_v3) {
    model.multi_token_layers =
        fields.integer("num_nextn_predict_layers", fields.integer("num_mtp_layers", 0));
    if (fields.integer("first_k_dense_replace") >= model.layers) return;  // every layer is dense
  }
  read_plain(fields, to_string(model.family), experts);
  if (model.family == Family::mixtral || model.family == Family::olmoe) experts.width = model.ffn;
  if (model.family == Family::qwen3_moe) experts.first_dense = leading_layers(fields);
  if (model.family == Family::deepseek_v3) {
    const std::int64_t shared = fields.integer("n_shared_experts", 1), most = std::int64_t{1} << 31;
    if (shared < 0 || shared >= most || experts.width < 0 || experts.width >= most)
      fields.refuse("\"n_shared_experts\" and \"moe_intermediate_size\" must lie in [0, 2^31)");
    experts.shared_width = shared * experts.width;
  }
  model.experts = experts;
}

void read_gpt2(const Fields& fields, ModelSpec& model) {
  model.kv_heads = model.heads;
  model.head_dim = width_per_head(fields, model);
  // Beyond 2^31 the width is refused by `check`; until then four times it must not overflow.
  model.ffn = fields.integer("n_inner", std::clamp<std::int64_t>(model.width, 0, std::int64_t{1} << 31) * 4);
  model.mlp = Mlp::gelu;
}

/// The families that share Llama's names for what they share.
void read_llama_like(const Fields& fields, ModelSpec& model, std::vector<std::string>& named) {
  if (fields.word("hidden_act", "silu") == tanh_gelu) model.mlp = Mlp::geglu;
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
/// The spec's words for its sizes are not config.json's, and of several files it must be clear which.
void check_in_words_of(Item root, const ModelSpec& model, const std::string& origin, Faults& faults) {
  for (const SpecError& broken : broken_constraints(model)) {
    std::string where = origin;
    const std::string said = config_json::in_config_json_words(broken.values(), model, root, where);
    if (where == origin && !faults.none()) continue;  // of a field that follows from those before
    faults.gather([&] {
      throw SpecError(broken.label(), said + "; correct it in " + where + " (names: spec/model/model.md)");
    });
  }
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
  Faults faults;
  const Fields fields(tree.root(), faults);
  HuggingFaceModel out;
  ModelSpec& model = out.model;
  model.family = family_of(fields);
  model.name = name_of(origin);
  read_plain(fields, fields.word("model_type", ""), model);
  faults.gather([&] { refuse_what_the_spec_lacks(fields, model.family); });
  faults.gather([&] {
    if (model.family == Family::gpt2)
      read_gpt2(fields, model);
    else
      read_llama_like(fields, model, out.without_effect);
    config_json::read_window(fields, model, longest, out.without_effect);
  });
  if (faults.none()) check_in_words_of(tree.root(), model, origin, faults);
  config_json::options_left(fields, config_json::OptionsOf::file, fields.word("model_type", ""),
                            out.without_effect);
  faults.refuse();
  return out;
}

ModelSpec model_from_hugging_face(std::string_view text, const std::string& origin,
                                  std::optional<std::int64_t> longest) {
  return read_hugging_face(text, origin, longest).model;
}

}  // namespace assay::spec