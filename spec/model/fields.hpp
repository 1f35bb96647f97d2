#pragma once
// Every field of ModelSpec and of its parts, listed once: its name, its keys in Hugging Face's config.json,
// and what trainer and reference compute of it. Readers, writers, refusals and spec/model/hugging_face.md
// walk these lists; a table of its own covers them with one entry a field. So a new field is nowhere ignored
// in silence:
//   1. The static_assert under a list fails until the new field stands in that list.
//   2. Each static_assert(covers(...)) of a table then fails until the table has an entry for it.
#include <algorithm>
#include <array>
#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "spec/model/model_spec.hpp"

namespace assay::spec {

/// How a config.json's key of a field is read and written.
enum class ConfigUse {
  plain,    ///< read and written as it stands
  stated,   ///< the same; 0 stands for a file without it, and is not written
  written,  ///< written as it stands; code reads it, since more keys count
  named     ///< for errors alone: code reads and writes it
};

/// What the config.json of some model_types, or the rope table of some rope_types, says of a field.
template <class T>
struct ConfigKey {
  using Value = std::conditional_t<std::is_scalar_v<T>, T, bool>;

  const char* types;  ///< words; empty: all that no key before names
  /// Words, the first that a file has counts: older names, and last the one that is written and asked for.
  /// Empty: none, the type decides the value.
  const char* keys;
  std::optional<Value> otherwise = {};  ///< of a file without the key; none: it is asked for
  ConfigUse use = ConfigUse::plain;

  constexpr std::string_view name() const {
    const std::string_view all = keys;
    return all.substr(all.find_last_of(' ') + 1);
  }
  template <class Visit>
  void each_key(Visit visit) const {
    for (std::string_view left = keys; !left.empty();) {
      const std::size_t end = std::min(left.find(' '), left.size());
      visit(std::string(left.substr(0, end)));
      left.remove_prefix(std::min(end + 1, left.size()));
    }
  }
};

/// Whether `word` is one of the words of `text`.
constexpr bool holds_word(std::string_view text, std::string_view word) {
  if (word.empty() || word.find(' ') != word.npos) return false;
  for (std::size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || text[at - 1] == ' ') && (end == text.size() || text[end] == ' ')) return true;
  }
  return false;
}

/// The keys of a field; none: code reads and writes it, under no one key.
template <class T>
struct ConfigKeys {
  std::array<ConfigKey<T>, 4> all = {};
  std::size_t size = 0;

  constexpr ConfigKeys() = default;
  constexpr ConfigKeys(std::initializer_list<ConfigKey<T>> keys) {
    for (const auto& key : keys) all.at(size++) = key;
  }
  constexpr const ConfigKey<T>* of(std::string_view type) const {
    for (std::size_t i = 0; i < size; ++i)
      if (*all[i].types == 0 || holds_word(all[i].types, type)) return &all[i];
    return nullptr;
  }
};

/// Who computes a model. The reference may be ahead of the trainer.
enum class Computer { trainer, reference };

/// Which values of a field are computed; of any other value a model has `feature`, in words. By default every
/// value is, of a part those that its own fields say.
template <class T>
struct Computed {
  bool (*holds)(const T&) = nullptr;
  const char* feature = "";
  bool reference_ahead = false;  ///< the reference computes every value
};
/// `value` alone is computed.
template <auto value>
constexpr Computed<decltype(value)> only(const char* feature) {
  return {[](const decltype(value)& given) { return given == value; }, feature};
}

/// One field of `Part`: its key in model files and errors, whether a file must state it, what config.json
/// calls it, and what is computed of it.
template <class Part, class T>
struct Field {
  const char* name;
  T Part::*member;
  bool (*required)(const Part&);
  ConfigKeys<T> config;
  Computed<T> computed;

  constexpr Field(const char* name_, T Part::*member_, bool (*required_)(const Part&),
                  std::type_identity_t<ConfigKeys<T>> config_ = {},
                  std::type_identity_t<Computed<T>> computed_ = {})
      : name(name_), member(member_), required(required_), config(config_), computed(computed_) {}
};

/// What a table says of one field.
template <class Part, class T, class Said>
struct FieldEntry {
  T Part::*member;
  Said said;
};
template <class Part, class T, class Said>
constexpr FieldEntry<Part, T, Said> of(T Part::*member, Said said) {
  return {member, said};
}

