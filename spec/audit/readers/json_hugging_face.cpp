// Hugging Face's trainer_state.json: formats.md, "hugging_face".
#include <cmath>

#include "spec/audit/readers/json_document.hpp"
#include "spec/audit/readers/json_fields.hpp"
#include "spec/audit/readers/scan.hpp"

namespace assay::spec::audit {
namespace {

constexpr KnownField hugging_face_fields[] = {
    {"step", Field::step},
    {"loss", Field::loss},
    {"grad_norm", Field::gradient_norm},
    {"learning_rate", Field::learning_rate},
    {"num_input_tokens_seen", Field::tokens_total},
    {"epoch", Field::epoch},
};

/// Rounded to so many digits before it was written in its shortest form.
std::optional<Printed> rounded_to(std::string_view token, double unit_of_last, std::int64_t line) {
  auto printed = shortest_printed(token, 1, line);
  if (printed && !std::isnan(printed->value)) {
    printed->low = printed->value - unit_of_last / 2;
    printed->high = printed->value + unit_of_last / 2;
  }
  return printed;
}

}  // namespace

void JsonDocument::hugging_face(std::string_view member, JsonKind kind, std::string_view token) {
  if (kind == JsonKind::word) {
    if (member == "loss") take_null(token);
    return;  // Transformers 5 writes some numbers as texts.
  }
  const std::int64_t line = builder_.line();
  if (member.starts_with("train_") || member == "total_flos") learnable_ = false;
  if (member == "train_runtime") {
    summary_ = true;
    // Lines of later versions have one too: a rate is over the time that stands before it.
    builder_.forget(Setting::average_tokens_per_second);
    builder_.summary(Setting::total_seconds, rounded_to(token, 1e-4, line));
  }
  if (member == "train_loss") builder_.summary(Setting::average_loss, shortest_printed(token, 1, line));
  if (member == "total_flos") builder_.summary(Setting::total_flops, shortest_printed(token, 1, line));
  if (member == "train_tokens_per_second")
    builder_.summary(Setting::average_tokens_per_second, rounded_to(token, 1e-3, line));
  if (member == "train_steps_per_second")
    builder_.summary(Setting::average_steps_per_second, rounded_to(token, 1e-3, line));
  if (member == "train_samples_per_second")
    builder_.summary(Setting::average_sequences_per_second, rounded_to(token, 1e-3, line));
  if (of_rewards(member)) builder_.of_rewards();
  const KnownField* known = find_known(hugging_face_fields, member);
  if (!known) return;
  step_[known->field] = shortest_printed(token, 1, line);
  taken_.add(token.data(), known->field, Kind::counted, 1, Written::shortest);
}

}  // namespace assay::spec::audit
