// Dictionaries that Hugging Face's Trainer prints: formats.md, "hugging_face".
#include <cmath>

#include "spec/audit/readers/line_reader.hpp"
#include "spec/audit/readers/scan.hpp"

namespace assay::spec::audit {
namespace hugging_face {
namespace {

constexpr std::string_view loss_key = "'loss': ", end_start = "{'train_runtime': ";

/// Where the dictionary of a step begins, its loss first or behind other keys ('epoch'); npos: none.
std::size_t step_start(std::string_view text) {
  const std::size_t loss = text.find(loss_key);
  if (loss == std::string_view::npos) return loss;
  return text.substr(0, loss + 1).rfind("{'");
}

/// Calls `member(key, value, quoted)` for each member of the dictionary that `text` starts with, until it
/// returns false. True when the dictionary is whole.
template <class Member>
bool members(std::string_view text, Member&& member) {
  text.remove_prefix(1);
  while (true) {
    if (!text.starts_with('\'')) return false;
    std::size_t close = 1;
    while (close < text.size() && (text[close] != '\'' || !text.substr(close + 1).starts_with(": "))) ++close;
    if (close >= text.size()) return false;
    const std::string_view key = text.substr(1, close - 1);
    text.remove_prefix(close + 3);
    const bool quoted = text.starts_with('\'');
    std::size_t end = quoted ? 1 : 0;
    while (end < text.size() && (quoted ? text[end] != '\'' : text[end] != ',' && text[end] != '}')) ++end;
    if (end >= text.size()) return false;
    if (!member(key, text.substr(quoted, end - quoted), quoted)) return false;
    text.remove_prefix(quoted ? end + 1 : end);
    if (text.starts_with('}')) return true;
    if (!text.starts_with(", ")) return false;
    text.remove_prefix(2);
  }
}

constexpr double last_digit_of_loss = 1e-4;

void round_to(Printed& printed, double last_digit) {
  if (std::isnan(printed.value)) return;
  printed.low = printed.value - last_digit / 2;
  printed.high = printed.value + last_digit / 2;
}

/// Numbers of Transformers up to 4: the loss is rounded to four digits, the others are as computed; from 5 on
/// they are texts of four significant digits.
std::optional<Printed> number(std::string_view token, bool quoted, double last_digit, std::int64_t line) {
  if (quoted) return parse_printed(token, Kind::measured, 1, line);
  auto printed = shortest_printed(token, 1, line);
  if (printed && last_digit > 0) round_to(*printed, last_digit);
  return printed;
}

/// ms-swift's 'global_step/max_steps': "10/94".
constexpr std::string_view step_of_plan = "global_step/max_steps";

/// Where the second number of "10/94" stands; empty where there is none.
std::string_view behind_slash(std::string_view value) {
  const std::size_t slash = value.find('/');
  return slash == std::string_view::npos ? std::string_view() : value.substr(slash + 1);
}

/// How far a progress bar (tqdm) is: " 96%|#########5| 90/94 [07:25<00:19,  4.95s/it]".
struct Bar {
  Printed done, total;
};

constexpr std::string_view bar_rate = "it/s", bar_time = "s/it";

std::optional<Bar> bar_in(std::string_view text, std::int64_t line) {
  const std::size_t share = text.find("%|");
  if (share == std::string_view::npos) return std::nullopt;
  std::string_view rest = behind(text.substr(share + 2), "| ");
  const auto done = take_number(rest, Kind::counted, 1, line);
  if (!done || !rest.starts_with('/')) return std::nullopt;
  rest.remove_prefix(1);
  const auto total = take_number(rest, Kind::counted, 1, line);
  if (!total || !rest.starts_with(" [")) return std::nullopt;
  return Bar{*done, *total};
}

bool read_numbers(std::string_view text, std::int64_t line, Step& step, TakenNumbers* taken = nullptr,
                  bool* rewards = nullptr) {
  return members(text, [&](std::string_view key, std::string_view value, bool quoted) {
    if (rewards && of_rewards(key)) *rewards = true;
    const auto take = [&](Field field) {
      step[field] = number(value, quoted, field == Field::loss ? last_digit_of_loss : 0, line);
      if (taken)
        taken->add(value.data(), field, Kind::measured, 1, quoted ? Written::printed : Written::shortest);
      return step[field].has_value();
    };
    if (key == "loss") return take(Field::loss);
    if (key == "grad_norm") return take(Field::gradient_norm);
    if (key == "learning_rate") return take(Field::learning_rate);
    if (key == "num_input_tokens_seen" || key == "num_tokens") return take(Field::tokens_total);
    // LLaMA-Factory: tokens over the time since the start.
    if (key == "throughput") return take(Field::tokens_per_second);
    const auto take_text = [&](Field field, Kind kind) {
      step[field] = parse_printed(value, kind, 1, line);
      if (taken) taken->add(value.data(), field, kind, 1);
      return step[field].has_value();
    };
    if (key == "step") return take_text(Field::step, Kind::counted);
    // Rounded to two digits, to four, or not at all: as it stands.
    if (key == "epoch") return take_text(Field::epoch, Kind::measured);
    if (key == step_of_plan) {
      step[Field::step] = parse_printed(value.substr(0, value.find('/')), Kind::counted, 1, line);
      if (taken) taken->add(value.data(), Field::step, Kind::counted, 1);
      if (const std::string_view planned = behind_slash(value); !planned.empty()) {
        step[Field::planned_steps] = parse_printed(planned, Kind::counted, 1, line);
        if (taken) taken->add(planned.data(), Field::planned_steps, Kind::counted, 1);
      }
      return step[Field::step].has_value();
    }
    return true;
  });
}

/// One of these stands in every line that says something.
const Words& known_words() {
  static const Words words({loss_key, end_start, bar_rate, bar_time});
  return words;
}

class HuggingFace : public LineReader {
 public:
  void read(const Line& line, RecordBuilder& builder) override {
    Step step;
    if (shapes_.read(line, step)) {
      if (step[Field::loss] && !quoted_) round_to(*step[Field::loss], last_digit_of_loss);
      return take(step, builder);
    }
    if (!may_say(known_words(), line.text)) return;
    if (const auto bar = bar_in(line.text, line.number)) bar_ = bar;
    if (const std::size_t at = step_start(line.text); at != std::string_view::npos) {
      TakenNumbers taken;
      bool rewards = false;
      if (!read_numbers(line.text.substr(at), line.number, step, &taken, &rewards))
        return builder.unread(line.text);
      if (rewards) builder.of_rewards();
      // Texts and numbers are rounded in other ways.
      const bool quoted = line.text.substr(line.text.find(loss_key) + loss_key.size()).starts_with('\'');
      if (quoted != quoted_) shapes_ = LineShapes(Notation::json);
      quoted_ = quoted;
      shapes_.learn(line, taken);
      take(step, builder);
    } else if (const std::size_t end = line.text.find(end_start); end != std::string_view::npos) {
      const bool whole = members(line.text.substr(end), [&](std::string_view key, std::string_view value,
                                                            bool quoted) {
        if (key == "train_runtime") {
          builder.forget(Setting::average_tokens_per_second);
          builder.summary(Setting::total_seconds, number(value, quoted, 1e-4, line.number));
        }
        if (key == "train_loss")
          builder.summary(Setting::average_loss, number(value, quoted, 0, line.number));
        if (key == "train_tokens_per_second")
          builder.summary(Setting::average_tokens_per_second, number(value, quoted, 1e-3, line.number));
        if (key == "train_steps_per_second")
          builder.summary(Setting::average_steps_per_second, number(value, quoted, 1e-3, line.number));
        if (key == "train_samples_per_second")
          builder.summary(Setting::average_sequences_per_second, number(value, quoted, 1e-3, line.number));
        if (key == step_of_plan) {
          builder.saved().summary_step =
              parse_printed(value.substr(0, value.find('/')), Kind::counted, 1, line.number);
          plan(parse_printed(behind_slash(value), Kind::counted, 1, line.number), builder);
        }
        return true;
      });
      if (!whole) builder.unread(line.text);
      plan_of_bar(builder);
      builder.begin_anew();  // the Trainer is done
    }
  }

