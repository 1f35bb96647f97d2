#include "spec/audit/readers/megatron_counted.hpp"

#include <algorithm>
#include <iterator>

#include "spec/audit/readers/scan.hpp"

namespace assay::spec::audit::megatron {
namespace {

/// Words in the names of arguments that may make parameters, in this version or a fork.
constexpr std::string_view of_parameters[] = {
    "adapter",  "attention", "bias",    "connection", "connections", "embedding", "embeddings",
    "gate",     "hyper",     "indexer", "layernorm",  "lora",        "norm",      "normalization",
    "residual", "retriever", "sink",    "softmax",    "spec",        "streams"};

/// Arguments with such a word that make none, of a decoder with rotary positions: how things are computed,
/// started or written, and what other arguments are read for.
constexpr std::string_view of_no_parameters[] = {"account_for_embedding_in_pipeline_split",
                                                 "add_bias_linear",
                                                 "add_position_embedding",
                                                 "add_qkv_bias",
                                                 "apply_layernorm_1p",
                                                 "apply_residual_connection_post_layernorm",
                                                 "attention_backend",
                                                 "attention_dropout",
                                                 "attention_softmax_in_fp32",
                                                 "bias_dropout_fusion",
                                                 "bias_gelu_fusion",
                                                 "bias_swiglu_fusion",
                                                 "clone_scatter_output_in_embedding",
                                                 "defer_embedding_wgrad_compute",
                                                 "embedding_init_method_std",
                                                 "fp32_residual_connection",
                                                 "group_query_attention",
                                                 "masked_softmax_fusion",
                                                 "max_position_embeddings",
                                                 "no_persist_layer_norm",
                                                 "norm_epsilon",
                                                 "num_attention_heads",
                                                 "position_embedding_type",
                                                 "standalone_embedding_stage",
                                                 "untie_embeddings_and_output_weights",
                                                 "use_rotary_position_embeddings"};

/// Of parts that a dense decoder has not: experts, encoders of other models, latent attention's widths,
/// relative positions. What turns these parts on is looked for by its own name.
constexpr std::string_view of_absent_parts[] = {"bert_", "dino_",   "kv_lora_",  "log_",
                                                "moe_",  "q_lora_", "relative_", "vision_"};

bool in_use(std::string_view value) {
  if (value == "None" || value == "False" || value == "[]" || value.empty()) return false;
  const auto number = parse_printed(value, Kind::counted, 1, 0);
  return !number || number->value != 0;
}

bool may_make_parameters(std::string_view name) {
  const auto begins = [&](std::string_view part) { return name.starts_with(part); };
  // Retro's have defaults where no retriever is added.
  if (begins("retro_")) return name == "retro_add_retriever";
  if (std::any_of(std::begin(of_absent_parts), std::end(of_absent_parts), begins) ||
      std::find(std::begin(of_no_parameters), std::end(of_no_parameters), name) != std::end(of_no_parameters))
    return false;
  while (!name.empty()) {
    const std::string_view word = name.substr(0, name.find('_'));
    if (std::find(std::begin(of_parameters), std::end(of_parameters), word) != std::end(of_parameters))
      return true;
    name.remove_prefix(std::min(name.size(), word.size() + 1));
  }
  return false;
}

}  // namespace

void CountedArguments::read(std::string_view name, std::string_view value) {
  if (name == "qk_layernorm") {
    if (value == "True" || value == "False") normed_queries_ = value == "True";
  } else if (name == "normalization") {
    with_mean_ = value == "LayerNorm" || value == "layernorm";
    norm_said_ = with_mean_ || value == "RMSNorm" || value == "rmsnorm";
  } else if (name == "softmax_type") {
    softmax_said_ = true;
    other_ = other_ || value != "vanilla";
  } else {
    // Read alone: which projections have biases is left open by the models that a count is held to.
    bias_said_ = bias_said_ || name == "add_bias_linear";
    windows_said_ = windows_said_ || name == "window_attn_skip_freq";
    other_ = other_ || (may_make_parameters(name) && in_use(value));
  }
}

bool CountedArguments::known() const {
  // A version that prints the one argument prints the other: its line is lost.
  if (windows_said_ && !softmax_said_) return false;
  // The biases of queries' and keys' norms are no part of a ModelSpec.
  return !other_ && bias_said_ && norm_said_ && normed_queries_ && !(*normed_queries_ && with_mean_);
}

}  // namespace assay::spec::audit::megatron
