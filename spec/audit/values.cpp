// Numbers that nothing measures: negative times, infinite rates.
#include <cmath>

#include "spec/audit/groups.hpp"
#include "spec/audit/invariants.hpp"

namespace assay::spec::audit {
namespace {

struct Checked {
  Field field;
  const char* name;
};
constexpr Checked checked[] = {{Field::seconds, "step time"},
                               {Field::tokens_per_second, "tokens/s"},
                               {Field::sequences_per_second, "sequences/s"},
                               {Field::gpu_tokens_per_second, "tokens/s of one GPU"},
                               {Field::tokens, "tokens"},
                               {Field::flops_rate, "FLOP/s"},
                               {Field::flops_per_token, "FLOPs/token"},
                               {Field::peak_flops, "peak"},
                               {Field::tokens_total, "tokens since the start"},
                               {Field::sequences_total, "sequences since the start"},
                               {Field::learning_rate, "learning rate"},
                               {Field::gradient_norm, "gradient norm"},
                               {Field::memory_allocated, "memory allocated"},
                               {Field::memory_peak, "peak memory"},
                               {Field::memory_reserved, "memory reserved"},
                               {Field::elapsed, "time since the start"}};

/// Sizes of which there is one at the least. -1 and 0 are some trainers' words for "not set", and are
/// reported at a length, a micro-batch and a shape alone where they are 0; our own record states each as it
/// was.
constexpr Setting sizes[] = {Setting::sequence_length,
                             Setting::micro,
                             Setting::accumulation,
                             Setting::sequences,
                             Setting::tokens_per_step,
                             Setting::gpus,
                             Setting::data_parallel,
                             Setting::tensor_parallel,
                             Setting::pipeline_parallel,
                             Setting::context_parallel,
                             Setting::expert_parallel,
                             Setting::parameters,
                             Setting::layers,
                             Setting::width,
                             Setting::heads,
                             Setting::kv_heads,
                             Setting::head_dim,
                             Setting::ffn,
                             Setting::vocab};

/// Marks settings that are no size of anything in `out`, and says of the first what it is.
std::string impossible_sizes(const RunRecord& record, Result& out) {
  std::string what;
  const bool record_states_all = trainer_of(record).states_all_sizes;
  for (const Setting setting : sizes) {
    const auto& size = record[setting];
    const bool needed = record_states_all || setting == Setting::sequence_length ||
                        setting == Setting::micro || setting == Setting::layers || setting == Setting::width;
    if (!size || !std::isfinite(size->value) || size->value > 0) continue;
    if ((size->value == -1 && !record_states_all) || (size->value == 0 && !needed)) continue;
    contradict(out, size->value, {1, 1e300}, size->line);
    ++out.judged;
    if (what.empty())
      what = std::string(to_string(setting)) + " is " + shown(size->value, Unit::none) +
             ", and a size is 1 or more";
  }
  return what;
}

}  // namespace

Result judge_values(const Evidence& e) {
  Result out = holding(0);
  std::int64_t not_numbers = 0, first = 0, overflowed = 0;
  std::string what, none;
  for (const Step* step : e.steps)
    for (const auto& [field, name] : checked) {
      const auto& number = (*step)[field];
      if (!number) continue;
      const bool norm = field == Field::gradient_norm;
      // loss_finite judges norms that are no number; DeepSpeed returns -1 for one that overflowed.
      if (norm && !(std::abs(number->value) < HUGE_VAL)) continue;
      if (norm && number->value == -1 && !e.trainer.own_gradient_norm) {
        ++overflowed;
        continue;
      }
      const std::int64_t line = number->line ? number->line : step->line;
      if (std::isnan(number->value)) {
        if (not_numbers++ == 0) first = line, none = name;
        continue;
      }
      ++out.judged;
      if (std::isfinite(number->value) && number->value >= 0) continue;
      contradict(out, number->value, {0, 1e300}, line);
      if (what.empty())
        what = std::string(name) + (std::isinf(number->value) ? " is infinite" : " is below 0");
    }
  const auto impossible = [&](Setting setting, const char* name) {
    const auto& number = e.record[setting];
    if (!number || !(number->value < 0)) return;
    ++out.judged;
    contradict(out, number->value, {0, 1e300}, number->line);
    if (what.empty()) what = std::string(name) + " is below 0";
  };
  impossible(Setting::total_seconds, "the time of the run");
  impossible(Setting::average_steps_per_second, "steps/s of the run");
  impossible(Setting::average_sequences_per_second, "sequences/s of the run");
  impossible(Setting::average_tokens_per_second, "tokens/s of the run");
  Cause alone = judge_lone_numbers(e, out);
  judge_all_zeros(e, out, alone);
  for (const RuledOutNumber& number : e.record.ruled_out) {
    ++out.judged;
    contradict(out, number.value, {number.least, number.most}, number.line);
    const bool below = number.value < number.least;
    if (what.empty())
      what = number.name + (below ? " is below " : " is above ") +
             shown(below ? number.least : number.most, Unit::none);
  }
  std::string nans = not_numbers == 0
                         ? ""
                         : std::to_string(not_numbers) +
                               (not_numbers == 1 ? " number is NaN" : " numbers are NaN") +
                               ", not measured: the first, " + none + ", in line " + std::to_string(first);
  if (overflowed > 0)
    nans += (nans.empty() ? "" : "; ") + std::to_string(overflowed) +
            (overflowed == 1 ? " gradient norm is" : " gradient norms are") +
            " -1, and not judged: DeepSpeed returns it for one that overflowed";
  if (const std::string size = impossible_sizes(e.record, out); !size.empty()) {
    out.note = size;
    blame(
        out, "size_impossible",
        size +
            ": its line is damaged or its program miscounted; nothing is judged by it (state it with --set)");
    return out;
  }
  if (out.judged == 0) return not_judged(nans.empty() ? "numbers of steps" : nans);
  out.recomputed = {0, 1e300};
  if (what.empty() && !alone.id.empty()) {
    out.note = alone.text + (nans.empty() ? "" : "; " + nans);
    blame(out, alone.id, alone.text);
  } else if (what.empty()) {
    out.printed = static_cast<double>(out.judged);
    out.note = "so many numbers, none of them impossible" + (nans.empty() ? "" : "; " + nans);
  } else {
    out.note = what + (nans.empty() ? "" : "; " + nans);
    blame(out, "value_impossible",
          what + (what.ends_with("infinite")          ? ": a division by a time of 0"
                  : what.starts_with("gradient norm") ? ": a length is never negative"
                  : !e.record.ruled_out.empty() && what.starts_with(e.record.ruled_out.front().name)
                      ? ": its own format rules it out"
                      : ": a clock set back, or a count that overflowed"));
  }
  return out;
}

}  // namespace assay::spec::audit
