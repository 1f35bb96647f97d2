// Where a run may stand on its schedule when nobody says how many steps were left out: one order of lines.
#include <algorithm>
#include <cmath>

#include "spec/audit/rate_schedule.hpp"

namespace assay::spec::audit::rate_schedule {
namespace {

/// Steps behind, both ends among them.
struct Lags {
  double least, most;
};

/// The first whole number in [from, to] where `holds`, which holds from some number on; to + 1 where nowhere.
template <class Holds>
double first_where(double from, double to, const Holds& holds) {
  double end = to + 1;
  while (from < end) {
    const double middle = std::floor((from + end) / 2);
    if (holds(middle))
      end = middle;
    else
      from = middle + 1;
  }
  return from;
}

/// Of the lags of one side of the schedule's top those that give the printed rate, which grows with the lag
/// behind the top and shrinks before it.
void add_side(const Shape& shape, const Place& at, Lags side, bool grows, std::vector<Lags>& out) {
  const auto relation = [&](double lag) {  // -1: too low a rate is expected
    Place there = at;
    there.untold = 0;
    there.step -= lag * at.unit;
    const Interval expected = rate(shape, there);
    return agrees(*at.rate, expected) ? 0 : expected.high < at.rate->value ? -1 : 1;
  };
  const int before = grows ? -1 : 1;
  const double first =
      first_where(side.least, side.most, [&](double lag) { return relation(lag) != before; });
  const double end = first_where(first, side.most, [&](double lag) { return relation(lag) == -before; });
  if (first < end) out.push_back({first, end - 1});
}

std::vector<Lags> lags_of_rate(const Shape& shape, const Place& at) {
  const double most = std::floor(at.untold + 1e-9);
  const double rises_from = first_where(
      0, most, [&](double lag) { return place_in_rise(shape, at, lag) <= shape.warmup && shape.warmup > 0; });
  std::vector<Lags> out;
  if (rises_from > 0) add_side(shape, at, {0, rises_from - 1}, true, out);
  if (rises_from <= most) add_side(shape, at, {rises_from, most}, false, out);
  return out;
}

}  // namespace

bool lags_in_order(const Shape& shape, const std::vector<Place>& places, std::size_t stride) {
  std::vector<Lags> possible;
  for (std::size_t i = 0; i < places.size(); i += stride) {
    const Place& at = places[i];
    std::vector<Lags> now = lags_of_rate(shape, at);
    if (i > 0 && places[i - stride].stretch == at.stretch) {
      const Place& before = places[i - stride];
      const double less = at.lag_least - before.lag_least, more = at.lag_most - before.lag_most;
      std::vector<Lags> met;
      for (const Lags& is : now)
        for (const Lags& was : possible) {
          const Lags both{std::max(was.least + less, is.least), std::min(was.most + more, is.most)};
          if (both.least > both.most) continue;
          // Both lists are in order and apart, so what overlaps stands side by side.
          if (!met.empty() && both.least <= met.back().most + 1 && both.most + 1 >= met.back().least)
            met.back() = {std::min(met.back().least, both.least), std::max(met.back().most, both.most)};
          else
            met.push_back(both);
        }
      now = std::move(met);
    }
    if (now.empty()) return false;
    possible = std::move(now);
  }
  return true;
}

}  // namespace assay::spec::audit::rate_schedule
