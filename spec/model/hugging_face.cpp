// Reads a model from Hugging Face's config.json. Absent keys take the defaults of transformers' LlamaConfig
// and Qwen3Config (v4.57 and v5, read 2026-11-21); whatever the spec does not have is refused by name.
#include <optional>

#include "spec/error.hpp"
#include "spec/model/model_spec.hpp"
#include "spec/text/json.hpp"
#include "spec/text/quote.hpp"

namespace assay::spec {

namespace {
using document::Item;
using document::Kind;

/// Typed access to one JSON object in which null is as good as absent.
class Fields {
 public:
  explicit Fields(Item object) : object_(object) {}

  [[noreturn]] void refuse(const std::string& what) const { object_.refuse(what); }
  std::optional<Item> find(const char* key) const {
    const auto found = object_.find(key);
    return found && found->is(Kind::null) ? std::nullopt : found;
  }
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

 private:
  Item required(const char* key) const {
    constexpr const char* advice = "this is not a complete config.json";
    if (const auto value = object_.at(key, advice); !value.is(Kind::null)) return value;
    object_.refuse(quote(key) + " is null; " + advice);
  }

  Item object_;
};

constexpr const char* not_in_spec = " is not supported: the spec has no such model (spec/model/model.md)";

Family family_of(const Fields& fields) {
  const std::string type = fields.word("model_type", "");
  if (type == "llama") return Family::llama;
  if (type == "qwen3") return Family::qwen3;
  if (type.empty()) fields.refuse("\"model_type\" is missing; it must be \"llama\" or \"qwen3\"");
  fields.refuse("model_type " + quote(type) + " is not supported; the spec has \"llama\" and \"qwen3\"");
}

void refuse_what_the_spec_lacks(const Fields& fields) {
  for (const char* key : {"attention_bias", "mlp_bias"})
    if (fields.flag(key, false)) fields.refuse(quote(key) + " = true" + not_in_spec);
  if (const std::string act = fields.word("hidden_act", "silu"); act != "silu")
    fields.refuse("hidden_act " + quote(act) + not_in_spec + "; it must be \"silu\"");
  // Qwen3 files keep a window size beside use_sliding_window = false; a Llama file has neither.
  const bool window_used = fields.flag("use_sliding_window", fields.find("sliding_window").has_value());
  if (window_used)
    fields.refuse("\"use_sliding_window\": a sliding attention window" + std::string(not_in_spec));
  if (const auto types = fields.find("layer_types")) {
    if (!types->is(Kind::list)) types->wrong("an array");
    for (std::size_t i = 0; i < types->size(); ++i)
      if (const Item type = (*types)[i]; !type.is(Kind::text) || type.text() != "full_attention")
        fields.refuse("layer type " + type.shown() + not_in_spec);
  }
  if (fields.real("partial_rotary_factor", 1) != 1)
    fields.refuse("\"partial_rotary_factor\" other than 1" + std::string(not_in_spec));
  if (fields.find("quantization_config"))
    fields.refuse("\"quantization_config\": quantised weights" + std::string(not_in_spec));
}

/// rope_theta and the scaling, from the top level and `rope_scaling` (transformers v4) or `rope_parameters`
/// (v5).
void read_rope(const Fields& fields, ModelSpec& model) {
  model.rope_theta = fields.real("rope_theta", 10000);
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    const auto table = fields.find(key);
    if (!table) continue;
    const Fields rope(*table);
    model.rope_theta = rope.real("rope_theta", model.rope_theta);
    if (rope.real("partial_rotary_factor", 1) != 1)
      rope.refuse("\"partial_rotary_factor\" other than 1" + std::string(not_in_spec));
    const std::string type = rope.word("rope_type", rope.word("type", "default"));
    if (type == "default") continue;
    if (type != "llama3")
      rope.refuse("rope_type " + quote(type) + not_in_spec + "; it must be \"default\" or \"llama3\"");
    model.rope_scaling = RopeScaling{.factor = rope.real("factor"),
                                     .low_freq_factor = rope.real("low_freq_factor"),
                                     .high_freq_factor = rope.real("high_freq_factor"),
                                     .original_context = rope.integer("original_max_position_embeddings")};
  }
}

std::int64_t head_dim_of(const Fields& fields, const ModelSpec& model) {
  if (fields.find("head_dim")) return fields.integer("head_dim");
  if (model.family == Family::qwen3) return 128;
  if (model.heads < 1 || model.width % model.heads != 0)
    fields.refuse("\"head_dim\" is missing, and hidden_size " + std::to_string(model.width) +
                  " is not a multiple of num_attention_heads " + std::to_string(model.heads));
  return model.width / model.heads;
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

ModelSpec model_from_hugging_face(std::string_view text, const std::string& origin) {
  document::Source source{origin, ExitCode::usage};
  document::Node root;
  if (auto fault = read_json(text, root)) {
    fault->why += "; give the config.json of a Hugging Face model";
    source.refuse(*fault);
  }
  const document::Tree tree(std::move(source), std::move(root));
  if (!tree.root().is(Kind::object))
    tree.root().refuse("not a JSON object; give the config.json of a Hugging Face model");
  const Fields fields(tree.root());
  ModelSpec model;
  model.family = family_of(fields);
  refuse_what_the_spec_lacks(fields);
  model.name = name_of(origin);
  model.vocab = fields.integer("vocab_size");
  model.width = fields.integer("hidden_size");
  model.layers = fields.integer("num_hidden_layers");
  model.heads = fields.integer("num_attention_heads");
  model.kv_heads = fields.integer("num_key_value_heads", model.heads);
  model.head_dim = head_dim_of(fields, model);
  model.ffn = fields.integer("intermediate_size");
  model.context = fields.integer("max_position_embeddings");
  model.tied_embeddings = fields.flag("tie_word_embeddings", false);
  model.qk_norm = model.family == Family::qwen3;
  model.norm_eps = fields.real("rms_norm_eps");
  read_rope(fields, model);
  model.init_std = fields.real("initializer_range", 0.02);
  check(model);
  return model;
}

}  // namespace assay::spec
