// llm.q's console: formats.md, "llmq". It divides whole milliseconds and cuts off instead of rounding; the
// intervals say so.
#include <algorithm>
#include <cmath>

#include "spec/audit/readers/line_reader.hpp"
#include "spec/audit/readers/scan.hpp"
#include "spec/audit/readers/setting_names.hpp"

namespace assay::spec::audit {
namespace llmq {
namespace {

constexpr std::string_view step_start = "[T] step ";

/// A number that was cut off after its last digit; `text`, which it stands at the start of, goes on behind
/// it.
std::optional<Printed> cut_off(std::string_view& text, double unit, std::int64_t line) {
  const auto number = take_number(text, Kind::counted, unit, line);
  if (!number) return std::nullopt;
  return Printed{number->value, number->value, number->value + unit, line};
}

/// In which units a line prints: seconds, tokens per second.
struct Units {
  double time = 1, rate = 1;
};

/// Takes the number that `text` starts with as it is written; `text` goes on behind it.
bool take_whole(std::string_view& text, Field field, std::int64_t line, Step& step, TakenNumbers* taken) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  const char* const start = text.data();
  step[field] = take_number(text, Kind::counted, 1, line);
  if (step[field] && taken) taken->add(start, field, Kind::counted, 1);
  return step[field].has_value();
}

/// The field that ends a line in fewer characters than it is ever printed in: norm and loss "%10f", the rate
/// "{:5}" or "{:4}k" (log_step, format_tps). Field::count_: it ends in none of them, or in the whole one.
Field cut_field(std::string_view text) {
  struct Printed {
    std::string_view name;
    Field field;
    std::size_t least;
  };
  constexpr Printed all[] = {{"| norm ", Field::gradient_norm, 10},
                             {"| loss ", Field::loss, 10},
                             {"| tps ", Field::tokens_per_second, 5}};
  for (const Printed& one : all) {
    const std::string_view number = behind(text, one.name);
    if (number.data() && number.size() < one.least && number.find('-') == std::string_view::npos)
      return one.field;
  }
  return Field::count_;
}

/// Numbers as they are written.
bool read_raw(std::string_view text, std::int64_t line, Step& step, Units& units, TakenNumbers* taken) {
  Scan scan(text, line, taken);
  scan.take(step, Field::step, step_start, Kind::counted, 1, {}, true);
  std::string_view time = scan.behind_next("time:");
  if (!time.data() || !take_whole(time, Field::seconds, line, step, taken)) return false;
  time = trimmed(time);
  units.time = time.starts_with("ms") ? 1e-3 : time.starts_with('s') ? 1 : 0;
  if (units.time == 0) return false;
  scan.take(step, Field::gradient_norm, "norm ", Kind::measured);
  scan.take(step, Field::loss, "loss ", Kind::measured, 1, {}, true);
  if (std::string_view rate = scan.behind_next("tps "); rate.data()) {
    const bool no_time_has_passed = trimmed(rate).starts_with('-');
    if (!take_whole(rate, Field::tokens_per_second, line, step, taken) && !no_time_has_passed) return false;
    units.rate = rate.starts_with('k') ? 1e3 : 1;
  }
  scan.take(step, Field::mfu, "| sol ", Kind::measured, 0.01, "%");
  return !scan.bad();
}

/// What the numbers stand for, cut off and divided as they are.
void widen(Step& step, Units units) {
  auto &time = step[Field::seconds], &rate = step[Field::tokens_per_second], &share = step[Field::mfu];
  time =
      Printed{time->value * units.time, time->value * units.time, (time->value + 1) * units.time, time->line};
  if (rate) {
    // tokens / (whole milliseconds): never below the true rate, but for the cut.
    const double shortened = time->value > 0 ? time->value / (time->value + 1e-3) : 0;
    // Also a rate below 0, which is no rate but may stand there, lies in its own interval.
    rate = Printed{rate->value * units.rate,
                   (rate->value - std::abs(rate->value) * (1 - shortened)) * units.rate,
                   (rate->value + 1) * units.rate, rate->line};
  }
  if (share) {
    // Both times of the quotient are whole milliseconds.
    const double whole = time->value * 1e3, least = share->value * whole;
    const double slack = least > 1 ? 1 / least + 1 / whole : 1;
    share = Printed{share->value, share->low - std::abs(share->low) * slack,
                    share->high + std::abs(share->high) * slack, share->line};
  }
}

constexpr SettingName options[] = {{"batch-size", Setting::micro},
                                   {"grad-accumulation", Setting::accumulation},
                                   {"seq-len", Setting::sequence_length},
                                   {"steps", Setting::max_steps},
                                   {"warmup", Setting::warmup_steps},
                                   {"learning-rate", Setting::learning_rate},
                                   {"gpus", Setting::gpus}};

/// One of these stands in every line that says something, but for the options.
const Words& known_words() {
  static const Words words({step_start, "[Options]", "  Device ", "  Memory: ", "  Peak "});
  return words;
}

class LlmQ : public LineReader {
 public:
  void read(const Line& line, RecordBuilder& builder) override {
    // An MFU above 1 may be one of 1 with the room of its rounding.
    if (!in_use_ && builder.may_defer())
      if (auto glance = shapes_.glance(line); glance && !(glance->mfu_low > 1)) {
        watched(glance->watched, Field::seconds) *= units_.time;
        watched(glance->watched, Field::tokens_per_second) *= units_.rate;
        if (builder.defer(line.text, *glance, again_)) return;
      }
    Step step;
    if (!shapes_.read(line, step)) {
      if (!may_say(known_words(), line.text, in_options_)) return;
      if (line.text.find(step_start) == std::string_view::npos)
        return read_header(line.text, line.number, builder);
      TakenNumbers taken;
      Units units;
      if (!read_raw(line.text, line.number, step, units, &taken) ||
          !(line.complete || line.text.ends_with('%')))
        return builder.unread(line.text);
      if (const Field cut = cut_field(line.text); cut != Field::count_) {
        builder.cut_end();
        step[cut].reset();
        widen(step, units);
        return builder.step(step);
      }
      // Lines of other units are of other shapes, and not to be mixed up.
      if (units.time != units_.time || units.rate != units_.rate) shapes_ = LineShapes();
      units_ = units;
      shapes_.learn(line, taken);
    }
    widen(step, units_);
    // What the header says to be in use stands at the first step behind it.
    if (in_use_) step[Field::memory_reserved] = in_use_;
    in_use_.reset();
    builder.step(step);
  }

