// Times that leave something out, and clocks that show more or less than it.
#include <algorithm>
#include <cmath>

#include "spec/audit/solving.hpp"
#include "spec/text/quantity.hpp"

namespace assay::spec::audit::solving {

using R = Relation;

namespace {

/// Between what is made of tokens/s with padding (changes_of_rate.cpp) and tokens/s alone: reported with
/// either.
constexpr double where_no_clock_tells = 4.8;

/// "step times leave out 20 % of the time".
Change& add_time_of(ChangeBuilder& b, double x, const char* whose, bool clock, double cost,
                    std::initializer_list<ChangeBuilder::Effect> effects) {
  const std::string share = percent(std::abs(1 - x), 0),
                    more = clock ? " more than the time that passed"
                                 : " more than the time that the tokens take";
  return b.add(x < 1 ? "time_leaves_out" : "time_beyond_clock",
               whose + (x < 1 ? " leave out " + share + " of the time" : " hold " + share + more), cost,
               effects);
}

/// What a clock says of step times that a rate contradicts.
enum class Clock {
  none,        ///< nothing: there is none, it is too coarse, or pauses may hide either
  time,        ///< they are wrong: too long for it, or as short as by the rate with no pause in it
  not_of_time  ///< they are right
};

Clock clock_on_time(const Interval& all, const Interval& unpaused, const Interval& by_rate) {
  if (all.meets(by_rate) && !held(all, 1)) return Clock::time;
  const bool as_the_rate = unpaused.meets(by_rate), as_they_are = held(unpaused, 1);
  if (as_the_rate != as_they_are) return as_the_rate ? Clock::time : Clock::not_of_time;
  return all.meets(by_rate) ? Clock::none : Clock::not_of_time;
}

/// Step times that are wrong beside a rate that is not. Where no clock tells, padding explains as much.
void add_time_alone(ChangeBuilder& b, const Left& left) {
  Interval within = left.residual;
  double likely = likely_ratio(at(left.comparisons, R::rate_time)) / left.factors[R::rate_time];
  Clock clock = Clock::none;
  if (b.has(R::wall_clock)) {
    const Comparison& by_clock = at(left.comparisons, R::wall_clock);
    const Interval off = exact_interval(left.factors[R::wall_clock]), all = median_ratio(by_clock) / off;
    clock = clock_on_time(all, by_clock.without_pauses / off, within);
    if (clock == Clock::not_of_time) return;
    within = {std::max(all.low, within.low), std::min(all.high, within.high)};
    if (clock == Clock::time) likely = likely_ratio(by_clock) / left.factors[R::wall_clock];
  }
  const double x = std::clamp(likely, within.low, within.high);
  if (!(x > 0) || (clock == Clock::none && !is_share(x))) return;
  add_time_of(b, x, "step times", b.has(R::wall_clock), clock == Clock::time ? 3.5 : where_no_clock_tells,
              {{R::wall_clock, x}, {R::rate_time, x}})
      .time = 1 / x;
}

/// Step times, and what is made of them, against a clock: no number of the log says which is wrong. Steps do
/// leave out what a clock shows; none takes longer than it does.
void add_time_or_clock(ChangeBuilder& b, const Left& left) {
  const double likely = likely_ratio(at(left.comparisons, R::wall_clock)) / left.factors[R::wall_clock],
               // As the numbers are printed: that some of the time was a pause is possible, not likely.
      x = std::clamp(likely, left.residual.low, left.residual.high);
  if (!(x > 0)) return;
  if (!b.has(R::rate_time))
    add_time_of(b, x, "step times", true, 3.5, {{R::wall_clock, x}, {R::rate_time, x}}).time = 1 / x;
  Change& change =
      add_time_of(b, x, "step times, and the rates made of them,", true, 3.6, {{R::wall_clock, x}});
  change.time = 1 / x;
  change.rate = x;
  const bool by_rates = b.has(R::rate_time);
  b.add("clock_other",
        "the clock shows " + percent(std::abs(1 - 1 / x), 0) + (x < 1 ? " more" : " less") +
            " than the time that the steps take, by their times" + (by_rates ? " and their rates" : ""),
        x < 1      ? 4.2
        : by_rates ? 3.5
                   : 3.8,
        {{R::wall_clock, x}});
}

/// "tokens/s is 1.50 times what the clock shows, between all lines alike".
void add_rate_beyond_clock(ChangeBuilder& b, const Left& left, double cost) {
  const Comparison& clock = at(left.comparisons, R::rate_wall_clock);
  const double x = std::clamp(likely_ratio(clock) / left.factors[R::rate_wall_clock], left.residual.low,
                              left.residual.high);
  if (!(x > 0)) return;
  b.add("rate_beyond_clock",
        "tokens/s, and what is made of it, is " + fixed(1 / x, 2) +
            " times what the clock shows, between all lines alike",
        cost, {{R::rate_time, 1 / x}, {R::rate_wall_clock, x}})
      .rate = x;
}

/// A rate of the time since the line before is also of that since a validation, whose line may be lost:
/// ahead of every mistake that the clock alone would tell of. Where every two lines miss the same share of
/// the time, such pauses would have to grow with the steps: the rate is reported as that multiple, behind
/// mistakes that are known by name; and with pauses only where one that is always as long explains as much.
void add_time_between_lines(ChangeBuilder& b, const Left& left) {
  if (!left.e.trainer.rate_since_line_before || !(left.residual.high < 1)) return;
  const Missed& missed = at(left.comparisons, R::rate_wall_clock).missed;
  if (missed.share) add_rate_beyond_clock(b, left, missed.pause ? 3.45 : 3.9);
  if (missed.share && !missed.pause) return;
  b.add("time_left_out",
        "the clock also runs through what lies between all lines and no rate holds (validations, whose lines "
        "are not here)",
        3.4, {{R::rate_wall_clock, left.residual.middle()}})
      .of_printer = false;
}

}  // namespace

/// Step times that do not add up to the clock, or without one to the tokens that tokens/s makes of them. What
/// is made of them is off with them; a rate that they contradict by as much is not.
void add_time(ChangeBuilder& b, const Left& left) {
  if (left.relation == R::rate_time)
    add_time_alone(b, left);
  else if (left.relation == R::wall_clock)
    add_time_or_clock(b, left);
  else if (left.relation == R::rate_wall_clock)
    add_time_between_lines(b, left);
}

}  // namespace assay::spec::audit::solving
