#include "spec/audit/line_clock.hpp"

#include <algorithm>
#include <cmath>

#include "spec/audit/denied_lines.hpp"
#include "spec/audit/groups.hpp"
#include "spec/audit/running_mean.hpp"
#include "spec/text/quantity.hpp"

namespace assay::spec::audit {
namespace {

/// Printed as a mean over the steps since the line before.
bool of_window(const Evidence& e, Field field) {
  return e.averaged(field) && e.trainer.means_since_line_before;
}

bool starts(const Evidence& e, std::size_t i) {
  return std::any_of(e.stretches.begin(), e.stretches.end(),
                     [&](const Stretch& stretch) { return stretch.begin == i; });
}

/// Of line `i`, each of whose steps takes `each` by `field`.
std::optional<LineWindow> window_of(const Evidence& e, std::size_t i, Field field, const Interval& each) {
  if (i == 0 || starts(e, i) || running_mean(e, field)) return std::nullopt;
  const Step &step = *e.steps[i], &before = *e.steps[i - 1];
  const auto &end = step[Field::elapsed], &begin = before[Field::elapsed], &number = step[Field::step],
             &last = before[Field::step];
  if (!end || !begin || !number || !last) return std::nullopt;
  LineWindow out;
  out.steps = number->value - last->value;
  if (!(out.steps > 0) || (out.steps != 1 && !of_window(e, field)) || out.steps > e.line_distance)
    return std::nullopt;
  out.clock = wide(*end) - wide(*begin);
  if (!(out.clock.low > 0)) return std::nullopt;
  out.ratio = exact_interval(out.steps) * each / out.clock;
  return out;
}

/// As line_window, but to an unknown factor, the same on every line: what a step takes by tokens/s, FLOP/s or
/// MFU is its batch, where lines print one, over that number.
std::optional<LineWindow> scaled_window(const Evidence& e, std::size_t i, Field field) {
  if (field == Field::seconds || i >= e.steps.size()) return line_window(e, i, field);
  const Step& step = *e.steps[i];
  if (!usable(step[field])) return std::nullopt;
  Interval work{1, 1};
  for (const Field batch : {Field::step_sequences, Field::tokens})
    if (usable(step[batch])) work = wide(*step[batch]);
  return window_of(e, i, field, work / wide(*step[field]));
}

/// Whether a running mean can be what line `i` prints: the next line's holds most of it, and it most of the
/// line's before. Nothing where there are no such lines.
std::optional<bool> mean_goes_on(const Evidence& e, std::size_t i, Field field) {
  const auto mean = running_mean(e, field);
  if (!mean || i + 1 >= e.steps.size() || starts(e, i + 1)) return std::nullopt;
  const auto &here = (*e.steps[i])[field], &next = (*e.steps[i + 1])[field];
  const auto &number = (*e.steps[i])[Field::step], &later = (*e.steps[i + 1])[Field::step];
  if (!usable(here) || !usable(next) || !number || !later) return std::nullopt;
  const double steps = mean->of_lines ? 1 : std::max(1.0, later->value - number->value);
  return wide(*next).high >= std::pow(mean->keep, steps) * wide(*here).low;
}

/// The median of the scaled windows of all lines but `left_out`; 1 where there are none.
double usual_ratio(const Evidence& e, Field field, std::size_t left_out) {
  std::vector<double> ratios;
  for (std::size_t i = 1; i < e.steps.size(); ++i)
    if (const auto window = scaled_window(e, i, field); window && i != left_out)
      ratios.push_back(window->ratio.middle());
  if (ratios.empty()) return 1;
  std::sort(ratios.begin(), ratios.end());
  return ratios[ratios.size() / 2];
}

}  // namespace

std::optional<LineWindow> line_window(const Evidence& e, std::size_t i, Field field) {
  if (i >= e.steps.size() || !usable((*e.steps[i])[field])) return std::nullopt;
  const Interval printed = wide(*(*e.steps[i])[field]);
  if (field == Field::seconds) return window_of(e, i, field, printed);
  if (field != Field::tokens_per_second) return std::nullopt;  // neither a time nor of known work
  // One GPU's rate says nothing of the step where the number of GPUs is lost.
  const bool of_gpu = e.record.format.tokens_per_second == Scope::gpu;
  if (!e.tokens_per_step || (of_gpu ? !e.gpus : e.record.format.tokens_per_second != Scope::all))
    return std::nullopt;
  return window_of(e, i, field, *e.tokens_per_step / printed * exact_interval(of_gpu ? 1 / *e.gpus : 1));
}

void clear_by_stamps(const Evidence& e, std::size_t i, double off, std::vector<Field>& fields) {
  if (!(off > 0) || !std::isfinite(off)) return;
  const std::vector<Field> all = fields;
  for (const Field field : all) {
    if (fields.size() < 2) return;
    const auto goes_on = mean_goes_on(e, i, field);
    bool right = false, wrong = goes_on && !*goes_on;
    if (const auto window = scaled_window(e, i, field)) {
      // As the other lines' windows, or only if the number is so many times what it is, or one part in them.
      const double usual = usual_ratio(e, field, i);
      const auto fits = [&](double times) {
        return Interval{window->ratio.low * times / usual, window->ratio.high * times / usual}.meets(
            {1 / (1 + likeness_of_windows), 1 + likeness_of_windows});
      };
      const bool stands = fits(1), other = fits(off) || fits(1 / off);
      right = stands && !other;
      wrong = wrong || (!stands && other);
    }
    if (wrong) fields = {field};
    if (right) std::erase(fields, field);
  }
}

Result judge_line_clock(const Evidence& e) {
  Result out = holding(0);
  for (const Field field : {Field::seconds, Field::tokens_per_second}) {
    const DeniedLines denied = denied_lines(e, field);
    if (denied.judged < 3) continue;
    if (denied.most && !denied.part) return not_judged("a clock that goes with the times of its lines");
    out.judged += static_cast<std::int64_t>(denied.judged);
    for (const std::size_t i : denied.lines) {
      const LineWindow window = *line_window(e, i, field);
      contradict(out, window.ratio.middle() * window.clock.middle(), window.clock, e.steps[i]->line);
      if (out.contradicted == 1) out.off_by = window.ratio.middle();
    }
    if (denied.part)
      blame_part(out, field);
    else if (out.verdict == Verdict::contradicts)
      blame_line(out, field);
    else
      for (std::size_t i = e.steps.size(); i-- > 1;)
        if (const auto last = line_window(e, i, field)) {
          out.printed = last->ratio.middle() * last->clock.middle(), out.recomputed = last->clock;
          break;
        }
    break;  // where times are printed they stand for the rates
  }
  if (out.judged == 0) return not_judged("stamps and times of three lines");
  if (out.verdict == Verdict::contradicts)
    out.note = "the steps since the line before, by the line's own number";
  return out;
}

}  // namespace assay::spec::audit
