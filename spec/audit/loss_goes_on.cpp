#include "spec/audit/loss_goes_on.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "spec/audit/groups.hpp"
#include "spec/audit/loss_scatter.hpp"
#include "spec/text/quantity.hpp"

namespace assay::spec::audit {
namespace {

/// Lines of either side whose middles are compared: one hard batch moves none.
constexpr std::size_t compared = 5, fewest_behind = 3;
/// Lines before, at the most: as far back the loss may have fallen at another pace.
constexpr std::size_t most_before = 100;
/// Distances of lines from between their neighbours: of so many the middle is known to a third of itself;
/// of fewer the largest stands for it, and of less than the fewest nothing is known.
constexpr std::size_t fewest_bends = 4, enough_bends = 8;
/// As of a step that is done again (loss_resumed.cpp): such a distance is 1.22 standard deviations of a line,
/// its middle 0.83, so five are 4.1; the difference of two middles of five lines has 0.76.
constexpr double far_above = 5;
/// Chosen: so many times the most that five lines ever rose above the five before. Where data of several
/// kinds follow one another, lines lie near their neighbours, and five of them far from five others.
constexpr double beyond_earlier_rises = 3;
/// A learning rate that is so many times the highest of the last lines is a schedule that begins anew.
constexpr double other_rate = 2;

/// Chosen: weights that were lost are new ones, or those of the run's beginning, and have not learned two
/// thirds again within a few lines. Other data, a warm-up or an optimizer that begins anew raise the loss by
/// less.
constexpr double way_back = 1.0 / 3;

struct ShownLoss {
  double step, low, high, rate;  // no rate: 0
};

std::vector<ShownLoss> losses(const Evidence& e, std::size_t begin, std::size_t end) {
  std::vector<ShownLoss> out;
  for (std::size_t i = begin; i < end; ++i) {
    const auto &step = (*e.steps[i])[Field::step], &loss = (*e.steps[i])[Field::loss],
               &rate = (*e.steps[i])[Field::learning_rate];
    if (step && loss && std::isfinite(loss->value))
      out.push_back({step->value, loss->low, loss->high, rate ? rate->value : 0});
  }
  return out;
}

double middle_of_shown(const std::vector<ShownLoss>& lines, std::size_t begin, std::size_t end,
                       double ShownLoss::*which) {
  std::vector<double> numbers;
  for (std::size_t i = begin; i < end; ++i) numbers.push_back(lines[i].*which);
  return middle_loss(std::move(numbers));
}

/// How far lines lie from between their neighbours: a fall, steep or not, is no scatter. [nats]
std::optional<double> bends_of(const std::vector<ShownLoss>& lines) {
  std::vector<double> bends;
  for (std::size_t i = 1; i + 1 < lines.size(); ++i) {
    const ShownLoss &before = lines[i - 1], &here = lines[i], &after = lines[i + 1];
    const double way = (here.step - before.step) / (after.step - before.step);
    const auto between = [&](double ShownLoss::*which) {
      return before.*which + way * (after.*which - before.*which);
    };
    bends.push_back(std::max(here.high - between(&ShownLoss::low), between(&ShownLoss::high) - here.low));
  }
  if (bends.size() < fewest_bends) return std::nullopt;
  return bends.size() < enough_bends ? *std::max_element(bends.begin(), bends.end())
                                     : middle_loss(std::move(bends));
}

/// The most that the middle of five lines rose above that of the five before; 0 where none did.
double most_earlier_rise(const std::vector<ShownLoss>& lines) {
  double most = 0;
  for (std::size_t i = compared; i + compared <= lines.size(); ++i)
    most = std::max(most, middle_of_shown(lines, i, i + compared, &ShownLoss::high) -
                              middle_of_shown(lines, i - compared, i, &ShownLoss::low));
  return most;
}

/// A loss that rises all the time goes on to: by a line's rise for each of those between the middles, which
/// is known to the scatter.
double rise_of_course(const std::optional<LossCourse>& course) {
  if (!course || !(course->trend > 0)) return 0;
  const double unsure = course->trend > course->scatter ? course->scatter : 0;
  return static_cast<double>(compared) * (course->trend + unsure);
}

/// The loss of weights that were not restored: of new ones, or of the first lines of a run that is shown from
/// its beginning; nothing where neither is known. [nats]
std::optional<double> loss_of_lost_weights(const Evidence& e) {
  const double vocab =
      e.model ? static_cast<double>(e.model->vocab) : number_in(e.record, Setting::vocab).value_or(0);
  if (vocab > 1 && e.record.objective.empty()) return std::log(vocab);
  const auto& first = e.steps.empty() ? std::nullopt : (*e.steps.front())[Field::step];
  if (!first || first->value > 2 * e.line_distance) return std::nullopt;
  const std::vector<ShownLoss> shown = losses(e, 0, std::min<std::size_t>(e.steps.size(), compared));
  if (shown.size() < fewest_behind) return std::nullopt;
  return middle_of_shown(shown, 0, fewest_behind, &ShownLoss::high);
}

double highest_rate(const std::vector<ShownLoss>& lines, std::size_t begin) {
  double out = 0;
  for (std::size_t i = begin; i < lines.size(); ++i) out = std::max(out, lines[i].rate);
  return out;
}

}  // namespace

std::vector<std::size_t> restarts_at_later_steps(const Evidence& e) {
  std::vector<std::int64_t> lines;
  for (const Restart& restart : e.record.restarts) lines.push_back(restart.line);
  std::sort(lines.begin(), lines.end());
  std::vector<std::size_t> out;
  for (const Stretch& stretch : e.stretches)
    for (std::size_t i = stretch.begin + 1; i < stretch.end; ++i) {
      const auto stated = std::upper_bound(lines.begin(), lines.end(), e.steps[i - 1]->line);
      const auto &here = (*e.steps[i])[Field::step], &before = (*e.steps[i - 1])[Field::step];
      if (stated != lines.end() && *stated <= e.steps[i]->line && here && before &&
          here->value > before->value && here->value - before->value <= 2 * e.line_distance)
        out.push_back(i);
    }
  return out;
}

std::optional<bool> judge_loss_goes_on(const Evidence& e, std::size_t first, std::size_t end, Result& out,
                                       std::string& told) {
  std::size_t begin = 0;
  for (const Stretch& stretch : e.stretches)
    if (stretch.begin < first) begin = stretch.begin;
  begin = std::max(begin, first - std::min(first, most_before));
  const std::vector<ShownLoss> before = losses(e, begin, first);
  std::vector<ShownLoss> after = losses(e, first, std::min(end, first + most_before));
  const std::optional<double> scatter = bends_of(before);
  if (!scatter || after.size() < fewest_behind) return std::nullopt;
  after.resize(after.size() < compared ? fewest_behind : compared);  // an odd number has one middle
  const std::size_t last = before.size() - std::min(before.size(), compared);
  if (highest_rate(after, 0) > other_rate * highest_rate(before, last)) return std::nullopt;
  const double was = middle_of_shown(before, last, before.size(), &ShownLoss::high),
               is = middle_of_shown(after, 0, after.size(), &ShownLoss::low);
  const double goes_up = rise_of_course(loss_course(e, begin, first, 1));
  const double bound =
      was + goes_up + std::max(far_above * *scatter, beyond_earlier_rises * most_earlier_rise(before));
  if (!(is > bound)) return false;
  const auto lost = loss_of_lost_weights(e);
  if (!lost || *lost < bound || is < was + way_back * (*lost - was)) {
    told = "the loss is " + fixed(is - was, 2) + " higher behind the restart at line " +
           std::to_string(e.steps[first]->line) +
           ": other data, a warm-up, or an optimizer that was not restored";
    return false;
  }
  contradict(out, is, {0, bound}, e.steps[first]->line);
  blame(out, "weights_not_resumed",
        "the weights were not restored: the loss is that of a run at its beginning");
  return true;
}

}  // namespace assay::spec::audit
