// Options of a config.json that change nothing of what is computed, each with its reason; any other that no
// reader asked for is refused.
#include <algorithm>
#include <array>

#include "spec/model/config_json.hpp"

namespace assay::spec::config_json {

namespace {
using document::Item;
using document::Kind;

/// What describes the file or its text and is no option of the model.
constexpr std::array descriptions = {"_name_or_path",
                                     "name_or_path",
                                     "architectures",
                                     "auto_map",
                                     "dtype",
                                     "torch_dtype",
                                     "transformers_version",
                                     "unsloth_version",
                                     "unsloth_fixed",
                                     "bos_token_id",
                                     "eos_token_id",
                                     "pad_token_id",
                                     "sep_token_id",
                                     "unk_token_id",
                                     "tokenizer_class",
                                     "task_specific_params",
                                     "id2label",
                                     "label2id",
                                     "_attn_implementation",
                                     "_experts_implementation",
                                     "attn_implementation"};

constexpr const char* of_experts = "no layer has experts";
constexpr const char* of_generation = "it concerns generation or what is returned";
constexpr const char* of_dropout = "GPT-2 is counted, not trained";
// Looked at where no reader asked for the key.
constexpr WithoutEffect of_the_file[] = {
    {"use_cache", of_generation},
    {"output_attentions", of_generation},
    {"output_hidden_states", of_generation},
    {"output_router_logits", of_generation},
    {"return_dict", of_generation},
    {"use_return_dict", of_generation},
    {"pretraining_tp", "it cuts GEMMs in parts and adds these up: the same sums"},
    {"router_aux_loss_coef", "experts.balance is the run's"},
    {"aux_loss_alpha", "experts.balance is the run's"},
    {"seq_aux", "experts.balance is the run's, over each sequence"},
    {"ep_size", "placement of experts is the run's"},
    {"max_sequence_length", "max_position_embeddings counts"},
    {"max_window_layers", "no layer has a window"},
    {"sliding_window", "no layer has a window"},
    {"head_dim", "it follows from other fields"},
    {"qk_head_dim", "it follows from other fields"},
    {"num_key_value_heads", "latent attention has none"},
    {"n_routed_experts", of_experts},
    {"num_experts_per_tok", of_experts},
    {"moe_intermediate_size", of_experts},
    {"n_shared_experts", of_experts},
    {"norm_topk_prob", of_experts},
    {"n_group", of_experts},
    {"topk_group", of_experts},
    {"routed_scaling_factor", of_experts},
    {"scoring_func", of_experts},
    {"topk_method", of_experts},
    {"moe_layer_freq", of_experts},
    {"n_ctx", "n_positions counts"},
    {"attn_pdrop", of_dropout},
    {"embd_pdrop", of_dropout},
    {"resid_pdrop", of_dropout},
    {"summary_activation", of_generation},
    {"summary_first_dropout", of_generation},
    {"summary_proj_to_labels", of_generation},
    {"summary_type", of_generation},
    {"summary_use_proj", of_generation},
};
/// Of the table of rotary positions.
constexpr const char* of_other_scaling = "this rope_type does not read it";
constexpr WithoutEffect of_rope[] = {
    {"factor", of_other_scaling},           {"low_freq_factor", of_other_scaling},
    {"high_freq_factor", of_other_scaling}, {"beta_fast", of_other_scaling},
    {"beta_slow", of_other_scaling},        {"mscale", of_other_scaling},
    {"mscale_all_dim", of_other_scaling},   {"attention_factor", of_other_scaling},
    {"truncate", of_other_scaling},         {"original_max_position_embeddings", of_other_scaling}};
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
}  // namespace

std::span<const WithoutEffect> without_effect() { return of_the_file; }
std::span<const WithoutEffect> without_effect_on_rope() { return of_rope; }

void options_left(const Fields& fields, std::span<const WithoutEffect> known, const std::string& type,
                  std::vector<std::string>& named) {
  const Item object = fields.object();
  for (std::size_t i = 0; i < object.size(); ++i) {
    const std::string& key = object.key(i);
    const Item value = object[i];
    if (fields.was_read(key) || value.is(Kind::null) ||
        std::find(descriptions.begin(), descriptions.end(), key) != descriptions.end())
      continue;
    const auto entry =
        std::find_if(known.begin(), known.end(), [&](const WithoutEffect& each) { return key == each.key; });
    // A key may hold anything, line breaks too; one that does not is shown as it stands.
    const std::string quoted = quote(value.path()),
                      shown = quoted.substr(1, quoted.size() - 2) + " = " + value.shown();
    if (entry != known.end())
      named.push_back(shown + " (" + entry->why + ")");
    else if (is_off(value))
      named.push_back(shown + " (an option that is off)");
    else
      value.refuse(shown + ": Assay computes no such option of a " + quote(type) +
                   ", nor knows it to change nothing; take a model without it, or remove the key if it is a "
                   "remark");
  }
}

}  // namespace assay::spec::config_json
