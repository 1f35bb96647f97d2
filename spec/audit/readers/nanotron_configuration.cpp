#include "spec/audit/readers/nanotron_configuration.hpp"

#include <cmath>
#include <utility>

#include "spec/audit/readers/scan.hpp"
#include "spec/audit/readers/setting_names.hpp"

namespace assay::spec::audit::nanotron {
namespace {

/// The word between quotes behind `key`; empty where it is not there.
std::string_view quoted(std::string_view text, std::string_view key) {
  const std::string_view rest = behind(text, key);
  return rest.starts_with('\'') ? rest.substr(1, rest.find('\'', 1) - 1) : std::string_view();
}

}  // namespace

void Configuration::read(std::string_view text, std::int64_t line, RecordBuilder& builder) {
  constexpr SettingName known[] = {{"dp", Setting::data_parallel},
                                   {"pp", Setting::pipeline_parallel},
                                   {"tp", Setting::tensor_parallel},
                                   {"context_parallel_size", Setting::context_parallel},
                                   {"expert_parallel_size", Setting::expert_parallel},
                                   {"sequence_length", Setting::sequence_length},
                                   {"train_steps", Setting::max_steps},
                                   {"micro_batch_size", Setting::micro},
                                   {"batch_accumulation_per_replica", Setting::accumulation}};
  for (const SettingName& one : known)
    if (const auto value = argument(text, one.name); value.data()) {
      const auto number = parse_printed(value, one.kind, one.unit, line);
      if (one.setting == Setting::max_steps) train_steps_ = number;
      builder.setting(one.setting, number);
    }
  read_model(text, line, builder);
  read_schedule(text, line, builder);
}

void Configuration::read_model(std::string_view text, std::int64_t line, RecordBuilder& builder) {
  if (text.find("model_config=") != std::string_view::npos) {
    model_ = {};
    model_.llama = text.find("model_config=LlamaConfig(") != std::string_view::npos;
    model_.qwen = text.find("model_config=Qwen2Config(") != std::string_view::npos;
  }
  constexpr std::pair<std::string_view, std::optional<Printed> Model::*> known[] = {
      {"hidden_size", &Model::width},         {"num_hidden_layers", &Model::layers},
      {"num_attention_heads", &Model::heads}, {"num_key_value_heads", &Model::kv_heads},
      {"intermediate_size", &Model::ffn},     {"vocab_size", &Model::vocab}};
  for (const auto& [name, which] : known)
    if (const auto value = argument(text, name); value.data())
      model_.*which = parse_printed(value, Kind::counted, 1, line);
  if (const auto experts = argument(text, "moe_config"); experts.data()) model_.dense = experts == "None";
  // Of the arguments behind the model's those of the tokens are the first that are read.
  if (text.find("tokens=TokensArgs(") != std::string_view::npos) state_model(line, builder);
}

void Configuration::state_model(std::int64_t line, RecordBuilder& builder) {
  const auto [llama, qwen, dense, width, layers, heads, kv_heads, ffn, vocab] = model_;
  if (!(llama || (qwen && dense)) || !width || !layers || !heads || !kv_heads || !ffn || !vocab) return;
  if (!(heads->value >= 1) || !(width->value >= heads->value)) return;
  builder.mlp(BlockMlp{Mlp::swiglu, std::nullopt});
  builder.setting(Setting::width, width);
  builder.setting(Setting::layers, layers);
  builder.setting(Setting::heads, heads);
  builder.setting(Setting::kv_heads, kv_heads);
  builder.setting(Setting::ffn, ffn);
  builder.setting(Setting::vocab, vocab);
  // models/llama.py: the width over the heads.
  builder.setting(Setting::head_dim, exactly(std::floor(width->value / heads->value), line));
}

void Configuration::read_schedule(std::string_view text, std::int64_t line, RecordBuilder& builder) {
  if (text.find("LRSchedulerArgs(") != std::string_view::npos) {
    schedule_ = {};
    builder.setting(Setting::learning_rate,
                    parse_printed(argument(text, "learning_rate"), Kind::counted, 1, line));
  }
  const std::pair<std::string_view, Argument*> steps[] = {{"lr_warmup_steps", &schedule_.warmup},
                                                          {"lr_decay_steps", &schedule_.decay},
                                                          {"lr_decay_starting_step", &schedule_.start}};
  for (const auto& [name, which] : steps)
    if (const auto value = argument(text, name); value.data()) {
      const auto number = parse_printed(value, Kind::counted, 1, line);
      *which = {number || value == "None", number ? std::optional(number->value) : std::nullopt};
    }
  if (const auto style = quoted(text, "lr_warmup_style="); !style.empty()) schedule_.warmup_style = style;
  if (const auto style = quoted(text, "lr_decay_style="); !style.empty()) schedule_.decay_style = style;
  if (const auto lowest = argument(text, "min_decay_lr"); lowest.data()) {
    schedule_.lowest = parse_printed(lowest, Kind::counted, 1, line);
    state_schedule(line, builder);
  }
}

/// helpers.py, lr_scheduler_builder: from 0 up to the highest rate over the warm-up, at which it stays until
/// the decay starts, where the warm-up ends unless said otherwise; the decay is as long as the rest of the
/// run, less the step at which it starts where that is said.
void Configuration::state_schedule(std::int64_t line, RecordBuilder& builder) {
  const Schedule& s = schedule_;
  if (!s.warmup.printed || !s.decay.printed || !s.start.printed || !s.lowest || s.decay_style.empty()) return;
  const double warmup = s.warmup.value.value_or(0), start = s.start.value.value_or(warmup);
  if ((warmup > 0 && s.warmup_style != "linear") || start < warmup || (!s.decay.value && !train_steps_))
    return;
  const double length =
      s.decay.value ? *s.decay.value : train_steps_->value - warmup - s.start.value.value_or(0);
  if (!(length > 0)) return;
  builder.name(&RunRecord::schedule, (start > warmup ? "wsd-" : "") + s.decay_style);
  builder.setting(Setting::learning_rate_min, s.lowest);
  builder.setting(Setting::warmup_steps, exactly(warmup, line));
  builder.setting(Setting::decay_steps, exactly(start + length, line));
  if (start > warmup) builder.setting(Setting::wsd_decay_steps, exactly(length, line));
}

}  // namespace assay::spec::audit::nanotron
