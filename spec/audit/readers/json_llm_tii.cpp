// The JSON of llm_TII: formats.md, "llm_tii (JSON)".
#include "spec/audit/readers/json_document.hpp"
#include "spec/audit/readers/json_fields.hpp"
#include "spec/audit/shortest.hpp"

namespace assay::spec::audit {
namespace {

/// llm_TII, scripts/training_logger.py: "config" is the trainer's global settings as they were given. Whether
/// gradient_accumulation_steps is of one rank or of all changed between its versions.
constexpr KnownSetting llm_tii_settings[] = {
    {"config.gradient_accumulation_steps", Setting::accumulation_configured},
    {"config.batch_size", Setting::micro},
    {"config.block_size", Setting::sequence_length},
    {"config.n_layer", Setting::layers},
    {"config.n_head", Setting::heads},
    {"config.n_embd", Setting::width},
    {"config.num_key_value_heads", Setting::kv_heads},
    {"config.d_ff", Setting::ffn},
    {"config.learning_rate", Setting::learning_rate},
    {"config.max_iters", Setting::max_steps},
    {"config.warmup_iters", Setting::warmup_steps},
    {"config.lr_decay_iters", Setting::decay_steps},
    {"config.min_lr", Setting::learning_rate_min},
    {"startup_info.model.total_params", Setting::parameters},
    {"startup_info.model.non_embedding_params", Setting::parameters_nonembedding},
    {"startup_info.hardware.num_gpus", Setting::gpus},
    {"startup_info.hardware.gpu_memory_gb", Setting::gpu_memory, 1e9},
    {"metadata.world_size", Setting::data_parallel},
    {"summary.final_iter", Setting::final_step},
    {"summary.final_train_loss", Setting::final_loss},
    {"summary.avg_time_ms", Setting::average_seconds, 1e-3},
    {"summary.avg_mfu", Setting::average_mfu, 0.01},
};

constexpr KnownField llm_tii_fields[] = {
    {"iter", Field::step},
    {"loss", Field::loss},
    {"time_ms", Field::seconds, 1e-3},
    {"lr", Field::learning_rate},
    {"mfu", Field::mfu, 0.01},
    {"mfu.mfu", Field::mfu},
    {"mfu.flops_achieved", Field::flops_rate},
    {"mfu.flops_per_token", Field::flops_per_token},
    {"mfu.tokens_per_sec", Field::tokens_per_second},
    {"mfu.hardware_peak_flops", Field::peak_flops},
    {"memory.allocated_gb", Field::memory_allocated, 1e9},
    {"memory.max_allocated_gb", Field::memory_peak, 1e9},
    {"memory.reserved_gb", Field::memory_reserved, 1e9},
    {"gradients.global_norm", Field::gradient_norm},
};

}  // namespace

void JsonDocument::llm_tii_setting(std::string_view path, JsonKind kind, std::string_view token) {
  const std::int64_t line = builder_.line();
  if (kind == JsonKind::text) {
    if (path == "startup_info.hardware.gpu_name") builder_.name(&RunRecord::gpu, token);
    if (path == "startup_info.hardware.parallelism") builder_.name(&RunRecord::parallelism, token);
    if (path == "config.dtype") builder_.name(&RunRecord::dtype, token == "bfloat16" ? "bf16" : token);
    return;
  }
  if (kind == JsonKind::word) {
    if (path == "config.decay_lr")
      builder_.name(&RunRecord::schedule, token == "true" ? "cosine" : "constant");
    return;
  }
  const KnownSetting* known = find_known(llm_tii_settings, path);
  if (!known) return;
  const auto printed = shortest_printed(token, known->unit, line);
  // What stands behind the steps belongs to them.
  path.starts_with("config.") || path.starts_with("startup_info.")
      ? builder_.setting(known->setting, printed)
      : builder_.summary(known->setting, printed);
}

void JsonDocument::llm_tii_step(std::string_view member, JsonKind kind, std::string_view token) {
  if (kind == JsonKind::text) {
    if (member == "mfu.calculation_method") builder_.format().convention = token;
    return;
  }
  if (kind == JsonKind::word) {
    if (member == "loss") take_null(token);
    return;
  }
  if (member == "mfu.ffn_flops_per_layer")  // the same on every line
    builder_.summary(Setting::ffn_flops_per_layer, shortest_printed(token, 1, builder_.line()));
  const KnownField* known = find_known(llm_tii_fields, member);
  if (!known) return;
  const auto printed = shortest_printed(token, known->unit, builder_.line());
  // -100: not measured yet.
  if (member == "mfu") {
    learnable_ = false;
    if (printed && (printed->value == -1 || printed->value == -100)) return;
  }
  step_[known->field] = printed;
  taken_.add(token.data(), known->field, Kind::counted, known->unit, Written::shortest);
}

}  // namespace assay::spec::audit
