#include "spec/audit/unnamed_ranks.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>

#include "spec/audit/trainer.hpp"

namespace assay::spec::audit {
namespace {

/// Whether the two lines are one line twice: every number the same, and among them one that no two ranks
/// share for long.
bool same_line(const Step& a, const Step& b) {
  for (std::size_t i = 0; i < field_count; ++i) {
    if (a.fields[i].has_value() != b.fields[i].has_value()) return false;
    if (!a.fields[i]) continue;
    const double x = a.fields[i]->value, y = b.fields[i]->value;
    if (!(x == y) && !(std::isnan(x) && std::isnan(y))) return false;
  }
  return a[Field::seconds] || a[Field::tokens_per_second] || a[Field::flops_rate];
}

}  // namespace

double ranks_that_may_print(const RunRecord& record, std::size_t prefixes) {
  if (!trainer_of(record).mesh_of_all_ranks) return 1;
  const auto& gpus = record[Setting::gpus];
  return gpus ? gpus->value / static_cast<double>(prefixes) : std::numeric_limits<double>::infinity();
}

UnnamedRanks without_unnamed_ranks(const std::vector<const Step*>& lines, double may_print) {
  struct Group {
    std::size_t first = 0, count = 0;
  };
  UnnamedRanks none{lines};
  std::map<double, Group> groups;
  UnnamedRanks out;
  bool same = true;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const auto &number = (*lines[i])[Field::step], &loss = (*lines[i])[Field::loss];
    if (!number || !std::isfinite(number->value)) return none;
    Group& group = groups[number->value];
    out.ranks = std::max(out.ranks, ++group.count);
    if (group.count == 1) {
      group.first = i;
      out.lines.push_back(lines[i]);
      continue;
    }
    const auto& other = (*lines[group.first])[Field::loss];
    const bool alike =
        loss.has_value() == other.has_value() &&
        (!loss || loss->low == other->low || (std::isnan(loss->value) && std::isnan(other->value)));
    if (!alike) return none;
    same = same && same_line(*lines[group.first], *lines[i]);
  }
  const auto ranks = static_cast<double>(out.ranks);
  if (out.ranks == 1) return none;
  // One rank's line, printed as often, names its rank as well.
  const bool named = (*lines.front())[Field::rank].has_value();
  if (same && (named ? ranks != may_print : ranks > may_print)) return none;
  // The first step and the last may be cut, and the one before it where some ranks are ahead; else hardly a
  // line is lost.
  const bool several = groups.size() > 3;
  const double complete = several ? std::next(groups.rbegin())->first : groups.rbegin()->first;
  std::size_t whole = 0, lost = 0;
  for (const auto& [number, group] : groups)
    if (group.count == out.ranks)
      ++whole;
    else if (number < complete && !(several && number == groups.begin()->first))
      lost += out.ranks - group.count;
  if (2 * whole < groups.size() || 8 * lost > groups.size()) return none;
  // A log that is there twice has its copies far apart.
  for (std::size_t i = 0; i < lines.size(); ++i)
    if (i - groups[(*lines[i])[Field::step]->value].first >= 2 * out.ranks) return none;
  out.maybe_copies = same;
  return out;
}

}  // namespace assay::spec::audit
