// Whether some steps are faster than any step of the run can be.
#include <algorithm>
#include <cmath>

#include "spec/audit/groups.hpp"
#include "spec/audit/mean_since_start.hpp"
#include "spec/audit/relations.hpp"
#include "spec/audit/unlogged_steps.hpp"
#include "spec/text/quantity.hpp"

namespace assay::spec::audit {
namespace {

/// The number below which that share of `sorted` lies. Domain: not empty.
double quantile(const std::vector<double>& sorted, double share) {
  return sorted[static_cast<std::size_t>(share * static_cast<double>(sorted.size() - 1))];
}

/// The time of step `i` by a clock besides its own time: the times of its parts, or the stamps of its line
/// and the one before. [s]
std::optional<Interval> clocked(const Evidence& e, std::size_t i) {
  const Step &step = *e.steps[i], &before = *e.steps[i - 1];
  if (const auto& phases = step[Field::phases]; usable(phases)) return wide(*phases);
  const auto &end = step[Field::elapsed], &begin = before[Field::elapsed];
  const auto &number = step[Field::step], &last = before[Field::step];
  if (!end || !begin || !number || !last || !(number->value > last->value)) return std::nullopt;
  return (wide(*end) - wide(*begin)) / exact_interval(number->value - last->value);
}

/// What every line with a time prints of its own batch, tokens or sequences: where the batch grows, steps
/// take longer and are no slower. Field::count_ where they print neither.
Field unit_of_batch(const Evidence& e) {
  for (const Field unit : {Field::tokens, Field::step_sequences})
    if (std::all_of(e.steps.begin(), e.steps.end(), [&](const Step* step) {
          return !usable((*step)[Field::seconds]) || usable((*step)[unit]);
        }))
      return unit;
  return Field::count_;
}

/// Whether more lines print a time than tokens/s: the two make no rates of one unit.
bool times_rather_than_rates(const Evidence& e) {
  const auto lines_of = [&](Field field) {
    return std::count_if(e.steps.begin(), e.steps.end(),
                         [&](const Step* step) { return usable((*step)[field]); });
  };
  return lines_of(Field::seconds) > lines_of(Field::tokens_per_second);
}

/// The median of those times; 0 where there are none. [s]
double usual_time(const Evidence& e) {
  std::vector<double> times;
  for (std::size_t i = 1; i < e.steps.size(); ++i)
    if (const auto time = clocked(e, i)) times.push_back(time->middle());
  if (times.empty()) return 0;
  std::sort(times.begin(), times.end());
  return quantile(times, 0.5);
}

/// A run that grows faster for good, or for a while: neighbours, as many as tell, alike to where a number is
/// nearer to once than to twice. Other GPUs, nobody else on the machine, another kernel. Chosen.
constexpr std::size_t fewest_of_a_stretch = 5;

/// Of places `fast` in `rates`, those of stretches that are steady: one is a mistake, many alike are a speed.
std::vector<bool> in_steady_stretches(const std::vector<std::pair<double, std::size_t>>& rates,
                                      const std::vector<bool>& fast) {
  std::vector<bool> out(rates.size(), false);
  for (std::size_t begin = 0, end = 0; begin < rates.size(); begin = std::max(end, begin + 1)) {
    double least = rates[begin].first, most = least;
    for (end = begin; end < rates.size() && fast[end]; ++end)
      least = std::min(least, rates[end].first), most = std::max(most, rates[end].first);
    if (end - begin >= fewest_of_a_stretch && most < half_way_to_twice * least)
      std::fill(out.begin() + static_cast<std::ptrdiff_t>(begin),
                out.begin() + static_cast<std::ptrdiff_t>(end), true);
  }
  return out;
}

}  // namespace

Result judge_rate_steady(const Evidence& e) {
  std::vector<std::pair<double, std::size_t>> rates;
  const Field unit = unit_of_batch(e);
  const bool by_time = times_rather_than_rates(e);
  // A mean starts low, with what came before the first step, and no step of its own is in it alone.
  if (!by_time && (e.record.format.rate_since_start || multiple_of_mean_since_start(e)))
    return not_judged("rates of single steps");
  for (std::size_t i = 1; i < e.steps.size(); ++i) {
    const auto &rate = (*e.steps[i])[Field::tokens_per_second], &seconds = (*e.steps[i])[Field::seconds];
    if (!by_time && usable(rate))
      rates.emplace_back(rate->value, i);
    else if (by_time && usable(seconds))
      rates.emplace_back((unit == Field::count_ ? 1 : (*e.steps[i])[unit]->value) / seconds->value, i);
  }
  if (rates.size() < 8) return not_judged("eight steps with a rate");
  std::vector<double> sorted;
  sorted.reserve(rates.size());
  for (const auto& [rate, i] : rates) sorted.push_back(rate);
  std::sort(sorted.begin(), sorted.end());
  const double median = sorted[sorted.size() / 2];
  // Steps may stall; what no step can do is run far faster than the others do at their best: as many times as
  // three times their spread, slowest quarter to best tenth, reaches beyond it (7 standard deviations of
  // normal logarithms from their mean), three times at least and ten times at most: where steps differ
  // sixfold between slow quarter and best tenth, the fastest of 10,000 (3.7 deviations) is 9 times that
  // tenth. A spread beyond is of several speeds, not of one that varies, and would forgive everything.
  const double best = sorted[sorted.size() - 1 - sorted.size() / 10], spread = best / quantile(sorted, 0.25);
  const double bound = best * std::clamp(spread * spread * spread, 3.0, 10.0);
  Result out = holding(static_cast<std::int64_t>(rates.size()));
  out.printed = rates.back().first;
  out.recomputed = {0, bound};
  // Beyond ten times the best even a lasting one is another unit.
  std::vector<bool> fast;
  fast.reserve(rates.size());
  for (const auto& [rate, i] : rates) fast.push_back(rate > bound && rate < 10 * best);
  const std::vector<bool> lasting = in_steady_stretches(rates, fast);
  std::int64_t real = 0, of_stretch = 0;
  double usual = -1;
  for (std::size_t k = 0; k < rates.size(); ++k) {
    const auto& [rate, i] = rates[k];
    if (!(rate > bound)) continue;
    if (lasting[k]) {
      ++of_stretch;
      continue;
    }
    if (usual < 0) usual = usual_time(e);
    // It was that fast, whatever made it so: a machine that others used meanwhile, batches read ahead.
    if (const auto time = clocked(e, i); time && time->low >= 0 && time->high < usual / 2)
      ++real;
    else
      contradict(out, rate, {0, bound}, e.steps[i]->line);
  }
  if (out.verdict == Verdict::contradicts) {
    out.note = "far faster than the best tenth of the other steps";
    blame(out, "rate_jump", "another unit, another batch, or a step that did nothing");
  } else {
    out.note = "slowest " + percent(sorted.front() / median - 1) + ", fastest +" +
               percent(sorted.back() / median - 1) + " against the median";
    if (real > 0)
      out.note += "; " + std::to_string(real) + " far faster than the others, as a second clock says too";
    if (of_stretch > 0)
      out.note += "; " + std::to_string(of_stretch) + " in a row far faster than the others, and steady";
  }
  return out;
}

}  // namespace assay::spec::audit
