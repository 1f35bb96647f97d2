#include "spec/audit/readers/unnumbered_steps.hpp"

#include <algorithm>

namespace assay::spec::audit {

void number_steps(RunRecord& run) {
  const auto& planned = run[Setting::max_steps];
  const auto lines = static_cast<std::int64_t>(run.steps.size());
  if (run.format.name != "hugging_face" || !planned || lines == 0 || run.steps_seen != lines) return;
  if (!(planned->value >= static_cast<double>(lines) && planned->value < 1e12)) return;
  if (std::any_of(run.steps.begin(), run.steps.end(),
                  [](const Step& s) { return s[Field::step].has_value(); }))
    return;
  const auto steps = static_cast<std::int64_t>(planned->value), every = steps / lines;
  // Another interval would give as many lines where every - 1 does.
  if (steps / every != lines || (every > 1 && steps / (every - 1) == lines)) return;
  for (std::int64_t i = 0; i < lines; ++i)
    run.steps[static_cast<std::size_t>(i)][Field::step] =
        exactly(static_cast<double>((i + 1) * every), run.steps[static_cast<std::size_t>(i)].line);
}

}  // namespace assay::spec::audit