template <class Tuple, class Visit>
constexpr void for_each(const Tuple& tuple, Visit visit) {
  std::apply([&](const auto&... each) { (visit(each), ...); }, tuple);
}

template <class A, class B>
constexpr bool same_field(const A& a, const B& b) {
  if constexpr (std::is_same_v<decltype(a.member), decltype(b.member)>)
    return a.member == b.member;
  else
    return false;
}

/// How many of `tuple` (fields or entries) are about the field of `one`.
template <class One, class Tuple>
constexpr int times(const One& one, const Tuple& tuple) {
  int count = 0;
  for_each(tuple, [&](const auto& each) { count += same_field(one, each) ? 1 : 0; });
  return count;
}

/// Whether `entries` has exactly one entry for each of `fields`.
template <class Fields, class Entries>
constexpr bool covers(const Fields& fields, const Entries& entries) {
  bool once = std::tuple_size_v<Fields> == std::tuple_size_v<Entries>;
  for_each(fields, [&](const auto& field) { once = once && times(field, entries) == 1; });
  return once;
}

struct AnyValue {
  template <class T>
  operator T() const;
};
template <class Part, std::size_t... index>
constexpr bool takes(std::index_sequence<index...>) {
  return requires { Part{(static_cast<void>(index), AnyValue{})...}; };
}
/// Whether `Part` has as many fields as the list: it can be made of that many values, not of one more.
template <class Part, class Fields>
constexpr bool lists_every_field(const Fields& fields) {
  constexpr std::size_t size = std::tuple_size_v<Fields>;
  return covers(fields, fields) && takes<Part>(std::make_index_sequence<size>()) &&
         !takes<Part>(std::make_index_sequence<size + 1>());
}

template <class Part>
constexpr bool always(const Part&) {
  return true;
}
template <class Part>
constexpr bool never(const Part&) {
  return false;
}

constexpr bool turns_by_llama3(const RopeScaling& s) { return s.kind == RopeScalingKind::llama3; }
/// Types of the keys: a rope_type.
constexpr std::tuple scaling_fields = {
    Field("factor", &RopeScaling::factor, always<RopeScaling>, {{"", "factor"}}),
    Field("low_freq_factor", &RopeScaling::low_freq_factor, turns_by_llama3, {{"llama3", "low_freq_factor"}}),
    Field("high_freq_factor", &RopeScaling::high_freq_factor, turns_by_llama3,
          {{"llama3", "high_freq_factor"}}),
    // The file's own counts before the table's, else the context.
    Field("original_context", &RopeScaling::original_context, always<RopeScaling>,
          {{"", "original_max_position_embeddings", {}, ConfigUse::written}}),
    Field("kind", &RopeScaling::kind, never<RopeScaling>, {{"", "rope_type", {}, ConfigUse::written}}),
    Field("beta_fast", &RopeScaling::beta_fast, never<RopeScaling>, {{"yarn", "beta_fast", 32}}),
    Field("beta_slow", &RopeScaling::beta_slow, never<RopeScaling>, {{"yarn", "beta_slow", 1}}),
    Field("mscale", &RopeScaling::mscale, never<RopeScaling>, {{"yarn", "mscale", 0, ConfigUse::stated}}),
    Field("mscale_all_dim", &RopeScaling::mscale_all_dim, never<RopeScaling>,
          {{"yarn", "mscale_all_dim", 0, ConfigUse::stated}}),
    Field("attention_factor", &RopeScaling::attention_factor, never<RopeScaling>,
          {{"yarn", "attention_factor", 0, ConfigUse::stated}})};
static_assert(lists_every_field<RopeScaling>(scaling_fields), "enter the new field of RopeScaling above");