 private:
  /// A run that is resumed may plan other steps: those of its last line count.
  static void take(Step& step, RecordBuilder& builder) {
    builder.step(step);
    builder.summary(Setting::max_steps, step[Field::planned_steps]);
  }
  /// What lines do not say.
  static void plan(const std::optional<Printed>& steps, RecordBuilder& builder) {
    if (!builder.current(Setting::max_steps)) builder.summary(Setting::max_steps, steps);
  }
  /// The last bar before the summary is the training loop's, unless it stands below the last logged step, as
  /// that of a shorter evaluation does. Steps without numbers leave this open, and the bar is not used.
  void plan_of_bar(RecordBuilder& builder) const {
    const auto last = builder.last_number();
    if (bar_ && last && *last <= bar_->done.value && bar_->done.value <= bar_->total.value)
      plan(bar_->total, builder);
  }

  LineShapes shapes_{Notation::json};
  bool quoted_ = false;  // the loss of the lines that are known
  std::optional<Bar> bar_;
};

}  // namespace
}  // namespace hugging_face

LineFormat hugging_face_format() {
  Format format;
  format.name = "hugging_face";
  format.averaged = {Field::loss, Field::tokens_per_second};
  return {format,
          [](std::string_view text) {
            const std::size_t at = hugging_face::step_start(text);
            Step step;
            return at != std::string_view::npos && hugging_face::read_numbers(text.substr(at), 0, step);
          },
          [] { return std::unique_ptr<LineReader>(std::make_unique<hugging_face::HuggingFace>()); },
          {hugging_face::loss_key}};
}

}  // namespace assay::spec::audit
