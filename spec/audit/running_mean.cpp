#include "spec/audit/running_mean.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

namespace assay::spec::audit {
namespace {

/// Steps that are not printed are about as those that are. Chosen.
constexpr double unseen = 0.1;
/// Trainers form means in float32: a few units of 2^-24.
constexpr double of_float = 3e-7;

Interval widened(Interval numbers, double share) {
  return {numbers.low * (1 - share), numbers.high * (1 + share)};
}

/// A mean that falls by more than a step could lower it: a ratio, but of nothing.
Interval positive(Interval ratio) { return {std::max(ratio.low, 1e-9), std::max(ratio.high, 1e-9)}; }

}  // namespace

double usual_distance(const Evidence& e) {
  std::map<double, int> distances;
  for (const Stretch& stretch : e.stretches)
    for (std::size_t i = stretch.begin + 1; i < stretch.end; ++i)
      if (const auto& a = (*e.steps[i - 1])[Field::step], &b = (*e.steps[i])[Field::step];
          a && b && b->value > a->value)
        ++distances[b->value - a->value];
  // Trainers print the first step beside every tenth: of a few lines 9, 10 and 20 stand between, once each.
  const auto multiples = [&](double distance) {
    return std::count_if(e.steps.begin(), e.steps.end(), [&](const Step* step) {
      return (*step)[Field::step] && std::fmod((*step)[Field::step]->value, distance) == 0;
    });
  };
  std::ptrdiff_t most_multiples = 0;
  double best = 0;
  int most = 0;
  for (const auto& [distance, count] : distances) {
    if (count < most || (count == most && most > 1)) continue;
    const std::ptrdiff_t here = count > 1 ? 0 : multiples(distance);
    if (count == most && here <= most_multiples) continue;
    most = count, best = distance, most_multiples = here;
  }
  return best;
}

std::optional<RunningMean> running_mean(const Evidence& e, Field field) {
  const auto& smoothed = e.trainer.smoothed;
  return smoothed && smoothed->field == field ? std::optional(smoothed->mean) : std::nullopt;
}

/// Stretches and restarts are passed once, as lines are, in the order of the log.
void Means::find_beginnings() {
  begins_.assign(lines_.size(), false);
  std::vector<std::int64_t> restarts;
  for (const Restart& restart : e_.record.restarts) restarts.push_back(restart.line);
  std::sort(restarts.begin(), restarts.end());
  std::size_t stretch = 0, restart = 0;
  for (std::size_t k = 0; k < lines_.size(); ++k, ++looked_at_) {
    const std::size_t here = lines_[k].step;
    begins_[k] = k == 0 || unmeasured_between(lines_[k - 1].step, here);
    for (; stretch < e_.stretches.size() && e_.stretches[stretch].begin <= here; ++stretch, ++looked_at_)
      begins_[k] = true;
    for (; restart < restarts.size() && restarts[restart] <= e_.steps[here]->line; ++restart, ++looked_at_)
      begins_[k] = true;
  }
}

/// A line without a number yet behind lines that have one: the program began again.
bool Means::unmeasured_between(std::size_t from, std::size_t to) const {
  for (std::size_t i = from + 1; i < to; ++i)
    if (const auto& printed = (*e_.steps[i])[field_]; printed && not_measured(*printed)) return true;
  return false;
}

double Means::steps_between(std::size_t from, std::size_t to, const RunningMean& mean) const {
  const auto &before = (*e_.steps[lines_[from].step])[Field::step],
             &here = (*e_.steps[lines_[to].step])[Field::step];
  if (!before || !here) return static_cast<double>(to - from);
  const double distance = here->value - before->value;
  return mean.of_lines ? std::ceil(distance / usual_) : distance;
}

/// Whether the line before is of the same start, and prints no such number yet.
bool Means::follows_unmeasured(std::size_t line) const {
  const std::size_t step = lines_[line].step;
  if (step == 0 || (line > 0 && step == lines_[line - 1].step + 1)) return false;
  const auto &before = (*e_.steps[step - 1])[Field::step], &here = (*e_.steps[step])[Field::step];
  // Of a line that is cut the number may be lost.
  const auto& printed = (*e_.steps[step - 1])[field_];
  const bool none_yet = printed ? !usable(printed) : e_.record.cut_lines.count == 0;
  return before && here && here->value - before->value == usual_ && none_yet;
}

Means::Ratios Means::alone() const {
  Ratios out;
  for (const Line& line : lines_)
    out.push_back(Ratio{wide(*line.printed) / line.made, line.printed->value / line.likely});
  return out;
}

/// Steps that no line shows are about as those of the lines, a start's first aside.
Interval Means::unseen_steps() const {
  Interval all{std::numeric_limits<double>::infinity(), 0};
  for (std::size_t k = 0; k < lines_.size(); ++k)
    if (!begins_[k] || lines_.size() == 1)
      all = {std::min(all.low, lines_[k].made.low), std::max(all.high, lines_[k].made.high)};
  return widened(all, unseen);
}

/// The first line of a start, or of what is left of a log. `shown` is its mean before it is corrected by `c`.
Means::Chain Means::first(std::size_t k, const RunningMean& mean, Interval shown, double c) const {
  const Line& line = lines_[k];
  Chain out;
  out.shown = {shown, line.printed->value * c, true};
  const Interval fresh = line.made * exact_interval(1 - mean.keep);
  if (mean.corrected && c == 0) {  // the first step is printed alone
    out.by_line = Ratio{wide(*line.printed) / line.made, line.printed->value / line.likely};
    out.formed.known = true;
  } else if (!mean.corrected && follows_unmeasured(k)) {
    out.by_line = Ratio{shown / line.made, line.printed->value / line.likely};
    out.formed = {line.made, line.likely, true};
  } else if (mean.corrected && shown.meets(widened(fresh, 0.02))) {
    // After a checkpoint the mean starts at nothing, and is divided as if it had not.
    out.formed = {fresh, line.likely * (1 - mean.keep), true};
    out.by_line = Ratio{shown / fresh, out.shown.likely / out.formed.likely};
  } else if (lines_.size() < 4) {
    const Interval others = unseen_steps();
    out.by_line = Ratio{wide(*line.printed) / others, line.printed->value / others.middle()};
  }
  return out;
}

/// What a line adds to the mean of the line before is its step's own number, whatever came before both. The
/// mean formed of all steps since the first says the same more closely where few digits are printed. A line
/// that leaves the common `factor` says nothing of those behind it, unless they leave it too.
Means::Ratios Means::of_mean(const RunningMean& mean, std::optional<Interval> factor) const {
  const Interval others = unseen_steps();
  Ratios out(lines_.size());
  Chain chain;
  for (std::size_t k = 0; k < lines_.size(); ++k) {
    const Line& line = lines_[k];
    const auto& number = (*e_.steps[line.step])[Field::step];
    const double c = mean.corrected && number ? 1 - std::pow(mean.keep, number->value - 1) : 1;
    const Interval shown = widened(wide(*line.printed), of_float) * exact_interval(c);
    if (begins_[k]) {
      chain = first(k, mean, shown, c);
      out[k] = chain.by_line;
      chain.last = k;
      continue;
    }
    const double steps = steps_between(chain.last, k, mean);
    if (steps < 1) continue;                                                   // a copy of that line
    const double old = std::pow(mean.keep, steps), between = mean.keep - old;  // of steps that no line shows
    const Interval fresh = line.made * exact_interval(1 - mean.keep) + others * exact_interval(between);
    const double likely = line.likely * (1 - mean.keep) + others.middle() * between,
                 value = line.printed->value * c;
    out[k] = Ratio{positive((shown - chain.shown.numbers * exact_interval(old)) / fresh),
                   (value - chain.shown.likely * old) / likely};
    Known formed = chain.formed;
    if (formed.known) {
      formed = {formed.numbers * exact_interval(old) + fresh, formed.likely * old + likely, true};
      out[k] = closer(*out[k], {shown / formed.numbers, value / formed.likely}, factor);
    }
    if (factor && !out[k]->range.meets(*factor))
      if (const auto ratio = left_out_before(k, chain, mean, *factor)) {
        out[k] = ratio;
        formed = {};
      }
    if (factor && !out[k]->range.meets(*factor) && !std::exchange(chain.left_out, true)) {
      // One step much faster or slower than its neighbours, where it stands in place of the mean.
      const Interval own = wide(*line.printed) / line.made;
      if (own.meets(*factor)) out[k] = Ratio{own, line.printed->value / line.likely};
      continue;
    }
    chain = {{shown, value, true}, formed, std::nullopt, k, false};
  }
  return out;
}

Means::Ratio Means::closer(const Ratio& by_line, const Ratio& by_all, std::optional<Interval> factor) {
  if (by_line.range.meets(by_all.range))
    return {{std::max(by_line.range.low, by_all.range.low), std::min(by_line.range.high, by_all.range.high)},
            by_all.likely};
  // The line before is wrong, not this one.
  return factor && by_all.range.meets(*factor) ? by_all : by_line;
}

std::vector<Interval> Means::ranges_of(const Ratios& ratios) {
  std::vector<Interval> out;
  for (const auto& ratio : ratios)
    if (ratio) out.push_back(ratio->range);
  return out;
}

std::size_t Means::misses(const Ratios& ratios, const Interval& factor) {
  return static_cast<std::size_t>(std::count_if(
      ratios.begin(), ratios.end(), [&](const auto& ratio) { return ratio && !ratio->range.meets(factor); }));
}

/// A mean of steps that are not known one by one lies between them, and a tenth beyond for those not printed.
void Means::within_range() const {
  Interval all{std::numeric_limits<double>::infinity(), 0};
  for (const Line& line : lines_) {
    all = {std::min(all.low, line.made.low), std::max(all.high, line.made.high)};
    add_sample(to_, *line.printed, widened(all, unseen), static_cast<std::int64_t>(line.step));
  }
}

void Means::add_all(const Ratios& ratios) {
  for (std::size_t k = 0; k < lines_.size(); ++k)
    if (const auto& ratio = ratios[k]) {
      const Printed& printed = *lines_[k].printed;
      to_.samples.push_back({ratio->range,
                             printed.value,
                             {printed.value / ratio->range.high, printed.value / ratio->range.low},
                             printed.line,
                             static_cast<std::int64_t>(lines_[k].step),
                             ratio->likely});
    }
}

void Means::finish() {
  if (lines_.empty()) return;
  if (open_) return by_its_lines();
  const auto mean = running_mean(e_, field_);
  if (!mean) return within_range();
  usual_ = std::max(e_.line_distance, 1.0);
  find_beginnings();
  // Relatives of a trainer print single numbers (train_gpt2.py), or form another mean: what lets most lines
  // be off by one factor is how they are made.
  Ratios of_step = alone(), of_mean = this->of_mean(*mean, std::nullopt);
  const std::size_t by_step = shared_factor(ranges_of(of_step)).ratios,
                    by_mean = shared_factor(ranges_of(of_mean)).ratios;
  if (3 * std::max(by_step, by_mean) < lines_.size()) return within_range();
  const std::size_t told_by_mean = ranges_of(of_mean).size();
  const bool single =
      by_step * std::max<std::size_t>(told_by_mean, 1) > by_mean * lines_.size() && lines_.size() > 1;
  const Interval by_lines = shared_factor(ranges_of(of_mean)).factor,
                 by_steps = shared_factor(ranges_of(of_step)).factor;
  Ratios ratios = single ? of_step : this->of_mean(*mean, by_lines);
  // Of an excerpt either may be met by chance: what its lines were made with is where none is wrong.
  if (mean->of_lines && misses(ratios, single ? by_steps : by_lines) > 0)
    if (Ratios other = this->of_mean(*mean, by_steps); misses(other, by_steps) == 0)
      ratios = std::move(other);
  add_all(ratios);
}

}  // namespace assay::spec::audit