constexpr std::tuple experts_fields = {
    Field("count", &Experts::count, always<Experts>,
          {{"mixtral", "num_experts num_local_experts", 8},
           {"olmoe", "num_local_experts num_experts", 64},
           {"qwen3_moe", "num_local_experts num_experts", 128},  // the first since transformers v5
           {"", "num_local_experts n_routed_experts"}}),
    Field("active", &Experts::active, always<Experts>,
          {{"mixtral", "num_experts_per_tok", 2},
           {"olmoe qwen3_moe", "num_experts_per_tok", 8},
           {"", "num_experts_per_tok"}}),
    // Of a Mixtral and an OLMoE intermediate_size.
    Field("width", &Experts::width, always<Experts>,
          {{"mixtral olmoe", "intermediate_size", {}, ConfigUse::named},
           {"qwen3_moe", "moe_intermediate_size", 768},
           {"", "moe_intermediate_size"}}),
    Field("shared_width", &Experts::shared_width, never<Experts>),  // n_shared_experts of that width
    Field("first_dense", &Experts::first_dense, never<Experts>, {{"deepseek_v3", "first_k_dense_replace"}}),
    Field("every", &Experts::every, never<Experts>, {{"qwen3_moe", "decoder_sparse_step", 1}}),
    Field("router_bias", &Experts::router_bias, never<Experts>, {{"deepseek_v3", "", true}}),
    Field("scoring", &Experts::scoring, never<Experts>, {{"deepseek_v3", "", Scoring::sigmoid}}),
    Field("renormalised", &Experts::renormalised, never<Experts>,
          {{"olmoe qwen3_moe", "norm_topk_prob", false}, {"deepseek_v3", "norm_topk_prob", true}}),
    Field("groups", &Experts::groups, never<Experts>, {{"deepseek_v3", "n_group", 8}}),
    Field("active_groups", &Experts::active_groups, never<Experts>, {{"deepseek_v3", "topk_group", 4}}),
    Field("scaling_factor", &Experts::scaling_factor, never<Experts>,
          {{"deepseek_v3", "routed_scaling_factor", 2.5}})};
static_assert(lists_every_field<Experts>(experts_fields), "enter the new field of Experts above");

constexpr std::tuple latent_fields = {
    // null: queries are not compressed.
    Field("query_rank", &LatentAttention::query_rank, always<LatentAttention>,
          {{"", "q_lora_rank", {}, ConfigUse::named}}),
    Field("key_value_rank", &LatentAttention::key_value_rank, always<LatentAttention>,
          {{"", "kv_lora_rank"}}),
    Field("rope_dim", &LatentAttention::rope_dim, always<LatentAttention>, {{"", "qk_rope_head_dim"}}),
    Field("value_dim", &LatentAttention::value_dim, always<LatentAttention>, {{"", "v_head_dim"}}),
    // As in transformers, null is false.
    Field("interleaved", &LatentAttention::interleaved, never<LatentAttention>,
          {{"", "rope_interleave", {}, ConfigUse::written}}),
    Field("norm_eps", &LatentAttention::norm_eps, never<LatentAttention>)};  // 1e-6, in no key
static_assert(lists_every_field<LatentAttention>(latent_fields),
              "enter the new field of LatentAttention above");

