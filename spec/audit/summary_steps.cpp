#include "spec/audit/summary_steps.hpp"

#include <algorithm>
#include <cmath>

namespace assay::spec::audit {

std::vector<const Step*> covered(const Evidence& e, const Printed& summary) {
  std::int64_t begin = 0;
  for (const Restart& restart : e.record.restarts)
    if (summary.line == 0 || restart.line < summary.line) begin = std::max(begin, restart.line);
  std::vector<const Step*> out;
  for (const Step* step : e.steps)
    if (step->line == 0 || summary.line == 0 || (step->line >= begin && step->line < summary.line))
      out.push_back(step);
  // A summary may stand before its steps, as in a document's head.
  return out.empty() ? e.steps : out;
}

std::vector<double> values_of(const std::vector<const Step*>& steps, Field field, bool shares) {
  std::vector<double> out;
  for (const Step* step : steps)
    if (const auto& p = (*step)[field]; p && std::isfinite(p->value) && !(shares && not_measured(*p)))
      out.push_back(p->value);
  return out;
}

std::vector<Interval> intervals_of(const std::vector<const Step*>& steps, Field field) {
  std::vector<Interval> out;
  for (const Step* step : steps)
    if (usable((*step)[field])) out.push_back(wide(*(*step)[field]));
  return out;
}

double mean(const std::vector<double>& values, std::size_t from) {
  double sum = 0;
  for (std::size_t i = from; i < values.size(); ++i) sum += values[i];
  return sum / static_cast<double>(values.size() - from);
}

double rounding(const std::vector<const Step*>& steps, Field field) {
  double most = 0;
  for (const Step* step : steps)
    if (const auto& p = (*step)[field]; p && std::isfinite(p->value))
      most = std::max(most, p->high - p->value);
  return std::isfinite(most) ? most : 0;
}

bool every_step_is_logged(const Evidence& e, const std::vector<const Step*>& steps) {
  if (steps.empty() || e.record.steps_seen > static_cast<std::int64_t>(e.record.steps.size())) return false;
  // A piece of a log: it begins late without a restart, or ends before the run did.
  const auto &first = (*steps.front())[Field::step], &last = (*steps.back())[Field::step];
  if (first && first->value > 1 && e.record.restarts.empty()) return false;
  if (const auto& planned = e.record[Setting::max_steps]; planned && last && last->value + 1 < planned->value)
    return false;
  for (std::size_t i = 1; i < steps.size(); ++i) {
    const auto &a = (*steps[i - 1])[Field::step], &b = (*steps[i])[Field::step];
    if (!a || !b || b->value - a->value > 1) return false;
  }
  return true;
}

}  // namespace assay::spec::audit
