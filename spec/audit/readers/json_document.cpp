#include "spec/audit/readers/json_document.hpp"

#include <algorithm>
#include <cmath>

#include "spec/audit/readers/scan.hpp"

namespace assay::spec::audit {
namespace {

constexpr double last_digit_of_loss = 1e-4;

/// The number was rounded to so many digits before it was written in its shortest form ("2.5" for 2.5000).
void round_to(Printed& printed, double unit_of_last) {
  if (std::isnan(printed.value)) return;
  printed.low = printed.value - unit_of_last / 2;
  printed.high = printed.value + unit_of_last / 2;
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
    summary_ = false;
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
                    (mapping_.stated() && path.ends_with("[]") && mapping_.says_something(step_));
  if (entry_ == Entry::gpu && path == "[]")
    builder_.setting(Setting::gpus, exactly(static_cast<double>(++gpus_), builder_.line()));
  if (path == "log_history[]" && summary_ && !step_[Field::loss] && step_[Field::step])
    builder_.saved().summary_step = step_[Field::step];
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
  } else if (kind == JsonKind::number && path == "num_train_epochs") {
    builder_.summary(Setting::planned_epochs, shortest_printed(token, 1, builder_.line()));
  } else if (kind == JsonKind::number && path == "global_step") {
    builder_.saved().step = shortest_printed(token, 1, builder_.line());
  } else if (kind == JsonKind::number && path == "epoch") {
    builder_.saved().epoch = shortest_printed(token, 1, builder_.line());
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

}  // namespace assay::spec::audit