inline bool turns_positions(const ModelSpec& m) { return m.positions == Positions::rope; }
inline constexpr const char* biased_types = "llama qwen3 qwen3_moe olmoe deepseek_v3";
/// Types of the keys: a model_type. Those that none names, so Mistral's, are read as Llama's.
constexpr std::tuple model_fields = {
    Field("name", &ModelSpec::name, always<ModelSpec>),  // of the file's folder
    // Names of tensors follow the family; GPT-2's matrices are stored [in, out].
    Field(
        "family", &ModelSpec::family, always<ModelSpec>, {{"", "model_type", {}, ConfigUse::named}},
        {[](const Family& family) { return family != Family::gpt2; }, "the parameter names of family gpt2"}),
    Field("vocab", &ModelSpec::vocab, always<ModelSpec>, {{"", "vocab_size"}}),
    Field("width", &ModelSpec::width, always<ModelSpec>,
          {{"gpt2", "hidden_size n_embd"}, {"", "hidden_size"}}),
    Field("layers", &ModelSpec::layers, always<ModelSpec>,
          {{"gpt2", "num_hidden_layers n_layer"}, {"", "num_hidden_layers"}}),
    Field("heads", &ModelSpec::heads, always<ModelSpec>,
          {{"gpt2", "num_attention_heads n_head"}, {"", "num_attention_heads"}}),
    // Of a file without it or with null as many as heads, or the type's.
    Field("kv_heads", &ModelSpec::kv_heads, always<ModelSpec>,
          {{"gpt2", "n_head", {}, ConfigUse::named}, {"", "num_key_value_heads", {}, ConfigUse::written}}),
    // Of a file without it the width of a head, or the type's; with latent attention the sum of two.
    Field("head_dim", &ModelSpec::head_dim, always<ModelSpec>,
          {{"deepseek_v3", "head_dim", {}, ConfigUse::named}, {"", "head_dim", {}, ConfigUse::written}}),
    Field("ffn", &ModelSpec::ffn, always<ModelSpec>,
          {{"gpt2", "n_inner", {}, ConfigUse::named}, {"", "intermediate_size"}}),
    // A bound on sequences, which a run's settings are held to.
    Field("context", &ModelSpec::context, always<ModelSpec>,
          {{"gpt2", "max_position_embeddings n_positions"}, {"", "max_position_embeddings"}}),
    Field("tied_embeddings", &ModelSpec::tied_embeddings, always<ModelSpec>,
          {{"gpt2", "tie_word_embeddings", true}, {"", "tie_word_embeddings", false}}),
    Field("qk_norm", &ModelSpec::qk_norm, always<ModelSpec>, {{"qwen3 qwen3_moe olmoe", "", true}}),
    Field("norm_eps", &ModelSpec::norm_eps, always<ModelSpec>,
          {{"gpt2", "layer_norm_epsilon", 1e-5},
           {"mixtral olmoe", "rms_norm_eps", 1e-5},
           {"", "rms_norm_eps", 1e-6}}),
    // The table of rope_scaling or rope_parameters counts before the file's.
    Field("rope_theta", &ModelSpec::rope_theta, turns_positions,
          {{"gpt2", "", 1e4}, {"mixtral", "rope_theta", 1e6}, {"", "rope_theta", 1e4}}),
    Field("rope_scaling", &ModelSpec::rope_scaling, never<ModelSpec>),  // rope_scaling or rope_parameters
    Field("init_std", &ModelSpec::init_std, never<ModelSpec>, {{"", "initializer_range", 0.02}}),
    Field("norm", &ModelSpec::norm, never<ModelSpec>, {{"gpt2", "", Norm::layer_norm}},
          only<Norm::rms_norm>("layer_norm")),
    Field("mlp", &ModelSpec::mlp, never<ModelSpec>,
          {{"gpt2", "activation_function", {}, ConfigUse::named}, {"", "hidden_act", {}, ConfigUse::named}},
          {[](const Mlp& mlp) { return gated(mlp); }, "a gelu MLP"}),
    Field("positions", &ModelSpec::positions, never<ModelSpec>, {{"gpt2", "", Positions::learned}},
          only<Positions::rope>("learned positions")),
    Field("qkv_bias", &ModelSpec::qkv_bias, never<ModelSpec>,
          {{"gpt2 qwen2", "", true}, {biased_types, "attention_bias", false}}),
    Field("output_bias", &ModelSpec::output_bias, never<ModelSpec>,
          {{"gpt2", "", true}, {biased_types, "attention_bias", false}},
          only<false>("a bias of its attention output")),
    Field("mlp_bias", &ModelSpec::mlp_bias, never<ModelSpec>,
          {{"gpt2", "", true}, {"llama", "mlp_bias", false}}, only<false>("biases of its MLP")),
    Field("norm_bias", &ModelSpec::norm_bias, never<ModelSpec>, {{"gpt2", "", true}},
          only<false>("biases of its norms")),
    Field("experts", &ModelSpec::experts, never<ModelSpec>),
    Field("latent_attention", &ModelSpec::latent, never<ModelSpec>),
    Field("multi_token_layers", &ModelSpec::multi_token_layers, never<ModelSpec>,
          {{"deepseek_v3", "num_nextn_predict_layers", {}, ConfigUse::written}},
          only<std::int64_t{0}>("multi-token prediction")),
    Field("window", &ModelSpec::window, never<ModelSpec>, {{"", "sliding_window", {}, ConfigUse::named}}),
    Field("qk_norm_across_heads", &ModelSpec::qk_norm_across_heads, never<ModelSpec>, {{"olmoe", "", true}})};
static_assert(lists_every_field<ModelSpec>(model_fields), "enter the new field of ModelSpec above");

/// The list of a part.
constexpr const auto& fields_of(const RopeScaling*) { return scaling_fields; }
constexpr const auto& fields_of(const Experts*) { return experts_fields; }
constexpr const auto& fields_of(const LatentAttention*) { return latent_fields; }
constexpr const auto& fields_of(const ModelSpec*) { return model_fields; }
template <class Part>
constexpr const auto& fields = fields_of(static_cast<const Part*>(nullptr));

}  // namespace assay::spec
