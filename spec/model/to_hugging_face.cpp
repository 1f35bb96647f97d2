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
  void add(std::string_view key, Json json) { entries_.emplace_back(key, std::move(json.text)); }
  void add(std::string_view key, std::int64_t number) { add(key, Json{std::to_string(number)}); }
  void add(std::string_view key, double number) { add(key, Json{json_real(number)}); }
  /// A flag that stands for several fields is on where all of them are.
  void add(std::string_view key, bool holds) {
    const auto before = std::ranges::find(entries_, key, [](const auto& entry) { return entry.first; });
    if (before == entries_.end())
      add(key, Json{holds ? "true" : "false"});
    else if (!holds)
      before->second = "false";
  }
  void add(std::string_view key, std::string_view text) { add(key, Json{json_string(text)}); }
  void add(std::string_view key, const char* text) { add(key, std::string_view(text)); }
  template <class Choice>
  requires std::is_enum_v<Choice>
  void add(std::string_view key, Choice choice) { add(key, to_string(choice)); }
  void add(std::string_view key, std::optional<std::int64_t> number) {
    add(key, Json{number ? std::to_string(*number) : "null"});
  }
  /// The fields of a part that stand in a file of `type` as they are (spec/model/fields.hpp).
  template <class Part>
  void add_plain(const Part& part, std::string_view type) {
    for_each(fields<Part>, [&](const auto& field) {
      const auto& value = part.*field.member;
      const auto* stated = field.config.of(type);
      if constexpr (std::is_scalar_v<std::remove_cvref_t<decltype(value)>>)
        if (stated && stated->use != ConfigUse::named && !stated->name().empty() &&
            (stated->use != ConfigUse::stated || value != std::remove_cvref_t<decltype(value)>{}))
          add(stated->name(), value);
    });
  }
  std::string json(int indent = 2) const {
    const std::string blanks(static_cast<std::size_t>(indent), ' ');
    std::string out = "{";
    for (std::size_t i = 0; i < entries_.size(); ++i)
      out += (i ? ",\n" : "\n") + blanks + json_string(entries_[i].first) + ": " + entries_[i].second;
    return out + "\n" + blanks.substr(2) + "}";
  }

 private:
  std::vector<std::pair<std::string_view, std::string>> entries_;
};

const char* torch_name(std::string_view dtype) {
  if (dtype == "BF16") return "bfloat16";
  if (dtype == "F16") return "float16";
  return dtype == "F64" ? "float64" : "float32";
}

void write_rope(const ModelSpec& m, JsonObject& out) {
  if (!m.rope_scaling) return;
  JsonObject rope;
  rope.add_plain(*m.rope_scaling, to_string(m.rope_scaling->kind));
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
  out.add("qk_nope_head_dim", head_dim - a.rope_dim);
  out.add_plain(a, to_string(Family::deepseek_v3));
}

void write_experts(const ModelSpec& m, std::string_view type, JsonObject& out) {
  if (type == "deepseek_v3" && !m.experts) return out.add("first_k_dense_replace", m.layers);
  if (!m.experts) return;
  const Experts& e = *m.experts;
  out.add_plain(e, type);
  if (type == "qwen3_moe") {
    std::string dense;
    for (std::int64_t layer = 0; layer < e.first_dense; ++layer)
      dense += (layer ? ", " : "") + std::to_string(layer);
    out.add("mlp_only_layers", Json{"[" + dense + "]"});
  }
  if (type == "deepseek_v3")
    out.add("n_shared_experts", e.width > 0 ? e.shared_width / e.width : std::int64_t{0});
}

/// Whether every layer has experts, so that the width of a dense MLP says nothing.
bool all_sparse(const ModelSpec& m) { return m.experts && m.sparse_layers() == m.layers; }

/// Inner width of the MLPs; of the classes that have no key of its own for experts, theirs.
std::int64_t intermediate_size(const ModelSpec& m, std::string_view type) {
  const bool of_experts = type == "mixtral" || type == "olmoe" || m.ffn < 1;
  return all_sparse(m) && of_experts ? m.experts->width : m.ffn;
}

std::string config_of(ModelSpec m, const ModelClass& as, std::string_view dtype, const TokenIds& ids) {
  const std::string_view type = as.type;
  JsonObject out;
  out.add("architectures", Json{"[" + json_string(as.name) + "]"});
  out.add("model_type", type);
  out.add("torch_dtype", torch_name(dtype));
  m.ffn = intermediate_size(m, type);
  out.add_plain(m, type);
  if (type == "deepseek_v3" && m.latent) write_latent(*m.latent, m.head_dim, out);
  out.add("hidden_act", m.mlp == Mlp::geglu ? "gelu_pytorch_tanh" : "silu");
  write_rope(m, out);
  write_window(m, type, out);
  write_experts(m, type, out);
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
