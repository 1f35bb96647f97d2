#include "spec/audit/readers/megatron_header.hpp"

#include "spec/audit/readers/scan.hpp"
#include "spec/audit/readers/setting_names.hpp"

namespace assay::spec::audit::megatron {
namespace {

constexpr SettingName arguments[] = {{"micro_batch_size", Setting::micro},
                                     {"global_batch_size", Setting::sequences},
                                     {"seq_length", Setting::sequence_length},
                                     {"num_layers", Setting::layers},
                                     {"hidden_size", Setting::width},
                                     {"ffn_hidden_size", Setting::ffn},
                                     {"num_attention_heads", Setting::heads},
                                     {"kv_channels", Setting::head_dim},
                                     {"padded_vocab_size", Setting::vocab},
                                     {"train_iters", Setting::max_steps},
                                     {"lr", Setting::learning_rate},
                                     {"min_lr", Setting::learning_rate_min},
                                     {"lr_decay_iters", Setting::decay_steps},
                                     {"lr_wsd_decay_iters", Setting::wsd_decay_steps},
                                     {"data_parallel_size", Setting::data_parallel},
                                     {"tensor_model_parallel_size", Setting::tensor_parallel},
                                     {"pipeline_model_parallel_size", Setting::pipeline_parallel},
                                     {"context_parallel_size", Setting::context_parallel},
                                     {"expert_model_parallel_size", Setting::expert_parallel},
                                     {"world_size", Setting::gpus}};

}  // namespace

bool Header::starts(std::string_view text) {
  return ends_arguments(text) || text.find("using world size: ") != std::string_view::npos;
}

bool Header::ends_arguments(std::string_view text) {
  return text.find("end of arguments") != std::string_view::npos;
}

void Header::read(std::string_view text, std::int64_t line, RecordBuilder& builder) {
  const auto number = [&](std::string_view rest) {
    return parse_printed(number_token(rest), Kind::counted, 1, line);
  };
  if (const std::size_t dots = text.find(" .."); dots != std::string_view::npos) {
    read_argument(trimmed(text.substr(0, dots)), text.substr(dots), line, builder);
  } else if (ends_arguments(text)) {
    no_ramp_ = !ramp_stated_;
    rank_.end(state_mlp(builder));
    mlp_ = MlpArguments();
    if (counted_.normed_queries()) builder.qk_norm(*counted_.normed_queries());
    if (counted_.norm()) builder.norm(*counted_.norm());
    if (grouped_ == false) builder.setting(Setting::kv_heads, builder.current(Setting::heads));
    schedule_.end(builder);
    schedule_ = ScheduleArguments();
  } else if (const auto world = behind(text, "using world size: "); world.data()) {
    builder.setting(Setting::gpus, number(world));
    constexpr SettingName sizes[] = {{"data-parallel size: ", Setting::data_parallel},
                                     {"data-parallel-size: ", Setting::data_parallel},
                                     {"tensor-model-parallel size: ", Setting::tensor_parallel},
                                     {"tensor-model-parallel-size: ", Setting::tensor_parallel},
                                     {"pipeline-model-parallel size: ", Setting::pipeline_parallel},
                                     {"pipeline-model-parallel-size: ", Setting::pipeline_parallel},
                                     {"context-parallel size: ", Setting::context_parallel}};
    for (const SettingName& size : sizes)
      if (const auto rest = behind(world, size.name); rest.data())
        builder.setting(size.setting, number(rest));
  } else if (const auto micro = behind(text, "batches to constant "); micro.data()) {
    builder.setting(Setting::accumulation, number(micro));
  } else if (const auto vocab = behind(text, "dummy tokens (new size: "); vocab.data()) {
    builder.setting(Setting::vocab, number(vocab));
  } else if (const auto total = behind(text, "Total number of parameters in billions: "); total.data()) {
    builder.setting(Setting::parameters, parse_printed(number_token(total), Kind::measured, 1e9, line));
  } else if (const auto held = behind(text, "parameters on (tensor, pipeline) model parallel rank (0, 0): ");
             held.data()) {
    if (rank_holds_all(builder))
      builder.setting(Setting::parameters, number(held));
    else if (const auto count = number(held); count && parameters_known(builder))
      builder.first_rank({*count, rank_.counts(builder, *counted_.normed_queries())});
  } else if (const auto loaded = behind(text, "successfully loaded checkpoint"); loaded.data()) {
    const auto iteration = number(behind(loaded, "at iteration "));
    if (iteration && iteration->value > 0 && iteration->value < 1e15)
      builder.restart(static_cast<std::int64_t>(iteration->value));
  }
}

bool Header::rank_holds_all(const RecordBuilder& builder) const {
  const auto is_one = [&](Setting setting) {
    const auto& size = builder.current(setting);
    return size && size->value == 1;
  };
  return parameters_known(builder) && is_one(Setting::tensor_parallel) && is_one(Setting::pipeline_parallel);
}

bool Header::parameters_known(const RecordBuilder& builder) const {
  const auto& experts = builder.current(Setting::expert_parallel);
  // Of positions that are learned, "max_position_embeddings" says how many; BERT and T5 learn them, and have
  // heads and blocks that no argument tells.
  return rotary_ && !has_decoder_ && counted_.known() && (!experts || experts->value == 1);
}

std::optional<BlockMlp> Header::state_mlp(RecordBuilder& builder) const {
  const auto &layers = builder.current(Setting::layers), &ffn = builder.current(Setting::ffn);
  const auto held = [](const std::optional<Printed>& n) { return n && n->value >= 1 && n->value <= 1e9; };
  if (!held(layers) || !held(ffn)) return std::nullopt;
  const auto mlp =
      mlp_.stated(static_cast<std::int64_t>(layers->value), static_cast<std::int64_t>(ffn->value));
  builder.mlp(mlp);
  return mlp;
}

void Header::read_argument(std::string_view name, std::string_view rest, std::int64_t line,
                           RecordBuilder& builder) {
  while (!rest.empty() && (rest[0] == ' ' || rest[0] == '.')) rest.remove_prefix(1);
  if (rest.starts_with(':')) return;  // "    evaluate .....: (8312.11, 8312.53)", of a timer
  const std::string_view value = trimmed(rest);
  if (mlp_.read(name, value)) state_mlp(builder);
  schedule_.read(name, value, line, builder);
  counted_.read(name, value);
  if (name == "deepspeed") deepspeed_ = value == "True";
  if (name == "ds_pipeline_enabled" || (name == "deepspeed" && !deepspeed_)) {
    pipeline_engine_ = deepspeed_ && value == "True";
    if (pipeline_engine_) builder.skips_untold();
  }
  rank_.read(name, value);
  if (name == "rampup_batch_size") ramp_stated_ = value != "None";
  if (name == "position_embedding_type") rotary_ = value == "rope";
  if (name == "decoder_seq_length") has_decoder_ = value != "None";
  if (name == "group_query_attention") grouped_ = value == "True";
  if (name == "num_query_groups" && grouped_ == true)
    builder.setting(Setting::kv_heads, parse_printed(value, Kind::counted, 1, line));
  // Megatron-DeepSpeed's; it prints as many as heads where none were asked for.
  if (name == "num_key_value_heads")
    builder.setting(Setting::kv_heads, parse_printed(value, Kind::counted, 1, line));
  if (name == "untie_embeddings_and_output_weights" && (value == "True" || value == "False"))
    builder.tied_embeddings(value == "False");
  if (name == "log_interval")
    if (const auto steps = parse_printed(value, Kind::counted, 1, line); steps && steps->value >= 1)
      builder.line_interval(steps->value);
  if (name == "lr_decay_style") builder.name(&RunRecord::schedule, value);
  if (name == "bf16" && value == "True") builder.name(&RunRecord::dtype, "bf16");
  if (name == "fp16" && value == "True") builder.name(&RunRecord::dtype, "fp16");
  if (name == "fp8" && value != "None" && value != "False") builder.name(&RunRecord::dtype, "fp8");
  if (const SettingName* known = setting_named(arguments, name); known && value != "None")
    builder.setting(known->setting, parse_printed(value, Kind::counted, 1, line));
}

}  // namespace assay::spec::audit::megatron
