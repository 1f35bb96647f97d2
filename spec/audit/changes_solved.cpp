// Changes with a free number: how many passes, GPUs, tokens, or which share, makes a ratio agree.
#include <algorithm>
#include <cmath>

#include "spec/audit/invariants.hpp"
#include "spec/audit/solving.hpp"
#include "spec/text/quantity.hpp"

namespace assay::spec::audit {

Interval median_ratio(const Comparison& comparison) {
  std::vector<double> low, high;
  for (const Sample& sample : comparison.samples) {
    low.push_back(sample.ratio.low);
    high.push_back(sample.ratio.high);
  }
  const auto middle = static_cast<std::ptrdiff_t>(low.size() / 2);
  std::nth_element(low.begin(), low.begin() + middle, low.end());
  std::nth_element(high.begin(), high.begin() + middle, high.end());
  const Interval ways = all_ways(comparison);
  return {std::min(low[static_cast<std::size_t>(middle)], high[static_cast<std::size_t>(middle)]) / ways.high,
          high[static_cast<std::size_t>(middle)] / ways.low};
}

double likely_ratio(const Comparison& comparison) {
  std::vector<double> likely;
  for (const Sample& sample : comparison.samples)
    likely.push_back(sample.likely > 0 ? sample.likely : sample.ratio.middle());
  const auto middle = likely.begin() + static_cast<std::ptrdiff_t>(likely.size() / 2);
  std::nth_element(likely.begin(), middle, likely.end());
  return *middle;
}

namespace solving {

using R = Relation;

std::string written(double n) { return shown(n, Unit::none); }

std::string counted(double n, const char* what) { return written(n) + " " + what + (n == 1 ? "" : "s"); }

double whole(const Left& left, double of) {
  const double low = left.residual.low * of, high = left.residual.high * of, n = std::round((low + high) / 2);
  const bool one = n >= 1 && n < 1e12 && low * (1 - 1e-9) <= n && n <= high * (1 + 1e-9) && high - low < 1;
  return one && n != of ? n : 0;
}

bool held(const Interval& residual, double x) {
  return residual.low * (1 - 1e-9) <= x && x <= residual.high * (1 + 1e-9);
}

double one_number(const std::optional<Interval>& count) {
  return count && count->low == count->high ? count->low : 0;
}

std::vector<ChangeBuilder::Effect> of_batch(const ChangeBuilder& b, double x, double sequences) {
  // The rate is held against the tokens that the step prints, where it prints them.
  const bool counted = b.lines_count_tokens();
  return {{R::rate_time, counted ? 1 : x},   {R::rate_wall_clock, 1 / x},
          {R::flops_rate_of_batch, x},       {R::mfu_of_batch, x},
          {R::step_tokens, counted ? x : 1}, {R::tokens_total, x},
          {R::sequences_total, sequences},   {R::summary_tokens, x},
          {R::sequences_rate, sequences}};
}

bool is_of_batch(R relation) {
  return relation == R::rate_time || relation == R::flops_rate_of_batch || relation == R::mfu_of_batch ||
         relation == R::step_tokens || relation == R::tokens_total || relation == R::sequences_total ||
         relation == R::sequences_rate;
}

}  // namespace solving

std::vector<Change> solved(const Evidence& e, const Comparisons& comparisons, const Interpretation& reading,
                           const Factors& factors, Relation relation, Interval residual) {
  using namespace solving;
  ChangeBuilder b(e, comparisons);
  const Left left{e, reading, comparisons, factors, relation, residual};
  add_performed(b, left);
  add_performed_by_clock(b, left);
  add_stated_batch(b, left);
  add_batch_of_lines(b, left);
  add_unconfirmed_batch(b, left);
  add_batch_of_count(b, left);
  add_gpus(b, left);
  add_ranks(b, left);
  add_length(b, left);
  add_time(b, left);
  add_padding(b, left);
  add_multiples(b, left);
  add_printed_peak(b, left);
  return b.finish();
}

Change unknown(Relation relation) {
  Change change;
  change.id = "unknown";
  change.text = "no reading is known that explains it";
  change.cost = 8;
  change.factors[relation] = 0;  // stands for whatever it takes
  return change;
}

}  // namespace assay::spec::audit
