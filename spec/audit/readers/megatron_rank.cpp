#include "spec/audit/readers/megatron_rank.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

namespace assay::spec::audit::megatron {
namespace {

/// Beginnings of arguments that give stages other layers, or other parts.
constexpr std::string_view of_stages[] = {"account_for_",
                                          "decoder_first_pipeline",
                                          "decoder_last_pipeline",
                                          "encoder_pipeline",
                                          "encoder_tensor",
                                          "num_layers_in_",
                                          "pipeline_model_parallel_layout",
                                          "pipeline_model_parallel_split",
                                          "standalone_embedding"};

bool in_force(std::string_view value) { return value != "None" && value != "False" && value != "0"; }

}  // namespace

void RankArguments::read(std::string_view name, std::string_view value) {
  if (name == "add_bias_linear") all_biases_ = value == "True";
  if (name == "add_qkv_bias") qkv_biases_ = value == "True";
  if (name == "normalization") norm_biases_ = value == "LayerNorm" || value == "layernorm";
  if (name == "untie_embeddings_and_output_weights" && (value == "True" || value == "False"))
    tied_ = value == "False";
  if (std::any_of(std::begin(of_stages), std::end(of_stages),
                  [&](std::string_view start) { return name.starts_with(start); }))
    uneven_ = uneven_ || in_force(value);
}

std::vector<double> RankArguments::counts(const RecordBuilder& builder, bool normed_queries) const {
  const auto at = [&](Setting setting) {
    const auto& number = builder.current(setting);
    return number && number->value >= 1 && number->value <= 1e8 ? number->value : 0;
  };
  const double layers = at(Setting::layers), D = at(Setting::width), heads = at(Setting::heads),
               groups = at(Setting::kv_heads), d = at(Setting::head_dim), F = at(Setting::ffn),
               V = at(Setting::vocab), tensor = at(Setting::tensor_parallel),
               stages = at(Setting::pipeline_parallel);
  if (!mlp_ || mlp_->experts || !tied_ || uneven_ || layers * D * heads * groups * d * F * V == 0 ||
      tensor * stages == 0)
    return {};
  for (const double shared : {heads, groups, F, V})
    if (std::fmod(shared, tensor) != 0) return {};
  if (std::fmod(layers, stages) != 0) return {};
  const double q = heads * d / tensor, kv = groups * d / tensor, f = F / tensor,
               inward = mlp_->mlp == Mlp::swiglu ? 2 : 1, table = V / tensor * D;
  const double matrices = 2 * D * (q + kv) + (inward + 1) * D * f + (normed_queries ? 2 * d : 0);
  const auto count = [&](bool norms, bool qkv, bool all) {
    const double gains = norms ? 2 * D : D,
                 biases = (qkv || all ? q + 2 * kv : 0) + (all ? D + inward * f + D : 0),
                 last = stages > 1 ? 0 : gains + (*tied_ ? 0 : table);
    return layers / stages * (matrices + 2 * gains + biases) + table + last;
  };
  std::vector<double> out = {count(norm_biases_, qkv_biases_, all_biases_)};
  for (const bool norms : {false, true})
    for (const auto& [qkv, all] : {std::pair(false, false), {true, false}, {true, true}})
      out.push_back(count(norms, qkv, all));
  return out;
}

}  // namespace assay::spec::audit::megatron
