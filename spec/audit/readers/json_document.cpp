#include "spec/audit/readers/json_document.hpp"

#include <algorithm>
#include <cmath>

#include "spec/audit/readers/scan.hpp"

namespace assay::spec::audit {
namespace {

struct KnownSetting {
  std::string_view path;
  Setting setting;
  double unit = 1;
};

template <class Known, std::size_t n>
const Known* find(const Known (&all)[n], std::string_view path) {
  const auto found =
      std::find_if(std::begin(all), std::end(all), [&](const Known& k) { return k.path == path; });
  return found == std::end(all) ? nullptr : found;
}

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

struct KnownField {
  std::string_view path;
  Field field;
  double unit = 1;
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

constexpr KnownField hugging_face_fields[] = {
    {"step", Field::step},
    {"loss", Field::loss},
    {"grad_norm", Field::gradient_norm},
    {"learning_rate", Field::learning_rate},
    {"num_input_tokens_seen", Field::tokens_total},
};

constexpr KnownField llmq_fields[] = {
    {"step", Field::step},          {"step_tokens", Field::tokens}, {"duration_ms", Field::seconds, 1e-3},
    {"norm", Field::gradient_norm}, {"loss", Field::loss},          {"lr", Field::learning_rate},
};

constexpr double last_digit_of_loss = 1e-4;

/// The number was rounded to so many digits before it was written in its shortest form ("2.5" for 2.5000).
void round_to(Printed& printed, double unit_of_last) {
  if (std::isnan(printed.value)) return;
  printed.low = printed.value - unit_of_last / 2;
  printed.high = printed.value + unit_of_last / 2;
}

std::optional<Printed> rounded_to(std::string_view token, double unit_of_last, std::int64_t line) {
  auto printed = shortest_printed(token, 1, line);
  if (printed) round_to(*printed, unit_of_last);
  return printed;
}

}  // namespace

void JsonDocument::claim(std::string_view trainer) {
  if (trainer_.data() == trainer.data() || trainer_ == trainer) return;
  trainer_ = trainer;
  Format& format = builder_.format();
  format = Format();
  format.name = trainer;
  if (trainer == "llm_tii") format.first_step_is_zero = true;
  if (trainer == "hugging_face") format.averaged = {Field::loss};
  if (trainer == "llmq") {
    format.first_step_is_zero = true;
    format.tokens_per_second = Scope::all;
    format.convention = "llmq";
  }
}

void JsonDocument::begin_element(std::string_view path) {
  if (path == "training_iterations[]" || path == "log_history[]" || path == "[]" || mapping_.stated()) {
    step_ = Step();
    step_.line = builder_.line();
    entry_ = Entry::other;
    option_.clear();
    taken_.clear();
    learnable_ = true;
  }
}

/// Roundings that are not a number's own.
void JsonDocument::widen(Step& step) const {
  auto &loss = step[Field::loss], &seconds = step[Field::seconds];
  if (mapping_.stated()) return;
  if (trainer_ == "hugging_face" && loss) round_to(*loss, last_digit_of_loss);
  // Milliseconds are cut off, not rounded: the true time is up to one more.
  if (trainer_ == "llmq" && seconds)
    seconds = Printed{seconds->value, seconds->value, seconds->value + 1e-3, seconds->line};
}

JsonDocument::Known JsonDocument::known_element(std::string_view path, std::string_view rest) {
  if (list_.empty() || path != list_) return {};
  Step step;
  step.line = builder_.line();
  const std::size_t size = shapes_.read(rest, step.line, step, false);
  if (size == 0) return {};
  widen(step);
  builder_.step(step, shapes_.fields());
  return {size, shapes_.breaks()};
}

void JsonDocument::end_element(std::string_view path, std::string_view text) {
  if (is_null(step_[Field::loss]) && !null_rows_.is_step(step_, builder_.last_number()))
    step_[Field::loss].reset();
  const bool step = path == "training_iterations[]" ||
                    (path == "log_history[]" && step_[Field::loss] && step_[Field::step]) ||
                    (entry_ == Entry::step && path == "[]") ||
                    (mapping_.stated() && path.ends_with("[]") && says_something(step_));
  if (entry_ == Entry::gpu && path == "[]")
    builder_.setting(Setting::gpus, exactly(static_cast<double>(++gpus_), builder_.line()));
  if (step && learnable_ && !text.empty()) {
    if (path != list_) shapes_ = LineShapes(Notation::json);
    list_ = path;
    shapes_.learn(text, taken_);
  }
  if (step) {
    widen(step_);
    if (is_null(step_[Field::loss]))
      builder_.null_loss();
    else if (step_[Field::loss])
      null_rows_.saw(step_);
    builder_.step(step_);
  }
  step_ = Step();
}

void JsonDocument::value(std::string_view path, JsonKind kind, std::string_view token) {
  if (mapping_.stated()) {
    // "history[].train.loss" is the key "train.loss" of an element.
    const std::size_t element = path.rfind("[].");
    if (element == std::string_view::npos) return;
    const std::string_view key = path.substr(element + 3);
    if (kind == JsonKind::word) return mapped_word(key, token);
    note_key(keys_, key);
    const auto meanings = mapping_.meanings(key, next_column_);
    if (!meanings.empty()) {
      learnable_ = learnable_ && meanings.size() == 1 && kind == JsonKind::number;
      taken_.add(token.data(), meanings[0].field, meanings[0].kind, meanings[0].unit);
    }
    if (Mapping::take(step_, meanings, token, builder_.line()) != Mapping::Taken::read) return;
    for (const Mapping::Meaning& meaning : meanings) filled_[static_cast<std::size_t>(meaning.field)] = true;
    claim("mapped");
    return;
  }
  constexpr std::string_view iterations = "training_iterations[].", history = "log_history[].", list = "[].";
  if (path.starts_with(iterations)) {
    claim("llm_tii");
    llm_tii_step(path.substr(iterations.size()), kind, token);
  } else if (path.starts_with(history)) {
    claim("hugging_face");
    hugging_face(path.substr(history.size()), kind, token);
  } else if (path.starts_with(list)) {
    llmq(path.substr(list.size()), kind, token);
  } else if (path.starts_with("config.") || path.starts_with("startup_info.") ||
             path.starts_with("metadata.") || path.starts_with("summary.")) {
    llm_tii_setting(path, kind, token);
  } else if (kind == JsonKind::number && path == "train_batch_size") {
    builder_.summary(Setting::micro, shortest_printed(token, 1, builder_.line()));
  } else if (kind == JsonKind::number && path == "max_steps") {
    builder_.summary(Setting::max_steps, shortest_printed(token, 1, builder_.line()));
  } else if (kind == JsonKind::number && path == "total_flos") {
    builder_.summary(Setting::total_flops, shortest_printed(token, 1, builder_.line()));
  }
}

/// Null at the loss of a step. Lines with it are not learned.
void JsonDocument::take_null(std::string_view token) {
  if (token != "null") return;
  step_[Field::loss] = null_loss(builder_.line());
  learnable_ = false;
}

void JsonDocument::mapped_word(std::string_view key, std::string_view token) {
  const auto meanings = mapping_.meanings(key, next_column_);
  if (!meanings.empty() && meanings[0].field == Field::loss) take_null(token);
}

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
  const KnownSetting* known = find(llm_tii_settings, path);
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
  const KnownField* known = find(llm_tii_fields, member);
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

void JsonDocument::hugging_face(std::string_view member, JsonKind kind, std::string_view token) {
  if (kind == JsonKind::word) {
    if (member == "loss") take_null(token);
    return;  // Transformers 5 writes some numbers as texts.
  }
  const std::int64_t line = builder_.line();
  if (member.starts_with("train_") || member == "total_flos") learnable_ = false;
  if (member == "train_runtime") builder_.summary(Setting::total_seconds, rounded_to(token, 1e-4, line));
  if (member == "train_loss") builder_.summary(Setting::average_loss, shortest_printed(token, 1, line));
  if (member == "total_flos") builder_.summary(Setting::total_flops, shortest_printed(token, 1, line));
  if (member == "train_tokens_per_second")
    builder_.summary(Setting::average_tokens_per_second, rounded_to(token, 1e-3, line));
  if (member == "train_steps_per_second")
    builder_.summary(Setting::average_steps_per_second, rounded_to(token, 1e-3, line));
  if (member == "train_samples_per_second")
    builder_.summary(Setting::average_sequences_per_second, rounded_to(token, 1e-3, line));
  if (of_rewards(member)) builder_.of_rewards();
  const KnownField* known = find(hugging_face_fields, member);
  if (!known) return;
  step_[known->field] = shortest_printed(token, 1, line);
  taken_.add(token.data(), known->field, Kind::counted, 1, Written::shortest);
}

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
  const KnownSetting* known = find(options, option_);
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
    const KnownField* known = find(llmq_fields, member);
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
