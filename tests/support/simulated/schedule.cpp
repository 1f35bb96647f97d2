// The learning rates of a simulated run: the schedule that is drawn for it, and its trainer's formula.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "tests/support/simulated/draw.hpp"

namespace assay::tests {
namespace simulated {

void draw_schedule(Draw& draw, SimulatedRun& run, std::int64_t steps) {
  run.schedule = "cosine";
  if (run.format == LogFormat::hugging_face || run.format == LogFormat::hugging_face_console)
    run.schedule = draw.one_of<const char*>({"cosine", "linear"});
  run.highest_rate = draw.one_of<double>({1e-4, 3e-4, 6e-4, 1.5e-3});
  run.lowest_rate = run.highest_rate * draw.one_of<double>({0.1, 0.05});
  if (run.format == LogFormat::hugging_face || run.format == LogFormat::hugging_face_console)
    run.lowest_rate = 0;
  run.warmup_steps = draw.between(2, steps / 3);
  run.decay_steps = steps;
}

void draw_rarities(std::uint64_t seed, SimulatedRun& run, std::int64_t steps) {
  Draw draw(seed, 5000 + static_cast<std::uint32_t>(run.format));
  const bool other = draw.between(0, 1) == 1;
  run.wsd_decay = draw.one_of<const char*>({"linear", "cosine", "exponential", "minus_sqrt"});
  run.wsd_decay_steps = draw.between(2, std::max<std::int64_t>(2, steps / 4));
  const auto choose = [&](std::initializer_list<const char*> kinds) {
    const char* const kind = draw.one_of<const char*>(kinds);
    if (other) run.schedule = kind;
  };
  switch (run.format) {
    case LogFormat::megatron:
      choose({"linear", "constant", "inverse-square-root", "WSD", "WSD"});
      break;
    case LogFormat::llmc:
      run.wsd_decay = "minus_sqrt";
      run.wsd_decay_steps = steps - static_cast<std::int64_t>(0.8 * static_cast<double>(steps));
      choose({"linear", "constant", "wsd"});
      break;
    case LogFormat::assay:
      choose({"linear"});
      break;
    case LogFormat::nanotron:
      run.wsd_decay = "linear";
      choose({"linear", "wsd"});
      run.batch_in_tokens = draw.between(0, 1) == 1;
      break;
    case LogFormat::kempnerforge:
      choose({"linear", "constant"});
      break;
    default:
      break;
  }
  const bool scaled = run.format == LogFormat::megatron || run.format == LogFormat::hugging_face ||
                      run.format == LogFormat::hugging_face_console;
  run.fp16 = scaled && draw.between(0, 2) == 0;
  // The scale starts too high, and is raised again now and then.
  const std::int64_t at_first = draw.between(1, 3);
  std::int64_t left_out = 0;
  for (std::int64_t i = 0; i < steps; ++i) {
    SimulatedStep& step = run.steps[static_cast<std::size_t>(i)];
    step.skipped = run.fp16 && (i < at_first || draw.between(0, 39) == 0);
    left_out += step.skipped;
    // Both trainers' schedules wait.
    step.learning_rate = scheduled_rate(run, i - left_out);
    if (step.skipped) step.gradient_norm = draw.one_of<double>({std::nan(""), HUGE_VAL});
  }
}

}  // namespace simulated

bool is_wsd(const SimulatedRun& run) { return run.schedule == "wsd" || run.schedule == "WSD"; }

double scheduled_rate(const SimulatedRun& run, std::int64_t i) {
  const double peak = run.highest_rate, low = run.lowest_rate;
  double u = static_cast<double>(i + 1), rise = static_cast<double>(run.warmup_steps);
  const double end = static_cast<double>(run.decay_steps);
  double length = end - rise;
  switch (run.format) {
    case LogFormat::nanogpt:
    case LogFormat::llm_tii:
    case LogFormat::llm_tii_json:
      if (i < run.warmup_steps) return peak * u / (rise + 1);
      u = static_cast<double>(i);
      break;
    case LogFormat::llmc:
    case LogFormat::build_nanogpt:
      if (i < run.warmup_steps) return peak * u / rise;
      u = static_cast<double>(i);
      break;
    case LogFormat::llmq:
    case LogFormat::llmq_json:
      if (i < run.warmup_steps) return peak * static_cast<double>(i) / rise;
      u = static_cast<double>(i);
      length = end;
      break;
    default:
      if (u <= rise) return run.first_rate + (peak - run.first_rate) * u / rise;
  }
  const double x = std::min(1.0, (u - rise) / length);
  if (run.schedule == "constant") return peak;
  if (run.schedule == "linear") return peak + (low - peak) * x;
  if (run.schedule == "inverse-square-root") {
    // Of samples: no less than one of them.
    const double one = run.schedule_by == SimulatedRun::ScheduleBy::samples ? 1 / run.sequences() : 1.0;
    return std::max(low, peak * std::sqrt(std::max(one, rise) / std::max(one, u)));
  }
  if (is_wsd(run)) {
    const double decay = static_cast<double>(run.wsd_decay_steps),
                 y = std::clamp((u - (end - decay)) / decay, 0.0, 1.0);
    const double left = run.wsd_decay == "linear"        ? 1 - y
                        : run.wsd_decay == "cosine"      ? (1 + std::cos(std::numbers::pi * y)) / 2
                        : run.wsd_decay == "exponential" ? 2 * std::pow(0.5, y) - 1
                                                         : 1 - std::sqrt(y);
    return low + left * (peak - low);
  }
  return low + (peak - low) * 0.5 * (1 + std::cos(std::numbers::pi * x));
}

}  // namespace assay::tests
