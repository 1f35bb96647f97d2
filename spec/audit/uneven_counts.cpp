#include "spec/audit/uneven_counts.hpp"

#include <algorithm>
#include <vector>

#include "spec/audit/groups.hpp"
#include "spec/audit/invariants.hpp"

namespace assay::spec::audit {
namespace {

enum class Odd { jumps, stands_still, grows_less };

/// Lines one behind the other that are odd in one way.
struct OddLines {
  Odd how = Odd::jumps;
  std::size_t first = 0, last = 0;  ///< of Evidence::steps
  double more = 0;                  ///< than the steps make
};

std::string told(const Evidence& e, const OddLines& odd, const char* name) {
  const auto line = [&](std::size_t k) { return std::to_string(e.steps[k]->line); };
  const std::string where = odd.first == odd.last
                                ? " at line " + line(odd.first)
                                : " from line " + line(odd.first) + " to line " + line(odd.last);
  switch (odd.how) {
    case Odd::jumps:
      return std::string(name) + " jump" + where + ", by " + shown(odd.more, Unit::none) +
             " more than the steps make";
    case Odd::stands_still:
      return std::string(name) + " stand still" + where;
    case Odd::grows_less:
      return std::string(name) + " grow" + where + " by " + shown(-odd.more, Unit::none) +
             " less than the steps make";
  }
  return "";
}

}  // namespace

std::string uneven_count(const Evidence& e, Relation relation) {
  constexpr std::size_t lines_for_one = 4, told_most = 2;  // chosen: of four lines three grow evenly
  const bool of_tokens = relation == Relation::tokens_total;
  if (!of_tokens && relation != Relation::sequences_total) return "";
  const Field field = of_tokens ? Field::tokens_total : Field::sequences_total;
  auto per_step = of_tokens ? e.tokens_per_step : e.of(Setting::sequences);
  if (!per_step && e.tokens_per_step && e.sequence_length) per_step = *e.tokens_per_step / *e.sequence_length;
  if (!per_step) return "";
  std::vector<OddLines> odd;
  std::size_t lines = 0, odd_lines = 0;
  for (const Stretch& stretch : e.stretches)
    for (std::size_t i = stretch.begin + 1; i < stretch.end; ++i) {
      const Step &from = *e.steps[i - 1], &to = *e.steps[i];
      if (!from[field] || !to[field] || !from[Field::step] || !to[Field::step]) continue;
      const double steps = to[Field::step]->value - from[Field::step]->value;
      if (!(steps > 0)) continue;
      ++lines;
      const Interval made = *per_step * exact_interval(steps), grown = wide(*to[field]) - wide(*from[field]);
      if (grown.meets(made)) continue;
      ++odd_lines;
      const double more = to[field]->value - from[field]->value - made.middle();
      const Odd how = more > 0                                 ? Odd::jumps
                      : to[field]->value == from[field]->value ? Odd::stands_still
                                                               : Odd::grows_less;
      const bool goes_on = !odd.empty() && odd.back().last + 1 == i && odd.back().how == how;
      if (goes_on)
        odd.back().last = i, odd.back().more += more;
      else
        odd.push_back({how, i, i, more});
    }
  if (odd.empty() || odd_lines * lines_for_one > lines) return "";
  std::string out;
  for (std::size_t k = 0; k < std::min(odd.size(), told_most); ++k)
    out += (k == 0 ? "" : ", and ") + told(e, odd[k],
                                           k > 0       ? "they"
                                           : of_tokens ? "tokens since the start"
                                                       : "sequences since the start");
  if (odd.size() > told_most) out += ", and more";
  return out + "; from line to line the others grow as the steps do";
}

}  // namespace assay::spec::audit
