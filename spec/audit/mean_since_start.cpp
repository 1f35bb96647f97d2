#include "spec/audit/mean_since_start.hpp"

#include <cmath>
#include <vector>

#include "spec/audit/clock_windows.hpp"
#include "spec/audit/relations.hpp"
#include "spec/audit/unlogged_steps.hpp"

namespace assay::spec::audit {

namespace {

/// The whole number, or one part in a whole number, that all but one of `one_of` of these are.
std::optional<double> whole_multiple_of(const std::vector<Interval>& multiples) {
  constexpr double as_near = 0.005;   // chosen, with `one_of`: so far no digits of a rate hide another one
  constexpr std::size_t one_of = 20;  // lines that may say something else
  if (multiples.size() < fewest_to_tell) return std::nullopt;
  const Shared shared = shared_factor(multiples);
  if ((multiples.size() - shared.ratios) * one_of > multiples.size()) return std::nullopt;
  const double x = shared.factor.middle(), whole = x < 1 ? 1 / std::round(1 / x) : std::round(x);
  const bool narrow = shared.factor.high <= shared.factor.low * (1 + as_near);
  if (!narrow || std::abs(x / whole - 1) > as_near) return std::nullopt;
  return whole;
}

/// Whether some line prints another rate than the first: one rate on every line is no mean that anything was
/// seen to move.
bool rate_moves(const Evidence& e) {
  const Printed* first = nullptr;
  for (const Step* step : e.steps) {
    const auto& rate = (*step)[Field::tokens_per_second];
    if (!usable(rate)) continue;
    if (!first) first = &*rate;
    if (rate->value != first->value) return true;
  }
  return false;
}

/// Tokens between two lines, as they count them, or of so many steps.
std::optional<Interval> gained(const Evidence& e, const Step& before, const Step& step) {
  if (const auto& total = step[Field::tokens_total], &last = before[Field::tokens_total]; total && last)
    return wide(*total) - wide(*last);
  const auto &number = step[Field::step], &earlier = before[Field::step];
  if (!number || !earlier || !e.tokens_per_step) return std::nullopt;
  return *e.tokens_per_step * exact_interval(number->value - earlier->value);
}

}  // namespace

std::optional<double> multiple_of_mean_since_start(const Evidence& e) {
  std::vector<Interval> multiples;
  for (const Step* step : e.steps) {
    const auto &rate = (*step)[Field::tokens_per_second], &elapsed = (*step)[Field::elapsed],
               &total = (*step)[Field::tokens_total];
    if (usable(rate) && usable(elapsed) && usable(total))
      multiples.push_back(wide(*rate) * wide(*elapsed) / wide(*total));
  }
  return rate_moves(e) ? whole_multiple_of(multiples) : std::nullopt;
}

std::optional<double> multiple_of_mean_since_line_before(const Evidence& e) {
  std::vector<Interval> multiples;
  for (const Stretch& stretch : e.stretches)
    for (std::size_t i = stretch.begin + 1; i < stretch.end; ++i) {
      const Step &before = *e.steps[i - 1], &step = *e.steps[i];
      const auto &rate = step[Field::tokens_per_second], &end = step[Field::elapsed],
                 &begin = before[Field::elapsed];
      if (!usable(rate) || !end || !begin || pause_between(e, before.line, step.line)) continue;
      const Interval clock = wide(*end) - wide(*begin);
      const auto tokens = gained(e, before, step);
      if (clock.low > 0 && tokens && tokens->low > 0) multiples.push_back(wide(*rate) * clock / *tokens);
    }
  return rate_moves(e) ? whole_multiple_of(multiples) : std::nullopt;
}

}  // namespace assay::spec::audit
