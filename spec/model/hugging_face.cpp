// Reads a model from Hugging Face's config.json. Absent keys take the defaults of transformers' LlamaConfig
// and Qwen3Config (v4.57 and v5, read 2026-11-21); whatever the spec does not have is refused by name.
#include <nlohmann/json.hpp>

#include "spec/error.hpp"
#include "spec/model/model_spec.hpp"
#include "spec/text/quote.hpp"

namespace assay::spec {

namespace {
using Json = nlohmann::json;

/// A value in an error message; containers by kind only, as they may be deep.
std::string shown(const Json& value) {
  return value.is_structured() ? std::string(value.type_name()) : quote(value.dump());
}

/// Typed access to one JSON object, with errors that name file and key.
class Fields {
 public:
  Fields(const Json& object, std::string origin) : object_(object), origin_(std::move(origin)) {}

  [[noreturn]] void refuse(const std::string& what) const {
    throw UserError(ExitCode::usage, origin_ + ": " + what);
  }
  /// The value, or null when the key is absent or holds null.
  const Json* find(const char* key) const {
    const auto found = object_.find(key);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
  }
  std::int64_t integer(const char* key) const {
    const Json* value = find(key);
    if (!value) refuse(quote(key) + " is missing; this is not a complete config.json");
    if (!value->is_number_integer()) refuse(quote(key) + " must be an integer, not " + shown(*value));
    if (value->is_number_unsigned() && value->get<std::uint64_t>() > std::uint64_t{INT64_MAX})
      refuse(quote(key) + " is too large: " + shown(*value));
    return value->get<std::int64_t>();
  }
  std::int64_t integer(const char* key, std::int64_t otherwise) const {
    return find(key) ? integer(key) : otherwise;
  }
  double real(const char* key) const {
    const Json* value = find(key);
    if (!value) refuse(quote(key) + " is missing; this is not a complete config.json");
    if (!value->is_number()) refuse(quote(key) + " must be a number, not " + shown(*value));
    return value->get<double>();
  }
  double real(const char* key, double otherwise) const { return find(key) ? real(key) : otherwise; }
  bool flag(const char* key, bool otherwise) const {
    const Json* value = find(key);
    if (!value) return otherwise;
    if (!value->is_boolean()) refuse(quote(key) + " must be true or false, not " + shown(*value));
    return value->get<bool>();
  }
  std::string word(const char* key, const std::string& otherwise) const {
    const Json* value = find(key);
    if (!value) return otherwise;
    if (!value->is_string()) refuse(quote(key) + " must be a string, not " + shown(*value));
    return value->get<std::string>();
  }

 private:
  const Json& object_;
  std::string origin_;
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
  const bool window_used = fields.flag("use_sliding_window", fields.find("sliding_window") != nullptr);
  if (window_used)
    fields.refuse("\"use_sliding_window\": a sliding attention window" + std::string(not_in_spec));
  if (const Json* types = fields.find("layer_types")) {
    if (!types->is_array()) fields.refuse("\"layer_types\" must be a list");
    for (const Json& type : *types)
      if (type != "full_attention") fields.refuse("layer type " + shown(type) + not_in_spec);
  }
  if (fields.real("partial_rotary_factor", 1) != 1)
    fields.refuse("\"partial_rotary_factor\" other than 1" + std::string(not_in_spec));
  if (fields.find("quantization_config"))
    fields.refuse("\"quantization_config\": quantised weights" + std::string(not_in_spec));
}

/// rope_theta and the scaling, from the top level and `rope_scaling` (transformers v4) or `rope_parameters`
/// (v5).
void read_rope(const Json& object, const Fields& fields, const std::string& origin, ModelSpec& model) {
  model.rope_theta = fields.real("rope_theta", 10000);
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    const Json* table = fields.find(key);
    if (!table) continue;
    if (!table->is_object()) fields.refuse(quote(key) + " must be an object");
    const Fields rope(object.at(key), origin + ": " + key);
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
  Json object;
  try {
    object = Json::parse(text);
  } catch (const Json::parse_error& error) {
    throw UserError(ExitCode::usage, origin + ": not JSON: byte " + std::to_string(error.byte) +
                                         " cannot be read; give the config.json of a Hugging Face model");
  } catch (const Json::out_of_range&) {
    throw UserError(ExitCode::usage, origin + ": a number in it exceeds what a double can hold");
  }
  const Fields fields(object, origin);
  if (!object.is_object()) fields.refuse("not a JSON object; give the config.json of a Hugging Face model");
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
  read_rope(object, fields, origin, model);
  model.init_std = fields.real("initializer_range", 0.02);
  check(model);
  return model;
}

}  // namespace assay::spec
