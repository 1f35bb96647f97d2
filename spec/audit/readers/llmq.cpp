// llm.q's console: formats.md, "llmq". It divides whole milliseconds and cuts off instead of rounding; the
// intervals say so.
#include <cmath>

#include "spec/audit/readers/line_reader.hpp"
#include "spec/audit/readers/scan.hpp"

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

bool read_time(std::string_view rest, std::int64_t line, Step& step) {
  const auto time = cut_off(rest, 1, line);
  if (!time) return false;
  rest = trimmed(rest);
  const double unit = rest.starts_with("ms") ? 1e-3 : rest.starts_with('s') ? 1 : 0;
  if (unit == 0) return false;
  step[Field::seconds] = Printed{time->value * unit, time->low * unit, time->high * unit, line};
  return true;
}

/// tokens / (whole milliseconds): never below the true rate, but for the cut.
bool read_rate(std::string_view rest, std::int64_t line, Step& step) {
  std::string_view behind_number = rest;
  const auto rate = cut_off(behind_number, 1, line);
  if (!rate) return trimmed(rest).starts_with('-');  // no time has passed
  const double unit = behind_number.starts_with('k') ? 1e3 : 1, time = step[Field::seconds]->value;
  const double shortened = time > 0 ? time / (time + 1e-3) : 0;
  // Also a rate below 0, which is no rate but may stand there, lies in its own interval.
  step[Field::tokens_per_second] =
      Printed{rate->value * unit, (rate->low - std::abs(rate->low) * (1 - shortened)) * unit,
              rate->high * unit, line};
  return true;
}

bool read_numbers(std::string_view text, std::int64_t line, Step& step) {
  Scan scan(text, line);
  scan.take(step, Field::step, step_start, Kind::counted, 1, {}, true);
  if (!read_time(scan.behind_next("time:"), line, step)) return false;
  scan.take(step, Field::gradient_norm, "norm ", Kind::measured);
  scan.take(step, Field::loss, "loss ", Kind::measured, 1, {}, true);
  if (const auto rate = scan.behind_next("tps "); rate.data() && !read_rate(rate, line, step)) return false;
  if (const auto share = scan.after("| sol ", Kind::measured, 0.01, "%")) {
    // Both times of the quotient are whole milliseconds.
    const double time = step[Field::seconds]->value * 1e3, least = share->value * time;
    const double slack = least > 1 ? 1 / least + 1 / time : 1;
    step[Field::mfu] = Printed{share->value, share->low - std::abs(share->low) * slack,
                               share->high + std::abs(share->high) * slack, line};
  }
  return !scan.bad();
}

struct Option {
  std::string_view name;
  Setting setting;
};
constexpr Option options[] = {{"batch-size", Setting::micro},
                              {"grad-accumulation", Setting::accumulation},
                              {"seq-len", Setting::sequence_length},
                              {"steps", Setting::max_steps},
                              {"warmup", Setting::warmup_steps},
                              {"learning-rate", Setting::learning_rate},
                              {"gpus", Setting::gpus}};

class LlmQ : public LineReader {
 public:
  void read(const Line& line, RecordBuilder& builder) override {
    if (line.text.find(step_start) == std::string_view::npos)
      return read_header(line.text, line.number, builder);
    Step step;
    if (read_numbers(line.text, line.number, step) && (line.complete || line.text.ends_with('%')))
      builder.step(step);
    else
      builder.unread(line.text);
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
    for (const Option& known : options) {
      if (known.name != name) continue;
      const auto number = parse_printed(value, Kind::counted, 1, line);
      // Given in a program: exactly this number; -1 and 0 GPUs stand for a default.
      if (number && number->value > 0) builder.setting(known.setting, exactly(number->value, line));
    }
    const auto& highest = builder.current(Setting::learning_rate);
    if (highest && fraction_)
      builder.setting(Setting::learning_rate_min, exactly(highest->value * fraction_->value, line));
  }

  bool in_options_ = false;
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
            return text.find(llmq::step_start) != std::string_view::npos && llmq::read_numbers(text, 0, step);
          },
          [] { return std::unique_ptr<LineReader>(std::make_unique<llmq::LlmQ>()); }};
}

}  // namespace assay::spec::audit
