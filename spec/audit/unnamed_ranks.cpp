#include "spec/audit/unnamed_ranks.hpp"

#include <cmath>
#include <iterator>
#include <map>

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

std::vector<const Step*> without_unnamed_ranks(const std::vector<const Step*>& lines) {
  struct Group {
    std::size_t first = 0, count = 0;
  };
  std::map<double, Group> groups;
  std::vector<const Step*> firsts;
  bool doubled = true;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const auto &number = (*lines[i])[Field::step], &loss = (*lines[i])[Field::loss];
    if (!number || !std::isfinite(number->value)) return lines;
    Group& group = groups[number->value];
    if (group.count++ == 0) {
      group.first = i;
      firsts.push_back(lines[i]);
      continue;
    }
    const auto& other = (*lines[group.first])[Field::loss];
    const bool alike =
        loss.has_value() == other.has_value() &&
        (!loss || loss->low == other->low || (std::isnan(loss->value) && std::isnan(other->value)));
    // Lines that name their rank and are of the same one are no lines of others.
    if (!alike || (*lines[i])[Field::rank]) return lines;
    doubled = doubled && same_line(*lines[group.first], *lines[i]);
  }
  if (doubled) return lines;
  const std::size_t ranks = groups.empty() ? 1 : groups.begin()->second.count;
  if (ranks == 1) return lines;
  // The last step may be cut, and the one before it where some ranks are ahead.
  const double complete = groups.size() > 3 ? std::next(groups.rbegin())->first : groups.rbegin()->first;
  for (const auto& [number, group] : groups) {
    const bool cut = number >= complete && group.count < ranks;
    if (group.count != ranks && !cut) return lines;
  }
  // A log that is there twice has its copies far apart.
  for (std::size_t i = 0; i < lines.size(); ++i)
    if (i - groups[(*lines[i])[Field::step]->value].first >= 2 * ranks) return lines;
  return firsts;
}

}  // namespace assay::spec::audit