 private:
  void read_header(std::string_view text, std::int64_t line, RecordBuilder& builder) {
    if (text.starts_with("[Options]")) {
      in_options_ = true;
    } else if (text.starts_with("[")) {
      in_options_ = false;
    } else if (in_options_) {
      const std::size_t colon = text.find(": ");
      if (colon != std::string_view::npos)
        read_option(trimmed(text.substr(0, colon)), trimmed(text.substr(colon + 2)), line, builder);
    } else if (const auto device = behind(text, "  Device "); device.data()) {
      const std::size_t colon = device.find(": ");
      if (colon != std::string_view::npos) builder.name(&RunRecord::gpu, trimmed(device.substr(colon + 2)));
    } else if (const auto memory = behind(text, "  Memory: "); memory.data()) {
      std::string_view whole = behind(memory, "MiB / ");
      builder.setting(Setting::gpu_memory, cut_off(whole, 0x1p20, line));
      std::string_view part = memory;
      const auto used = cut_off(part, 0x1p20, line);
      if (used && (!in_use_ || in_use_->value < used->value)) in_use_ = used;
    } else if (const auto peak = behind(text, "  Peak "); peak.data()) {
      // Of several dtypes the last one stated is the narrowest, that of the matrix products.
      if (const auto rate = behind(peak, ": "); rate.data())
        builder.setting(Setting::peak_flops, parse_printed(number_token(rate), Kind::measured, 1e12, line));
    }
  }

  void read_option(std::string_view name, std::string_view value, std::int64_t line, RecordBuilder& builder) {
    if (name == "model") builder.name(&RunRecord::model, value);
    if (name == "matmul-dtype" && !value.empty())
      builder.name(&RunRecord::dtype, value.starts_with("e4m3") || value.starts_with("e5m2") ? "fp8" : value);
    if (name == "final-lr-fraction") fraction_ = parse_printed(value, Kind::counted, 1, line);
    if (const SettingName* known = setting_named(options, name)) {
      const auto number = parse_printed(value, Kind::counted, 1, line);
      // Given in a program: exactly this number; -1 and 0 GPUs stand for a default.
      if (number && number->value > 0) builder.setting(known->setting, exactly(number->value, line));
    }
    const auto& highest = builder.current(Setting::learning_rate);
    if (highest && fraction_)
      builder.setting(Setting::learning_rate_min, exactly(highest->value * fraction_->value, line));
  }

  bool in_options_ = false;
  std::optional<Printed> in_use_;  ///< of the fullest device, until a step stands behind it
  Units units_;                    // of the lines that are known
  LineShapes shapes_;
  ReadAgain again_ = [](std::string_view text, std::int64_t line, Step& step) {
    Units units;
    if (read_raw(text, line, step, units, nullptr)) widen(step, units);
  };
  std::optional<Printed> fraction_;
};

}  // namespace
}  // namespace llmq

LineFormat llmq_format() {
  Format format;
  format.name = "llmq";
  format.tokens_per_second = Scope::all;
  format.convention = "llmq";
  format.first_step_is_zero = true;
  return {format,
          [](std::string_view text) {
            Step step;
            llmq::Units units;
            return text.find(llmq::step_start) != std::string_view::npos &&
                   llmq::read_raw(text, 0, step, units, nullptr);
          },
          [] { return std::unique_ptr<LineReader>(std::make_unique<llmq::LlmQ>()); },
          {llmq::step_start}};
}

}  // namespace assay::spec::audit
