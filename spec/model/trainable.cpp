#include "spec/model/trainable.hpp"

#include "spec/error.hpp"
#include "spec/model/fields.hpp"
#include "spec/text/quote.hpp"

namespace assay::spec {

namespace {

/// Who computes a model. The reference is ahead of the trainer.
enum class Computer { trainer, reference };

/// Any value is computed.
constexpr auto any_value = [](const auto&) { return std::string(); };
/// The value changes nothing that is computed.
constexpr auto no_effect = any_value;

/// Only `value` is computed; every other one is `feature`.
template <class T>
constexpr auto only_value(T value, const char* feature) {
  return [value, feature](const T& given) { return given == value ? std::string() : feature; };
}

/// The reference computes every value; the trainer those that `said` lets pass.
constexpr auto by_reference_alone(auto said) {
  return [said](const auto& given, Computer by) {
    return by == Computer::reference ? std::string() : std::string(said(given));
  };
}

/// The first entry of a part that does not take its field's value, in that entry's words; empty: none.
template <class Part, class Entries>
std::string first_refusal(const Part& part, const Entries& entries, Computer by) {
  std::string feature;
  for_each(entries, [&](const auto& entry) {
    if (!feature.empty()) return;
    if constexpr (requires { entry.said(part.*entry.member, by); })
      feature = entry.said(part.*entry.member, by);
    else
      feature = entry.said(part.*entry.member);
  });
  return feature;
}

constexpr std::tuple computed_scaling = {of(&RopeScaling::kind, any_value),
                                         of(&RopeScaling::factor, any_value),
                                         of(&RopeScaling::low_freq_factor, any_value),
                                         of(&RopeScaling::high_freq_factor, any_value),
                                         of(&RopeScaling::original_context, any_value),
                                         of(&RopeScaling::beta_fast, any_value),
                                         of(&RopeScaling::beta_slow, any_value),
                                         of(&RopeScaling::mscale, any_value),
                                         of(&RopeScaling::mscale_all_dim, any_value),
                                         of(&RopeScaling::attention_factor, any_value)};
static_assert(covers(scaling_fields, computed_scaling), "say what the trainer computes of the new field");

constexpr auto scaling_computed = [](const std::optional<RopeScaling>& given, Computer by) {
  return given ? first_refusal(*given, computed_scaling, by) : std::string();
};

constexpr std::tuple computed_latent = {
    of(&LatentAttention::query_rank, any_value),  of(&LatentAttention::key_value_rank, any_value),
    of(&LatentAttention::rope_dim, any_value),    of(&LatentAttention::value_dim, any_value),
    of(&LatentAttention::interleaved, any_value), of(&LatentAttention::norm_eps, any_value)};
static_assert(covers(latent_fields, computed_latent), "say what the trainer computes of the new field");

constexpr auto latent_computed = [](const std::optional<LatentAttention>& given, Computer by) {
  return given ? first_refusal(*given, computed_latent, by) : std::string();
};

constexpr std::tuple computed_experts = {
    of(&Experts::count, any_value),         of(&Experts::active, any_value),
    of(&Experts::width, any_value),         of(&Experts::shared_width, any_value),
    of(&Experts::first_dense, any_value),   of(&Experts::every, any_value),
    of(&Experts::router_bias, any_value),   of(&Experts::scoring, any_value),
    of(&Experts::renormalised, any_value),  of(&Experts::groups, any_value),
    of(&Experts::active_groups, any_value), of(&Experts::scaling_factor, any_value)};
static_assert(covers(experts_fields, computed_experts), "say what the trainer computes of the new field");

constexpr auto experts_computed = [](const std::optional<Experts>& given, Computer by) {
  return given ? first_refusal(*given, computed_experts, by) : std::string();
};

/// Names of tensors follow the family; GPT-2's matrices are stored [in, out].
constexpr auto family_with_names = [](Family family) {
  return family == Family::gpt2 ? "the parameter names of family " + std::string(to_string(family)) : "";
};

constexpr auto gated_mlp = [](Mlp mlp) { return gated(mlp) ? std::string() : "a gelu MLP"; };

/// What trainer and reference compute, in the order in which a model's features are refused.
constexpr std::tuple computed = {
    of(&ModelSpec::latent, latent_computed),
    of(&ModelSpec::experts, experts_computed),
    of(&ModelSpec::multi_token_layers, only_value<std::int64_t>(0, "multi-token prediction")),
    of(&ModelSpec::norm, only_value(Norm::rms_norm, "layer_norm")),
    of(&ModelSpec::norm_bias, only_value(false, "biases of its norms")),
    of(&ModelSpec::mlp, gated_mlp),
    of(&ModelSpec::positions, only_value(Positions::rope, "learned positions")),
    of(&ModelSpec::rope_scaling, scaling_computed),
    of(&ModelSpec::qkv_bias, any_value),
    of(&ModelSpec::output_bias, only_value(false, "a bias of its attention output")),
    of(&ModelSpec::mlp_bias, only_value(false, "biases of its MLP")),
    of(&ModelSpec::family, family_with_names),
    of(&ModelSpec::vocab, any_value),
    of(&ModelSpec::width, any_value),
    of(&ModelSpec::layers, any_value),
    of(&ModelSpec::heads, any_value),
    of(&ModelSpec::kv_heads, any_value),
    of(&ModelSpec::head_dim, any_value),
    of(&ModelSpec::ffn, any_value),
    of(&ModelSpec::tied_embeddings, any_value),
    of(&ModelSpec::qk_norm, any_value),
    of(&ModelSpec::qk_norm_across_heads, any_value),
    of(&ModelSpec::norm_eps, any_value),
    of(&ModelSpec::rope_theta, any_value),
    of(&ModelSpec::init_std, any_value),
    of(&ModelSpec::window, any_value),
    of(&ModelSpec::name, no_effect),
    of(&ModelSpec::context, no_effect)  // a bound on sequences, which a run's settings are held to
};
static_assert(covers(model_fields, computed), "say what the trainer computes of the new field");

}  // namespace

std::string untrainable_feature(const ModelSpec& model) {
  return first_refusal(model, computed, Computer::trainer);
}

std::string uncomputed_feature(const ModelSpec& model) {
  return first_refusal(model, computed, Computer::reference);
}

bool trainable(Family family) { return family_with_names(family).empty(); }

std::string trainable_types() {
  // A Mistral is read as the Llama with a window that it is.
  std::string all;
  for (const Family family : choices<Family>())
    if (trainable(family)) {
      all += (all.empty() ? "" : ", ") + quote(to_string(family));
      if (family == Family::llama) all += ", \"mistral\"";
    }
  return all;
}

void require_trainable(const ModelSpec& model) {
  const std::string feature = untrainable_feature(model);
  if (feature.empty()) return;
  throw UserError(ExitCode::usage,
                  "model " + quote(model.name) + " cannot be trained: it has " + feature +
                      ", which the trainer does not compute; `assay flops` and `assay audit` take it; train "
                      "a model of type " +
                      trainable_types() +
                      " (norm = \"rms_norm\", mlp = \"swiglu\" or \"geglu\"), such as \"tiny-llama\" or "
                      "\"qwen3-0.6b\"");
}

void require_computed(const ModelSpec& model) {
  const std::string feature = uncomputed_feature(model);
  if (feature.empty()) return;
  throw UserError(ExitCode::usage, "model " + quote(model.name) + " has " + feature +
                                       ", which the reference does not compute; give it a model that "
                                       "spec/model/trainable.cpp lets pass");
}

}  // namespace assay::spec
