// config.json of a model, as transformers reads it (v4.57 and v5.23).
#include <algorithm>
#include <array>
#include <utility>

#include "spec/error.hpp"
#include "spec/model/fields.hpp"
#include "spec/model/hugging_face.hpp"
#include "spec/text/json.hpp"
#include "spec/text/quote.hpp"

namespace assay::spec {

namespace {

// Sizes that a class refuses, or takes and cannot compute, whatever its file can state; empty where it can.
std::string any_sizes(const ModelSpec&) { return ""; }
std::string width_of_equal_parts(const ModelSpec& m) {
  if (m.width % m.heads == 0) return "";
  return "takes a hidden_size that is a multiple of the heads alone, and " + std::to_string(m.width) +
         " is none of " + std::to_string(m.heads);
}
std::string heads_as_wide_as_the_width(const ModelSpec& m) {
  if (m.heads * m.head_dim == m.width) return "";
  return "norms queries over hidden_size = " + std::to_string(m.width) + " entries, and " +
         std::to_string(m.heads) + " heads of " + std::to_string(m.head_dim) + " have " +
         std::to_string(m.heads * m.head_dim);
}

/// A class of transformers. `type`: its model_type.
struct ModelClass {
  const char *type, *name;
  Family family;
  std::string (*refusal)(const ModelSpec&);
};
// A Llama with a window is a Mistral.
constexpr ModelClass model_classes[] = {
    {"llama", "LlamaForCausalLM", Family::llama, width_of_equal_parts},
    {"mistral", "MistralForCausalLM", Family::llama, any_sizes},
    {"qwen2", "Qwen2ForCausalLM", Family::qwen2, any_sizes},
    {"qwen3", "Qwen3ForCausalLM", Family::qwen3, any_sizes},
    {"mixtral", "MixtralForCausalLM", Family::mixtral, any_sizes},
    {"qwen3_moe", "Qwen3MoeForCausalLM", Family::qwen3_moe, any_sizes},
    {"olmoe", "OlmoeForCausalLM", Family::olmoe, heads_as_wide_as_the_width},
    {"deepseek_v3", "DeepseekV3ForCausalLM", Family::deepseek_v3, any_sizes}};

/// What stands in a file as it is.
struct Json {
  std::string text;
};
Json null_for_none(std::int64_t number) { return {number > 0 ? std::to_string(number) : "null"}; }

/// Keys and JSON values, in order. The type of a value decides how it is written: a real that is whole as
/// 1.0, which classes of transformers tell from the integer 1.
class JsonObject {
 public:
  void add(const char* key, Json json) { entries_.emplace_back(key, std::move(json.text)); }
  void add(const char* key, std::int64_t number) { add(key, Json{std::to_string(number)}); }
  void add(const char* key, double number) { add(key, Json{json_real(number)}); }
  void add(const char* key, bool holds) { add(key, Json{holds ? "true" : "false"}); }
  void add(const char* key, std::string_view text) { add(key, Json{json_string(text)}); }
  void add(const char* key, const char* text) { add(key, std::string_view(text)); }
  void add(const char* key, std::optional<std::int64_t> number) {
    add(key, Json{number ? std::to_string(*number) : "null"});
  }
  std::string json(int indent = 2) const {
    const std::string blanks(static_cast<std::size_t>(indent), ' ');
    std::string out = "{";
    for (std::size_t i = 0; i < entries_.size(); ++i)
      out += (i ? ",\n" : "\n") + blanks + json_string(entries_[i].first) + ": " + entries_[i].second;
    return out + "\n" + blanks.substr(2) + "}";
  }

