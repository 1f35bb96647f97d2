#include "spec/audit/readers/unnumbered_steps.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "spec/audit/trainer.hpp"

namespace assay::spec::audit {

namespace {

/// Whether some number of steps per epoch makes the printed epochs of one line every `every` steps. An
/// epoch's last step may be of fewer batches than the others: each epoch begun moves the count by less than a
/// step.
bool epochs_agree(const RunRecord& run, std::int64_t every) {
  double least = 0, most = std::numeric_limits<double>::infinity();  // steps per epoch
  for (std::size_t i = 0; i < run.steps.size(); ++i) {
    const auto& epoch = run.steps[i][Field::epoch];
    if (!epoch || !(epoch->low > 0) || !std::isfinite(epoch->high)) continue;
    const double step = static_cast<double>(every) * static_cast<double>(i + 1), off = std::ceil(epoch->high);
    least = std::max(least, (step - off) / epoch->high);
    most = std::min(most, (step + off) / epoch->low);
  }
  return least <= most;
}

}  // namespace

void number_steps(RunRecord& run) {
  const auto& planned = run[Setting::max_steps];
  const auto lines = static_cast<std::int64_t>(run.steps.size());
  if (!trainer_of(run).lines_without_steps || !planned || lines == 0 || run.steps_seen != lines) return;
  if (!(planned->value >= static_cast<double>(lines) && planned->value < 1e12)) return;
  if (std::any_of(run.steps.begin(), run.steps.end(),
                  [](const Step& s) { return s[Field::step].has_value(); }))
    return;
  const auto steps = static_cast<std::int64_t>(planned->value), every = steps / lines;
  // Another interval would give as many lines where every - 1 does.
  if (steps / every != lines || (every > 1 && steps / (every - 1) == lines)) return;
  if (!epochs_agree(run, every)) return;
  for (std::int64_t i = 0; i < lines; ++i)
    run.steps[static_cast<std::size_t>(i)][Field::step] =
        exactly(static_cast<double>((i + 1) * every), run.steps[static_cast<std::size_t>(i)].line);
}

}  // namespace assay::spec::audit
