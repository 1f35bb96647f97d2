// The keys of a config.json that no reader asked for, in one table. What the table does not hold is unknown
// to the class of transformers, and so changes nothing of what it computes (golden/config_keys).
#include <algorithm>
#include <span>
#include <string_view>

#include "spec/model/config_json.hpp"
#include "spec/model/fields.hpp"

namespace assay::spec::config_json {

namespace {
using document::Item;
using document::Kind;

enum class Effect {
  none,     ///< it describes the file or its text, or is about generation or how transformers computes
  of_run,   ///< a setting of the run counts in its place
  implied,  ///< says what this model type computes, or is unknown to its class
  changes   ///< changes what is computed, unless it has the one value that Assay computes
};
using enum Effect;

/// Keys of one effect, as words of a text.
struct Row {
  std::string_view keys;
  Effect effect;
  std::string_view said = "";   ///< of_run: why; implied, changes: the value that passes, as JSON
  std::string_view types = "";  ///< the types whose class knows the keys; empty: all
};

constexpr std::string_view all_but_gpt2 = "llama mistral qwen2 qwen3 mixtral qwen3_moe olmoe deepseek_v3",
                           balance = "experts.balance is the run's";
constexpr Row rows[] = {
    {"_commit_hash _name_or_path architectures bos_token_id dtype eos_token_id id2label label2id "
     "name_or_path num_labels pad_token_id problem_type sep_token_id task_specific_params tokenizer_class "
     "torch_dtype transformers_version unk_token_id unsloth_fixed unsloth_version",
     none},
    {"_attn_implementation _experts_implementation _output_attentions "
     "allow_global_per_layer_attribute_access "
     "attn_implementation chunk_size_feed_forward experts_implementation gradient_checkpointing "
     "mtp_layer_types output_attentions output_hidden_states return_dict serialize_explicit_per_layer_config "
     "use_cache use_return_dict vision_aspect_ratio vision_feature_layer vision_feature_select_strategy",
     none},
    {"assistant_confidence_threshold assistant_lookbehind bad_words_ids begin_suppress_tokens "
     "diversity_penalty do_sample early_stopping encoder_no_repeat_ngram_size encoder_repetition_penalty "
     "epsilon_cutoff eta_cutoff exponential_decay_length_penalty forced_bos_token_id forced_eos_token_id "
     "length_penalty max_length min_length no_repeat_ngram_size num_assistant_tokens "
     "num_assistant_tokens_schedule num_beam_groups num_beams num_return_sequences output_scores "
     "remove_invalid_values repetition_penalty return_dict_in_generate suppress_tokens target_lookbehind "
     "temperature top_k top_p typical_p",
     none},
    {"pretraining_tp", none, "", "llama deepseek_v3"},  // GEMMs in parts, added up: the same sums
    // Of layers that the file does not have.
    {"max_window_layers sliding_window", none, "", "qwen2 qwen3 qwen3_moe"},
    {"num_experts_per_tok moe_intermediate_size n_routed_experts n_shared_experts norm_topk_prob n_group "
     "num_local_experts topk_group routed_scaling_factor",
     none, "", "deepseek_v3"},
    {"original_max_position_embeddings", none, "", all_but_gpt2},  // rotary positions that are not scaled
    {"ep_size qk_head_dim", none, "", "deepseek_v3"},
    {"moe_layer_freq", implied, "1", "deepseek_v3"},
    {"scoring_func", implied, "\"sigmoid\"", "deepseek_v3"},
    {"topk_method", implied, "\"noaux_tc\"", "deepseek_v3"},
    {"rope_parameters rope_scaling rope_theta", none, "", "gpt2"},  // it has learned positions
    // GPT-2 is counted, not trained.
    {"attn_pdrop embd_pdrop n_ctx output_cross_attentions reorder_and_upcast_attn resid_pdrop "
     "summary_activation summary_first_dropout summary_proj_to_labels summary_type summary_use_proj",
     none, "", "gpt2"},
    {"auto_map", of_run, "code of the folder's own is not run"},
    {"router_aux_loss_coef", of_run, balance, "mixtral qwen3_moe olmoe"},
    {"output_router_logits", of_run, balance, "mixtral qwen3_moe olmoe deepseek_v3"},
    {"aux_loss_alpha", of_run, balance, "deepseek_v3"},
    {"seq_aux", of_run, "experts.balance_over is the run's", "deepseek_v3"},
    {"attention_dropout", changes, "0", all_but_gpt2},
    {"is_causal", changes, "true"},
    {"is_encoder_decoder", changes, "false"},
    {"_heterogeneity_spec decoder generator kv_sharing_modes per_layer_config quantization_config "
     "text_config",
     changes, "null"},
    {"partial_rotary_factor", changes, "1"},
    {"_rope_type_labels", changes, "null", all_but_gpt2},
    {"attention_chunk_size", changes, "null", "llama mixtral qwen3_moe olmoe deepseek_v3 gpt2"},
    {"router_jitter_noise", changes, "0", "mixtral"},
    {"clip_qkv", changes, "null", "olmoe"},
    {"add_cross_attention scale_attn_by_inverse_layer_idx", changes, "false", "gpt2"},
    {"scale_attn_weights", changes, "true", "gpt2"},
};

/// Of the table of rotary positions, by rope_type.
constexpr Row rope_rows[] = {
    {"attention_factor beta_fast beta_slow factor high_freq_factor long_factor low_freq_factor mscale "
     "mscale_all_dim original_max_position_embeddings short_factor type",
     none},  // of other types
    {"truncate", changes, "true", "yarn"},
    {"partial_rotary_factor", changes, "1"},
    {"full_attention sliding_attention", changes, "null"},  // tables of their own for some layers
};

/// Nothing, as most options that are off are written.
bool is_off(Item value) {
  switch (value.kind()) {
    case Kind::boolean:
      return !value.boolean();
    case Kind::integer:
    case Kind::real:
      return value.real() == 0;
    case Kind::text:
      return value.text().empty();
    case Kind::list:
    case Kind::object:
      return value.size() == 0;
    default:
      return true;
  }
}

bool has_value(Item value, std::string_view json) {
  if (json == "null" || json == "false" || json == "0") return is_off(value);
  if (json == "1") return (value.is(Kind::integer) || value.is(Kind::real)) && value.real() == 1;
  return value.shown() == json;
}
}  // namespace

void options_left(const Fields& fields, OptionsOf options, const std::string& type,
                  std::vector<std::string>& named) {
  const std::span<const Row> table = options == OptionsOf::file ? std::span<const Row>(rows) : rope_rows;
  const Item object = fields.object();
  const std::string within = object.path();
  for (std::size_t i = 0; i < object.size(); ++i) {
    const std::string& key = object.key(i);
    const Item value = object[i];
    if (fields.was_read(key) || value.is(Kind::null)) continue;
    const auto row = std::ranges::find_if(table, [&](const Row& each) {
      return holds_word(each.keys, key) && (each.types.empty() || holds_word(each.types, type));
    });
    const Effect effect = row == table.end() ? implied : row->effect;
    if (effect == none || (effect == of_run && is_off(value))) continue;
    if (row != table.end() && effect != of_run && has_value(value, row->said)) continue;
    // A key may hold anything, line breaks too; one that does not is shown as it stands.
    const std::string quoted = quote(within.empty() ? key : within + "." + key),
                      shown = quoted.substr(1, quoted.size() - 2);
    if (effect == changes)
      fields.faults().gather([&] {
        value.refuse(quoted + " = " + value.shown() + " of a " + quote(type) +
                     " changes what is computed, and Assay does not compute it: it passes as " +
                     std::string(row->said));
      });
    else
      named.push_back(
          shown + " = " + value.shown() + " (" +
          (effect == of_run ? std::string(row->said) : "no option of a " + quote(type) + " in transformers") +
          ")");
  }
}

}  // namespace assay::spec::config_json
