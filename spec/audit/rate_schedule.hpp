#pragma once
// Schedules of the learning rate as trainers write them, and the one of them that printed rates follow.
#include <optional>
#include <string>
#include <vector>

#include "spec/audit/evidence.hpp"

namespace assay::spec::audit::rate_schedule {

/// A schedule as trainers write it: linear rise, a fall of some shape. Trainers number steps from 0 or 1, in
/// the rise and in the fall, divide the rise by the warm-up or one more, and count the fall's length from the
/// rise's end or from the start.
struct Shape {
  enum Kind {
    constant,
    linear,
    cosine,
    inverse_root,
    wsd,  ///< a plateau whose end is not stated
    wsd_linear,
    wsd_cosine,
    wsd_exponential,
    wsd_root
  } kind = constant;
  double peak = 0, least = 0, most_least = 0;  ///< the lowest rate; a range where it is not stated
  double warmup = 0, divisor = 1, end = 1, length = 1;
  double decay = 0;                         ///< of wsd: steps from the plateau's end to `end`
  double rise_offset = 0, fall_offset = 0;  ///< added to the printed step
  double step_factor = 1;                   ///< schedule steps per optimizer step
  double shift = 0;                         ///< of the fall, in schedule steps
  double start = 0, most_start = 0;         ///< the rate where the rise begins; a range likewise
};

/// Where a rate was printed.
struct Place {
  double step;  ///< or the sequences since the start, of a schedule that goes by these
  const Printed* rate;
  std::int64_t line;
  double unit = 1;    ///< of one step
  double number = 0;  ///< of the step
  /// Steps up to here that may have been left out beyond those taken off: none says how many.
  double untold = 0;
  /// Between two lines of one stretch as many steps more are lagged as `lag_least` grows at least and as
  /// `lag_most` grows at most.
  double lag_least = 0, lag_most = 0;
  std::size_t stretch = 0;  ///< since a restart, behind which any lag is open again
};

/// The interval of rates that the shape allows at a place; wsd leaves its plateau's end open, and steps of
/// which nobody says whether they were left out any place before.
Interval rate(const Shape& s, const Place& at);

/// Schedule steps of the rise at a place, `lag` steps of the run before it.
double place_in_rise(const Shape& s, const Place& at, double lag = 0);

/// Whether lags within each place's `untold` give every `stride`th rate, such that the schedule never falls
/// behind from one line to the next, nor goes on by more steps than are between them. Bounded: logarithmic in
/// the lags, a few ranges of them at a time.
bool lags_in_order(const Shape& shape, const std::vector<Place>& places, std::size_t stride);

/// Whether `lags_in_order` applies: some are open, of steps of one size.
bool in_one_order(const std::vector<Place>& places);

/// Whether a printed rate is one of those expected.
bool agrees(const Printed& printed, Interval expected);

/// Of every `stride`th place, how many do not agree; stops counting at `stop`.
std::size_t misses(const Shape& shape, const std::vector<Place>& places, std::size_t stride,
                   std::size_t stop);

/// What the log says of its schedule.
struct Stated {
  double peak, warmup;
  std::vector<double> ends;
  double least = 0, most_least = 0, decay = 0;
  std::vector<Shape::Kind> kinds;
  double start = 0, most_start = 0;
  bool numbering_known =
      false;  ///< rise and fall count steps from 1 and end where stated (batch/schedule.md)
};

/// Whether the schedule goes by the sequences since the start.
bool by_samples(const Evidence& e);
Setting warmup_setting(const Evidence& e);  ///< where its warm-up is stated

/// None where the highest rate is not stated.
std::optional<Stated> stated(const Evidence& e);

struct Fit {
  Shape shape;
  std::size_t misses = static_cast<std::size_t>(-1);
};

/// The shape with fewest misses, by every `stride`th place, among the ways of numbering. Coarse digits let
/// several agree there: of those the one that agrees best everywhere; stops at the first without any miss.
/// `step_factor`: schedule steps per optimizer step.
Fit best_fit(const Stated& s, double step_factor, const std::vector<Place>& places, std::size_t stride);

}  // namespace assay::spec::audit::rate_schedule
