#include "spec/audit/readers/doubled_lines.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "spec/audit/trainer.hpp"
#include "spec/audit/unnamed_ranks.hpp"

namespace assay::spec::audit {
namespace {

/// Both are there and within `relative` or `absolute` of each other.
bool near(const std::optional<Printed>& a, const std::optional<Printed>& b, double relative,
          double absolute) {
  if (!a || !b) return false;
  if (std::isnan(a->value) && std::isnan(b->value)) return true;
  return std::abs(a->value - b->value) <= absolute + relative * std::abs(b->value);
}

/// One line, printed twice: LLaMA-Factory writes losses with four digits behind the point, rates with five in
/// all.
bool of_one_line(const Step& a, const Step& b) {
  if (!near(a[Field::loss], b[Field::loss], 0, 1.01e-4)) return false;
  if (!near(a[Field::learning_rate], b[Field::learning_rate], 6e-5, 0)) return false;
  for (const Field field : {Field::step, Field::gradient_norm, Field::tokens_total, Field::tokens_per_second})
    if (a[field] && b[field] && !near(a[field], b[field], 0, 0)) return false;
  const auto &epoch = a[Field::epoch], &other = b[Field::epoch];
  return !epoch || !other || (epoch->low <= other->high && other->low <= epoch->high);
}

/// One line, printed twice by one program: its stamp and every other number are the same.
bool one_line_twice(const Step& a, const Step& b) {
  for (std::size_t i = 0; i < field_count; ++i)
    if ((a.fields[i] || b.fields[i]) && !near(a.fields[i], b.fields[i], 0, 0)) return false;
  return true;
}

/// Whether lines that are alike may be those of several ranks, which do not say which they are.
bool may_be_ranks(const RunRecord& run) {
  return ranks_that_may_print(run) > 1 &&
         std::none_of(run.steps.begin(), run.steps.end(),
                      [](const Step& step) { return step[Field::rank].has_value(); });
}

}  // namespace

void merge_doubled_lines(RunRecord& run) {
  std::vector<Step>& steps = run.steps;
  const Trainer& trainer = trainer_of(run);
  const bool of_printers = trainer.several_printers;
  if (steps.empty() || run.ranks_maybe_copies || trainer.writes_rows) return;
  if (!of_printers && may_be_ranks(run)) return;
  if (run.steps_seen != static_cast<std::int64_t>(steps.size())) return;
  // Lines that are alike stand in a row: of each step as many, or of several steps that round alike. The last
  // step may be cut.
  std::size_t copies = 0, begin = 0;
  for (std::size_t i = 1; i < steps.size(); ++i) {
    if ((of_printers ? of_one_line : one_line_twice)(steps[i - 1], steps[i])) continue;
    copies = std::gcd(copies, i - begin);
    begin = i;
  }
  if (!of_printers) copies = copies % 2 == 0 ? std::min<std::size_t>(copies, 2) : 0;
  if (copies < 2 || steps.size() < 2 * copies) return;
  std::vector<Step> merged;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (i % copies == 0) {
      merged.push_back(steps[i]);
      continue;
    }
    for (std::size_t field = 0; field < field_count; ++field)
      if (!merged.back().fields[field]) merged.back().fields[field] = steps[i].fields[field];
  }
  run.printed_twice = !of_printers;
  steps = std::move(merged);
  run.steps_seen = static_cast<std::int64_t>(steps.size());
}

}  // namespace assay::spec::audit
