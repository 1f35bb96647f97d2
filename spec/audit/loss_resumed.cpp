// Whether the loss goes on from where it was before a restart.
#include <algorithm>
#include <cmath>

#include "spec/audit/groups.hpp"
#include "spec/audit/loss_scatter.hpp"
#include "spec/text/quantity.hpp"

namespace assay::spec::audit {
namespace {

/// Lines after a restart that are compared; fewer than three have no middle that one hard batch leaves alone.
constexpr std::size_t lines_after = 5, fewest_after = 3;
/// Distances of neighbouring lines before it, for a scatter that is known to a third of itself.
constexpr std::size_t fewest_distances = 8;
/// The median of five lines' rises has 0.54 of the standard deviation of one, and the usual distance of two
/// lines is 0.67 of it (normal losses): five usual distances are 6.3 deviations of the median, and still 4
/// where the scatter is taken for a third less than it is.
constexpr double far_rise = 5;

/// What the losses before the restart say of step `number`: the line that did the same step, or else the
/// median of the last lines that are not later. Nothing where there is none.
std::optional<Interval> loss_before(const Evidence& e, const Stretch& stretch, double number) {
  std::vector<double> lows, highs;
  for (std::size_t i = stretch.end; i > stretch.begin && lows.size() < lines_after; --i) {
    const auto &step = (*e.steps[i - 1])[Field::step], &loss = (*e.steps[i - 1])[Field::loss];
    if (!step || !loss || !std::isfinite(loss->value) || step->value > number) continue;
    if (step->value == number) return Interval{loss->low, loss->high};
    lows.push_back(loss->low), highs.push_back(loss->high);
  }
  if (lows.empty()) return std::nullopt;
  return Interval{middle_loss(std::move(lows)), middle_loss(std::move(highs))};
}

}  // namespace

bool judge_loss_resumed(const Evidence& e, std::size_t stretch, Result& out) {
  const Stretch &before = e.stretches[stretch - 1], &after = e.stretches[stretch];
  const auto course = loss_course(e, before.begin, before.end, fewest_distances);
  if (!course) return false;
  struct Rise {
    double by;  ///< at the least [nats]
    const Step* step;
    double from;
  };
  std::vector<Rise> rises;
  for (std::size_t i = after.begin; i < after.end && rises.size() < lines_after; ++i) {
    const auto &step = (*e.steps[i])[Field::step], &loss = (*e.steps[i])[Field::loss];
    if (!step || !loss || !std::isfinite(loss->value)) continue;
    if (const auto was = loss_before(e, before, step->value))
      rises.push_back({loss->low - was->high, e.steps[i], was->high});
  }
  if (rises.size() < fewest_after) return false;
  // The lower of two middles.
  const auto middle = rises.begin() + static_cast<std::ptrdiff_t>((rises.size() - 1) / 2);
  std::nth_element(rises.begin(), middle, rises.end(),
                   [](const Rise& a, const Rise& b) { return a.by < b.by; });
  const double bound = far_rise * course->scatter;
  if (!(middle->by > bound)) return false;
  const auto& loss = (*middle->step)[Field::loss];
  contradict(out, loss->value, {0, middle->from + bound}, loss->line ? loss->line : middle->step->line);
  blame(out, "weights_not_resumed",
        "weights or optimizer state were not restored, or the batches after it are harder: other data, or "
        "another order of it");
  return true;
}

}  // namespace assay::spec::audit
