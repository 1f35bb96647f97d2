// The JSON of llm.q: formats.md, "llmq (JSON)".
#include "spec/audit/readers/json_document.hpp"
#include "spec/audit/readers/json_fields.hpp"
#include "spec/audit/shortest.hpp"

namespace assay::spec::audit {
namespace {

constexpr KnownField llmq_fields[] = {
    {"step", Field::step},          {"step_tokens", Field::tokens}, {"duration_ms", Field::seconds, 1e-3},
    {"norm", Field::gradient_norm}, {"loss", Field::loss},          {"lr", Field::learning_rate},
};

}  // namespace

void JsonDocument::llmq_option(JsonKind kind, std::string_view token) {
  constexpr KnownSetting options[] = {
      {"batch-size", Setting::micro},        {"grad-accumulation", Setting::accumulation},
      {"seq-len", Setting::sequence_length}, {"steps", Setting::max_steps},
      {"warmup", Setting::warmup_steps},     {"learning-rate", Setting::learning_rate},
  };
  const std::int64_t line = builder_.line();
  if (option_ == "model" && kind == JsonKind::text) builder_.name(&RunRecord::model, token);
  if (option_ == "matmul-dtype" && kind == JsonKind::text)
    builder_.name(&RunRecord::dtype, token.starts_with("e4m3") || token.starts_with("e5m2") ? "fp8" : token);
  if (kind != JsonKind::number) return;
  if (option_ == "final-lr-fraction") {
    const auto fraction = shortest_printed(token, 1, line);
    const auto& highest = builder_.current(Setting::learning_rate);
    if (fraction && highest)
      builder_.setting(Setting::learning_rate_min, shortest_printed(token, highest->value, line));
    else
      final_fraction_ = std::string(token);
  }
  const KnownSetting* known = find_known(options, option_);
  if (known) builder_.setting(known->setting, shortest_printed(token, 1, line));
  if (option_ == "learning-rate" && !final_fraction_.empty() && builder_.current(Setting::learning_rate))
    builder_.setting(
        Setting::learning_rate_min,
        shortest_printed(final_fraction_, builder_.current(Setting::learning_rate)->value, line));
}

void JsonDocument::llmq(std::string_view member, JsonKind kind, std::string_view token) {
  if (member == "log" && kind == JsonKind::text) {
    entry_ = token == "step"        ? Entry::step
             : token == "option"    ? Entry::option
             : token == "gpu-model" ? Entry::gpu
                                    : Entry::other;
    claim("llmq");
    return;
  }
  if (trainer_ != "llmq") return;
  const std::int64_t line = builder_.line();
  if (entry_ == Entry::option) {
    if (member == "name") option_ = token.substr(0, 80);
    if (member == "value") llmq_option(kind, token);
  } else if (entry_ == Entry::gpu) {
    if (member == "name") builder_.name(&RunRecord::gpu, token);
    if (member == "memory") builder_.setting(Setting::gpu_memory, shortest_printed(token, 1, line));
  } else if (entry_ == Entry::step) {
    if (kind == JsonKind::word && member == "loss") take_null(token);
    const KnownField* known = find_known(llmq_fields, member);
    if (!known || kind == JsonKind::word) return;
    const bool whole = known->field == Field::seconds;
    const auto printed = whole ? parse_printed(token, Kind::counted, known->unit, line)
                               : shortest_printed(token, known->unit, line);
    if (whole && !printed) return;
    step_[known->field] = printed;
    taken_.add(token.data(), known->field, Kind::counted, known->unit,
               whole ? Written::printed : Written::shortest);
  }
}

}  // namespace assay::spec::audit
