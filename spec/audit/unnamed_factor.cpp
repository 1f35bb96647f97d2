#include "spec/audit/unnamed_factor.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "spec/audit/invariants.hpp"
#include "spec/text/quantity.hpp"

namespace assay::spec::audit {
namespace {

using R = Relation;

/// The relations that a number enters, and whether it is printed (1) or recomputed with (-1) there.
struct Number {
  std::vector<std::pair<R, int>> enters;
};
const std::vector<Number>& numbers() {
  static const std::vector<Number> all = {
      {{{R::mfu, 1}, {R::mfu_of_flops_rate, 1}, {R::mfu_of_batch, 1}}},
      {{{R::flops_rate, 1}, {R::flops_rate_of_batch, 1}, {R::mfu_of_flops_rate, -1}}},
      // FLOP/s, and the MFU that is made of them.
      {{{R::flops_rate, 1}, {R::flops_rate_of_batch, 1}, {R::mfu, 1}, {R::mfu_of_batch, 1}}}};
  return all;
}

/// What the relations hold their number against; empty where none is reported.
std::string against(const std::vector<R>& relations) {
  const auto has = [&](R relation) {
    return std::find(relations.begin(), relations.end(), relation) != relations.end();
  };
  const bool made = has(R::mfu) || has(R::mfu_of_batch);
  switch (relations.front()) {
    case R::mfu:
      return has(R::mfu_of_flops_rate) ? "MFU is # what its own FLOP/s and peak give"
                                       : "MFU is # what model, tokens/s and peak give";
    case R::mfu_of_flops_rate:
      return "MFU is # what its own FLOP/s and peak give";
    case R::mfu_of_batch:
      return "MFU is # what model, batch, time and peak give";
    case R::flops_rate:
      return std::string(made ? "FLOP/s and MFU" : "the FLOP/s") + " are # what model and tokens/s give";
    case R::flops_rate_of_batch:
      return std::string(made ? "FLOP/s and MFU" : "the FLOP/s") + " are # what model, batch and time give";
    case R::rate_wall_clock:
      return "tokens/s is # what tokens and time since the start give";
    default:
      return "";
  }
}

/// What most lines leave open of printed / recomputed; nothing where they do not share one factor.
std::optional<Interval> one_factor(const Comparison& comparison) {
  std::vector<Interval> ratios;
  for (const Sample& sample : comparison.samples) ratios.push_back(sample.ratio);
  const Shared shared = shared_factor(ratios);
  const std::size_t n = ratios.size(), others = n - shared.ratios;
  if (n == 0 || others > (n < 8 ? 0 : n / 20)) return std::nullopt;
  return shared.factor;
}

/// "0.80", or as many digits as tell it from 1.
std::string how_often(double x) {
  if (x >= 100 || x < 0.01) return shown(x, Unit::none);
  return fixed(x, std::abs(x - 1) < 0.02 ? 3 : 2);
}

/// "1.00 times, on other lines 1.10 times,": where all lines share one of two factors.
std::string two_factors(const Comparison& comparison, double explained) {
  if (!comparison.ways.empty()) return "";
  std::vector<Interval> ratios, others;
  for (const Sample& sample : comparison.samples) ratios.push_back(sample.ratio);
  const Shared most = shared_factor(ratios);
  for (const Interval& ratio : ratios)
    if (!ratio.meets(most.factor)) others.push_back(ratio);
  const Shared rest = shared_factor(others);
  if (others.size() < 2 || rest.ratios < others.size()) return "";
  return how_often(most.factor.middle() / explained) + " times, on other lines " +
         how_often(rest.factor.middle() / explained) + " times,";
}

/// The factor by which the number is off: as the numbers are printed, within what most lines leave; of the
/// way of counting that leaves it nearest to 1.
std::string factor_text(const Comparison& comparison, double explained) {
  const auto within = one_factor(comparison);
  if (!within) return two_factors(comparison, explained);
  const double x = std::clamp(likely_ratio(comparison), within->low, within->high) / explained;
  if (comparison.ways.empty()) return how_often(x) + " times";
  double nearest = 0;
  const FlopCounting* chosen = nullptr;
  for (const FlopCounting& way : comparison.ways)
    if (const double here = x / way.scale.middle();
        !chosen || std::abs(std::log(here)) < std::abs(std::log(nearest)))
      nearest = here, chosen = &way;
  // What is counted is a range itself: no factor of it is known closer than that.
  if (chosen->scale.high > 1.002 * chosen->scale.low) return "";
  return how_often(nearest) + " times";
}

/// Of a clock that is held on every line: how often tokens/s are what the lines' tokens and clock make.
std::string factor_of_rates(const Comparison& of_times, double explained) {
  if (of_times.samples.size() < 2) return "";
  Comparison of_rates;
  for (Sample sample : of_times.samples) {
    sample.ratio = exact_interval(1) / sample.ratio;
    sample.likely = sample.likely > 0 ? 1 / sample.likely : 0;
    of_rates.samples.push_back(sample);
  }
  return factor_text(of_rates, 1 / explained);
}

}  // namespace

Unnamed unnamed(const Comparisons& comparisons, const Factors& factors, const std::vector<Relation>& left) {
  const auto open = [&](R relation) { return std::find(left.begin(), left.end(), relation) != left.end(); };
  Unnamed out{{left.front()}, unknown(left.front())};
  for (const Number& number : numbers()) {
    Interval shared{0, 1e300};
    std::vector<R> together;
    bool fits = true, holds_first = false;
    for (const auto& [relation, sign] : number.enters) {
      const Comparison& here = at(comparisons, relation);
      if (here.samples.empty()) continue;
      const auto within = one_factor(here);
      fits = fits && open(relation) && within && here.ways.empty();
      if (!fits) break;
      const Interval off = *within / exact_interval(factors[relation]),
                     by = sign > 0 ? off : exact_interval(1) / off;
      shared = {std::max(shared.low, by.low), std::min(shared.high, by.high)};
      together.push_back(relation);
      holds_first |= relation == left.front();
    }
    if (!fits || !holds_first || shared.low > shared.high || together.size() <= out.relations.size())
      continue;
    out.relations = together;
  }
  for (const R relation : out.relations) out.change.factors[relation] = 0;
  std::string text = against(out.relations);
  const R first = out.relations.front();
  const std::string factor = first == R::rate_wall_clock
                                 ? factor_of_rates(at(comparisons, first), factors[first])
                                 : factor_text(at(comparisons, first), factors[first]);
  const Comparison& here = at(comparisons, first);
  const char* const ways = here.ways.empty() ? ""
                           : here.of_ranks   ? " with the GPUs that come nearest"
                                             : " as the nearest convention counts";
  if (const auto place = text.find('#'); place != std::string::npos && !factor.empty())
    out.change.text = text.replace(place, 1, factor) + ways + "; no known reading gives this factor";
  return out;
}

}  // namespace assay::spec::audit
