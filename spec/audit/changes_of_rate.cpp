// Rates that are a share or a multiple of what they are called.
#include <algorithm>
#include <cmath>

#include "spec/audit/invariants.hpp"
#include "spec/audit/solving.hpp"
#include "spec/text/quantity.hpp"

namespace assay::spec::audit::solving {

using R = Relation;

namespace {

/// "23.7 %", or "about 23.7 % (16.1 to 38.0 %)" where roundings leave a range.
std::string share_text(double x, const Interval& within) {
  const auto share = [](double of) { return percent(std::abs(of - 1), 1); };
  const double low = std::min(std::abs(within.low - 1), std::abs(within.high - 1)),
               high = std::max(std::abs(within.low - 1), std::abs(within.high - 1));
  if (high - low < 0.002 || within.holds(1)) return share(x);
  const std::string from = fixed(100 * low, 1);
  return "about " + share(x) + " (" + from + " to " + percent(high, 1) + ")";
}

/// What most lines leave open of a ratio.
Interval common_ratio(const Comparison& comparison) {
  if (!comparison.ways.empty()) return median_ratio(comparison);
  std::vector<Interval> ratios;
  for (const Sample& sample : comparison.samples) ratios.push_back(sample.ratio);
  return shared_factor(ratios).factor;
}

/// A simple multiple that the residual leaves, and it alone: 2, 3, ... 64, or one part in as many; 0: none.
/// What is measured by a clock leaves several; then the one nearest to its middle.
double simple_multiple(const Interval& residual) {
  const double middle = std::sqrt(residual.low * residual.high);
  double best = 0;
  int held_by = 0;
  for (int n = 2; n <= 64; ++n)
    for (const double x : {static_cast<double>(n), 1.0 / n})
      if (held(residual, x)) {
        ++held_by;
        if (best == 0 || std::abs(std::log(x / middle)) < std::abs(std::log(best / middle))) best = x;
      }
  return held_by == 1 || residual.high / residual.low > 1.1 ? best : 0;
}

/// "4 times ", "1/4 of ".
std::string as_multiple(double x) { return x > 1 ? written(x) + " times " : "1/" + written(1 / x) + " of "; }

/// A rate, and perhaps what is made of it, that is `x` times what it is called; `of` says of what.
void add_rate_multiple(ChangeBuilder& b, double x, const std::string& of, bool throughout) {
  if (throughout)
    b.add("rate_multiple", "tokens/s, and what is made of it, is " + of, 6,
          {{R::rate_time, x}, {R::rate_wall_clock, 1 / x}})
        .rate = 1 / x;
  b.add("rate_multiple", "tokens/s is " + of, 6.2,
        {{R::rate_time, x}, {R::rate_wall_clock, 1 / x}, {R::flops_rate, 1 / x}, {R::mfu, 1 / x}})
      .rate = 1 / x;
}

void add_flops_multiple(ChangeBuilder& b, double x, const std::string& of) {
  b.add("flops_rate_multiple", "the FLOP/s, and what is made of them, are " + of, 6,
        {{R::flops_rate, x}, {R::mfu, x}, {R::flops_rate_of_batch, x}, {R::mfu_of_batch, x}});
  b.add("flops_rate_multiple", "the FLOP/s are " + of, 6.2,
        {{R::flops_rate, x}, {R::flops_rate_of_batch, x}, {R::mfu_of_flops_rate, 1 / x}});
}

/// What the batch or its time may be, where a number made of both is `x` times what they make.
void add_batch_multiples(ChangeBuilder& b, const Left& left, double x, const std::string& many) {
  if (left.relation != R::rate_wall_clock)
    b.add("time_multiple", "the step time is " + many + "that of one step", 6.3,
          {{R::rate_time, x}, {R::wall_clock, x}, {R::flops_rate_of_batch, x}, {R::mfu_of_batch, x}})
        .time = 1 / x;
  const auto batch = [&](const char* id, const char* before, double of, const char* behind, double cost) {
    const double n = std::round(of * x);
    if (of == 0 || n < 1 || std::abs(n - of * x) > 1e-9 * n) return;
    Change& change = b.add(id, before + written(n) + behind + written(of), cost, of_batch(b, x, x));
    change.batch = x;
    change.of_printer = false;
  };
  batch("accumulation_performed", "accumulation ", one_number(left.e.accumulation), " was performed, not ",
        6.4);
  batch("micro_other", "micro-batches are of ", one_number(left.e.micro), " sequences, not ", 6.5);
}

}  // namespace

bool is_share(double x) { return (x > 1.002 && x < 1.7) || (x > 0.55 && x < 0.998); }

/// A share has no value of its own to be found: it is what the numbers as they are printed make, within what
/// the roundings of most lines leave open.
void add_padding(ChangeBuilder& b, const Left& left) {
  const bool of_time = left.relation == R::rate_time;
  if (!of_time && left.relation != R::mfu && left.relation != R::flops_rate) return;
  if (!b.has(R::rate_time)) return;
  const auto add = [&](const Interval& within, const std::string& who, double cost, bool alone) {
    const double likely = likely_ratio(at(left.comparisons, R::rate_time)) / left.factors[R::rate_time],
                 x = std::clamp(likely, within.low, within.high);
    if (!is_share(x)) return;
    const std::string share = share_text(x, within);
    Change& change =
        b.add("rate_counts_padding",
              x > 1 ? who + " counts " + share + " more tokens than the batch has (padding)"
                    : who + " leaves out " + share + " of the batch (padding, masked tokens)",
              cost, {{R::rate_time, x}, {R::flops_rate, alone ? 1 / x : 1}, {R::mfu, alone ? 1 / x : 1}});
    change.rate = 1 / x;
    change.rate_within = {x / within.high, x / within.low};
  };
  const Interval of_rate =
      common_ratio(at(left.comparisons, R::rate_time)) / exact_interval(left.factors[R::rate_time]);
  // A rate that is off alone shows in every relation that it enters: together they say by how much.
  Interval together = of_rate;
  for (const R inverse : {R::flops_rate, R::mfu})
    if (b.has(inverse)) {
      const Interval here =
          exact_interval(left.factors[inverse]) / common_ratio(at(left.comparisons, inverse));
      if (here.meets(together))
        together = {std::max(here.low, together.low), std::min(here.high, together.high)};
    }
  if (of_time || !held(of_rate, 1)) add(together, "tokens/s", 4.5, true);
  if (of_time) add(of_rate, "tokens/s, and what is made of it,", 5, false);
}

/// What no known mistake explains, and is a simple multiple: reported with everything that may be as many
/// times what it is called, so that it can be looked for.
void add_multiples(ChangeBuilder& b, const Left& left) {
  const double found = simple_multiple(left.residual);
  if (found == 0) return;
  switch (left.relation) {
    case R::rate_time:
      add_rate_multiple(b, found, as_multiple(found) + "what the batch and its time make", true);
      return add_batch_multiples(b, left, found, as_multiple(found));
    case R::rate_wall_clock:
      add_rate_multiple(b, 1 / found, "about " + as_multiple(1 / found) + "what the batch and the clock make",
                        true);
      // A clock that shows more may have run through pauses.
      if (found > 1)
        b.add("clock_other",
              "the clock shows about " + as_multiple(1 / found) + "the time that the steps take by tokens/s",
              6.1, {{R::rate_wall_clock, found}});
      return add_batch_multiples(b, left, 1 / found, "about " + as_multiple(1 / found));
    case R::sequences_rate:
      b.add("sequences_rate_multiple",
            "sequences/s is " + as_multiple(found) + "what the batch and the step time make", 6,
            {{R::sequences_rate, found}});
      return;
    case R::flops_rate_of_batch:
      add_flops_multiple(b, found, as_multiple(found) + "what model, batch and time make");
      return add_batch_multiples(b, left, found, as_multiple(found));
    case R::mfu_of_batch:
      b.add("mfu_multiple", "MFU is " + as_multiple(found) + "what model, batch, time and peak make", 6.5,
            {{R::mfu_of_batch, found}});
      return add_batch_multiples(b, left, found, as_multiple(found));
    case R::flops_rate:
      add_rate_multiple(b, 1 / found, as_multiple(1 / found) + "what the FLOP/s are made of", false);
      return add_flops_multiple(b, found, as_multiple(found) + "what model and rate make");
    case R::mfu:
      add_rate_multiple(b, 1 / found, as_multiple(1 / found) + "what the MFU is made of", false);
      b.add("mfu_multiple", "MFU is " + as_multiple(found) + "what model, rate and peak make", 6.5,
            {{R::mfu, found}, {R::mfu_of_flops_rate, found}});
      return;
    case R::step_tokens:
      if (b.lines_count_tokens())
        b.add("tokens_multiple",
              "the tokens of the lines, and the rates made of them, are " + as_multiple(found) +
                  "those of a step",
              6, {{R::step_tokens, found}})
            .rate = 1 / found;
      return;
    case R::tokens_total:
    case R::sequences_total:
      b.add("total_multiple",
            (left.relation == R::tokens_total ? "the tokens" : "the sequences") +
                std::string(" since the start are ") + as_multiple(found) + "what the steps have, as if " +
                (found < 1 ? "one rank or pass of " + written(1 / found) + " counted"
                           : "each of " + written(found) + " ranks counted all"),
            6, {{left.relation, found}});
      return;
    default:
      return;
  }
}

}  // namespace assay::spec::audit::solving
