#include "spec/audit/readers/megatron_rank.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

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

/// Arguments that speak of layers, stages or the pipeline and leave the first rank of several its share:
/// sizes that are read or said again, chunks that take turns, and what is computed again or in which format.
constexpr std::string_view not_of_stages[] = {"apply_query_key_layer_scaling",
                                              "cpu_offloading_num_layers",
                                              "decoder_num_layers",
                                              "ds_pipeline_enabled",
                                              "encoder_num_layers",
                                              "first_last_layers_bf16",
                                              "microbatch_group_size_per_virtual_pipeline_stage",
                                              "mtp_num_layers",
                                              "no_persist_layer_norm",
                                              "num_layers",
                                              "num_layers_at_end_in_bf16",
                                              "num_layers_at_start_in_bf16",
                                              "num_layers_per_virtual_pipeline_stage",
                                              "num_virtual_stages_per_pipeline_rank",
                                              "pipeline_model_parallel_comm_backend",
                                              "pipeline_model_parallel_size",
                                              "recompute_num_layers",
                                              "transformer_pipeline_model_parallel_size",
                                              "virtual_pipeline_model_parallel_size"};

/// Of parts that a dense decoder has not, or of what is written.
constexpr std::string_view of_others[] = {"bert_", "dino_", "log_", "moe_", "retro_", "vision_"};

/// What this version or a fork may deal layers out by: MindSpeed's "noop_layers", "num_layer_list".
bool may_deal_layers(std::string_view name) {
  if (std::find(std::begin(not_of_stages), std::end(not_of_stages), name) != std::end(not_of_stages) ||
      std::any_of(std::begin(of_others), std::end(of_others),
                  [&](std::string_view start) { return name.starts_with(start); }))
    return false;
  while (!name.empty()) {
    const std::string_view word = name.substr(0, name.find('_'));
    for (const std::string_view of : {"layer", "layers", "stage", "stages", "pipeline"})
      if (word == of) return true;
    name.remove_prefix(std::min(name.size(), word.size() + 1));
  }
  return false;
}

bool in_force(std::string_view value) {
  return value != "None" && value != "False" && value != "0" && value != "[]" && !value.empty();
}

}  // namespace

void RankArguments::read(std::string_view name, std::string_view value) {
  if (name == "add_bias_linear") all_biases_ = value == "True";
  if (name == "add_qkv_bias") qkv_biases_ = value == "True", qkv_said_ = true;
  if (name == "normalization") norm_biases_ = value == "LayerNorm" || value == "layernorm";
  if (name == "untie_embeddings_and_output_weights" && (value == "True" || value == "False"))
    tied_ = value == "False";
  if (may_deal_layers(name) || std::any_of(std::begin(of_stages), std::end(of_stages),
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
  if (!mlp_ || mlp_->experts || !tied_ || uneven_stages_ || layers * D * heads * groups * d * F * V == 0 ||
      tensor * stages == 0)
    return {};
  for (const double shared : {heads, groups, F, V})
    if (std::fmod(shared, tensor) != 0) return {};
  if (std::fmod(layers, stages) != 0) return {};
  const double q = heads * d / tensor, kv = groups * d / tensor, f = F / tensor,
               inward = gated(mlp_->mlp) ? 2 : 1, table = V / tensor * D;
  const double matrices = 2 * D * (q + kv) + (inward + 1) * D * f + (normed_queries ? 2 * d : 0);
  const auto count = [&](bool norms, bool qkv, bool all) {
    const double gains = norms ? 2 * D : D,
                 biases = (qkv || all ? q + 2 * kv : 0) + (all ? D + inward * f + D : 0),
                 last = stages > 1 ? 0 : gains + (*tied_ ? 0 : table);
    return layers / stages * (matrices + 2 * gains + biases) + table + last;
  };
  std::vector<double> out = {count(norm_biases_, qkv_biases_, all_biases_)};
  // Versions and forks without that argument have models with such biases.
  if (qkv_open_ && !all_biases_) out.push_back(count(norm_biases_, true, false));
  return out;
}

}  // namespace assay::spec::audit::megatron