 private:
  std::vector<std::pair<const char*, std::string>> entries_;
};

const char* torch_name(std::string_view dtype) {
  if (dtype == "BF16") return "bfloat16";
  if (dtype == "F16") return "float16";
  return dtype == "F64" ? "float64" : "float32";
}

void write_rope(const ModelSpec& m, JsonObject& out) {
  out.add("rope_theta", m.rope_theta);
  if (!m.rope_scaling) return;
  const RopeScaling& s = *m.rope_scaling;
  JsonObject rope;
  rope.add("rope_type", to_string(s.kind));
  rope.add("factor", s.factor);
  rope.add("original_max_position_embeddings", s.original_context);
  if (s.kind == RopeScalingKind::llama3) {
    rope.add("low_freq_factor", s.low_freq_factor);
    rope.add("high_freq_factor", s.high_freq_factor);
  } else {
    rope.add("beta_fast", s.beta_fast);
    rope.add("beta_slow", s.beta_slow);
    if (s.mscale != 0) rope.add("mscale", s.mscale);
    if (s.mscale_all_dim != 0) rope.add("mscale_all_dim", s.mscale_all_dim);
    if (s.attention_factor != 0) rope.add("attention_factor", s.attention_factor);
  }
  out.add("rope_scaling", Json{rope.json(4)});
}

void write_window(const ModelSpec& m, std::string_view type, JsonObject& out) {
  const Json window = null_for_none(m.window);
  if (type == "mistral" || type == "mixtral") out.add("sliding_window", window);
  if (!type.starts_with("qwen")) return;
  out.add("use_sliding_window", m.window > 0);
  out.add("sliding_window", window);
  // From this layer on there is a window.
  out.add("max_window_layers", m.window > 0 ? std::int64_t{0} : m.layers);
}

void write_latent(const LatentAttention& a, std::int64_t head_dim, JsonObject& out) {
  out.add("q_lora_rank", null_for_none(a.query_rank));
  out.add("kv_lora_rank", a.key_value_rank);
  out.add("qk_nope_head_dim", head_dim - a.rope_dim);
  out.add("qk_rope_head_dim", a.rope_dim);
  out.add("v_head_dim", a.value_dim);
  out.add("rope_interleave", a.interleaved);
}

void write_experts(const ModelSpec& m, std::string_view type, JsonObject& out) {
  if (type == "deepseek_v3" && !m.experts) return out.add("first_k_dense_replace", m.layers);
  if (!m.experts) return;
  const Experts& e = *m.experts;
  out.add(type == "mixtral"       ? "num_local_experts"
          : type == "deepseek_v3" ? "n_routed_experts"
                                  : "num_experts",
          e.count);
  out.add("num_experts_per_tok", e.active);
  if (type != "mixtral") out.add("norm_topk_prob", e.renormalised);
  if (type == "qwen3_moe") {
    std::string dense;
    for (std::int64_t layer = 0; layer < e.first_dense; ++layer)
      dense += (layer ? ", " : "") + std::to_string(layer);
    out.add("mlp_only_layers", Json{"[" + dense + "]"});
    out.add("decoder_sparse_step", e.every);
  }
  if (type == "qwen3_moe" || type == "deepseek_v3") out.add("moe_intermediate_size", e.width);
  if (type != "deepseek_v3") return;
  out.add("first_k_dense_replace", e.first_dense);
  out.add("n_shared_experts", e.width > 0 ? e.shared_width / e.width : std::int64_t{0});
  out.add("n_group", e.groups);
  out.add("topk_group", e.active_groups);
  out.add("routed_scaling_factor", e.scaling_factor);
}

/// Whether every layer has experts, so that the width of a dense MLP says nothing.
bool all_sparse(const ModelSpec& m) { return m.experts && m.sparse_layers() == m.layers; }

/// Inner width of the MLPs; of the classes that have no key of its own for experts, theirs.
std::int64_t intermediate_size(const ModelSpec& m, std::string_view type) {
  const bool of_experts = type == "mixtral" || type == "olmoe" || m.ffn < 1;
  return all_sparse(m) && of_experts ? m.experts->width : m.ffn;
}

std::string config_of(const ModelSpec& m, const ModelClass& as, std::string_view dtype, const TokenIds& ids) {
  const std::string_view type = as.type;
  JsonObject out;
  out.add("architectures", Json{"[" + json_string(as.name) + "]"});
  out.add("model_type", type);
  out.add("torch_dtype", torch_name(dtype));
  out.add("vocab_size", m.vocab);
  out.add("hidden_size", m.width);
  out.add("intermediate_size", intermediate_size(m, type));
  out.add("num_hidden_layers", m.layers);
  out.add("num_attention_heads", m.heads);
  out.add("num_key_value_heads", m.kv_heads);
  if (type == "deepseek_v3" && m.latent)
    write_latent(*m.latent, m.head_dim, out);
  else
    out.add("head_dim", m.head_dim);
  out.add("max_position_embeddings", m.context);
  out.add("hidden_act", m.mlp == Mlp::geglu ? "gelu_pytorch_tanh" : "silu");
  out.add("rms_norm_eps", m.norm_eps);
  out.add("initializer_range", m.init_std);
  out.add("tie_word_embeddings", m.tied_embeddings);
  if (type != "qwen2" && type != "mistral" && type != "mixtral")
    out.add("attention_bias", m.qkv_bias && m.output_bias);
  if (type == "llama") out.add("mlp_bias", m.mlp_bias);
  write_rope(m, out);
  write_window(m, type, out);
  write_experts(m, type, out);
  if (type == "deepseek_v3") out.add("num_nextn_predict_layers", m.multi_token_layers);
  out.add("bos_token_id", ids.begin);
  out.add("eos_token_id", ids.end);
  out.add("pad_token_id", ids.pad);
  return out.json() + "\n";
}

/// Fields in which two models differ, but for name and family: "qk_norm, window".
std::string differing_fields(const ModelSpec& a, const ModelSpec& b) {
  std::string names;
  for_each(model_fields, [&](const auto& field) {
    const std::string name = field.name;
    if (name != "name" && name != "family" && !(a.*field.member == b.*field.member))
      names += (names.empty() ? "" : ", ") + name;
  });
  return names;
}

}  // namespace

HuggingFaceConfig to_hugging_face(const ModelSpec& model, std::string_view dtype, const TokenIds& ids) {
  std::string lacking;  // of the class that is nearest
  const auto lacks = [&](const ModelClass& each, const std::string& what) {
    if (lacking.empty()) lacking = ": a " + quote(each.type) + " " + what;
  };
  for (const bool own : {true, false}) {
    for (const ModelClass& each : model_classes) {
      if ((each.family == model.family) != own) continue;
      HuggingFaceConfig out{config_of(model, each, dtype, ids), {}};
      try {
        out.model = model_from_hugging_face(out.json, "config.json");
      } catch (const std::invalid_argument&) {  // what this class refuses
        continue;
      } catch (const UserError&) {
        continue;
      }
      ModelSpec expected = model;
      if (all_sparse(model)) expected.ffn = out.model.ffn;
      // As long as the longest sequence it leaves nothing out, and is read as none.
      if (expected.window >= expected.context) expected.window = 0;
      if (const std::string differing = differing_fields(expected, out.model); !differing.empty())
        lacks(each, "has another " + differing);
      else if (const std::string refusal = each.refusal(model); !refusal.empty())
        lacks(each, refusal);
      else {
        out.model.name = model.name;
        return out;
      }
    }
  }
  throw UserError(ExitCode::usage, "no class of Hugging Face transformers computes model " +
                                       quote(model.name) + lacking +
                                       "; the classes are those of spec/model/hugging_face.md");
}

std::string generation_config(const TokenIds& ids) {
  JsonObject out;
  out.add("_from_model_config", true);
  out.add("bos_token_id", ids.begin);
  out.add("eos_token_id", ids.end);
  out.add("pad_token_id", ids.pad);
  out.add("use_cache", true);
  return out.json() + "\n";
}

}  // namespace assay::spec
