#include <algorithm>
#include <cmath>

#include "spec/audit/change_builder.hpp"
#include "spec/audit/copied_lines.hpp"
#include "spec/audit/groups.hpp"
#include "spec/audit/relations.hpp"
#include "spec/audit/running_mean.hpp"
#include "spec/text/quantity.hpp"

namespace assay::spec::audit {
namespace {

std::string whole(double number) { return shown(number, Unit::steps); }

/// Lines in a row, line `i` one of them, each of an earlier step than the line before, and none of them where
/// the log says that the program started again.
std::size_t falls_in_a_row(const Evidence& e, std::size_t i) {
  const auto falls = [&](std::size_t k) {
    if (k == 0 || k >= e.steps.size()) return false;
    const auto &here = (*e.steps[k])[Field::step], &before = (*e.steps[k - 1])[Field::step];
    return here && before && here->value < before->value &&
           std::none_of(e.record.restarts.begin(), e.record.restarts.end(), [&](const Restart& restart) {
             return restart.line > e.steps[k - 1]->line && restart.line <= e.steps[k]->line;
           });
  };
  std::size_t count = 0;
  for (std::size_t k = i; falls(k); --k) ++count;
  for (std::size_t k = i + 1; falls(k) && count < 3; ++k) ++count;
  return count;
}

/// Whether the log says, between line `i` of the steps and the one before, that lines are left out, or holds
/// there lines of so many steps that cannot be read.
bool says_so(const Evidence& e, std::size_t i, double missing) {
  const std::int64_t before = e.steps[i - 1]->line, here = e.steps[i]->line;
  const auto& said = e.record.elisions;
  const auto next = std::upper_bound(said.begin(), said.end(), before);
  if (next != said.end() ? *next < here : said.size() == RunRecord::most_elisions) return true;
  const auto& hidden = e.record.hidden_steps;
  double most = 0;
  auto line = std::upper_bound(hidden.begin(), hidden.end(), HiddenSteps{before, 0});
  if (line == hidden.end()) return hidden.size() == RunRecord::most_elisions;
  for (; line != hidden.end() && line->line < here; ++line) most += static_cast<double>(line->most);
  return most >= missing;
}

/// Whether that distance, and longer ones that begin later, lead from its first place to the last step of the
/// log: another interval from there on, three times at least. Lines that are lost leave shorter ones behind.
bool to_the_end(const Evidence& e, const StepGap& gap) {
  const auto& last = (*e.steps.back())[Field::step];
  if (gap.count < 3 || !last) return false;
  double end = gap.before;
  for (const StepGap& other : e.record.gaps)
    if (other.before >= gap.before && other.distance >= gap.distance)
      end += other.distance * static_cast<double>(other.count);
  return end <= last->value && last->value < end + gap.distance;
}

/// The distances that are longer than the usual one, of a log that is too long to be kept whole.
void judge_gaps(const Evidence& e, Result& out, std::string& what, bool& missing) {
  const auto& gaps = e.record.gaps;
  const auto usual = std::max_element(gaps.begin(), gaps.end(), [](const StepGap& a, const StepGap& b) {
    return a.count != b.count ? a.count < b.count : a.distance > b.distance;
  });
  for (const StepGap& gap : gaps) {
    if (gap.distance <= usual->distance || to_the_end(e, gap)) continue;
    contradict(out, gap.before + gap.distance, exact_interval(gap.before + usual->distance), gap.line);
    out.contradicted += gap.count - 1;
    missing = true;
    if (what.empty())
      what =
          "steps between " + whole(gap.before) + " and " + whole(gap.before + gap.distance) + " are missing";
  }
}

/// Whether the log has an interval, so that lines are lost where a distance is longer: most lines are the
/// usual distance behind the line before. Else somebody chose the lines, as one quotes steps 1, 10, 100 and
/// 250, and nothing says which others there were.
bool has_interval(const Evidence& e) {
  std::int64_t usual = 0, all = 0;
  for (const Stretch& stretch : e.stretches)
    for (std::size_t i = stretch.begin + 1; i < stretch.end; ++i) {
      const auto &before = (*e.steps[i - 1])[Field::step], &here = (*e.steps[i])[Field::step];
      if (!before || !here || here->value <= before->value) continue;
      ++all, usual += here->value - before->value == e.line_distance ? 1 : 0;
    }
  return 2 * usual > all;
}

/// Whether the log has another, longer interval from line `i` on, to its end or to the next restart: as long
/// a distance every time, three times at least, or from some line on a longer one every time. The last step
/// may be printed whatever its number. Lost lines leave one distance that the next ones do not repeat.
bool begins_interval(const Evidence& e, std::size_t i) {
  constexpr double fewest = 3;
  double distance = 0, count = 0;
  for (; i < e.steps.size(); ++i) {
    const auto &here = (*e.steps[i])[Field::step], &before = (*e.steps[i - 1])[Field::step];
    if (!here || !before) return false;
    const double next = here->value - before->value;
    if (!(next > 0)) break;  // a restart
    const bool last = i + 1 == e.steps.size() || !(*e.steps[i + 1])[Field::step] ||
                      (*e.steps[i + 1])[Field::step]->value <= here->value;
    if (next == distance || (distance > 0 && last)) {
      ++count;
    } else {
      if (distance > 0 && (count < fewest || next < distance)) return false;
      distance = next, count = 1;
    }
  }
  return count >= fewest;
}

/// Whether it takes more than eight digits to write the number.
bool has_many_digits(double number) {
  if (!(number > 0) || !std::isfinite(number)) return false;
  const double in_eighths = number * std::pow(10, 7 - std::floor(std::log10(number)));
  return std::abs(in_eighths - std::round(in_eighths)) > 1e-6;
}

/// Lines without numbers of steps that repeat the line before in all they print, a norm of gradients among it
/// that is printed to nine digits or more: no two steps have the same one. Not where the program started
/// again.
void judge_unnumbered_doubles(const Evidence& e, Result& out, std::string& what) {
  for (std::size_t i = 1; i < e.steps.size(); ++i) {
    const Step &before = *e.steps[i - 1], &here = *e.steps[i];
    const auto& norm = here[Field::gradient_norm];
    const bool restarted = std::any_of(
        e.record.restarts.begin(), e.record.restarts.end(),
        [&](const Restart& restart) { return restart.line > before.line && restart.line <= here.line; });
    if (restarted || !usable(norm) || !has_many_digits(norm->value) || !same_numbers(before, here)) continue;
    ++out.judged;
    contradict(out, static_cast<double>(i), exact_interval(static_cast<double>(i + 1)), here.line);
    if (what.empty())
      what = "line " + std::to_string(here.line) + " repeats line " + std::to_string(before.line) +
             ", norm of gradients and all";
  }
}

}  // namespace

Result judge_steps(const Evidence& e) {
  Result out = holding(0);
  const double usual = e.line_distance;
  double gap = usual;
  const bool all_kept = e.record.steps_seen <= static_cast<std::int64_t>(e.record.steps.size()),
             regular = has_interval(e);
  std::int64_t restarts = 0, swaps = 0, left_out = 0;
  bool doubled = false, missing = false, no_number = false, chosen = false;
  std::size_t copied_to = 0;  // the line behind copies goes on from before them
  std::string what, copied, resumed;
  for (const MissingSteps& lost : e.record.missing) {
    contradict(out, static_cast<double>(lost.last), exact_interval(static_cast<double>(lost.first - 1)),
               lost.line);
    missing = true;
    if (!resumed.empty()) continue;
    resumed = (lost.first == lost.last
                   ? "step " + grouped(lost.first) + " is missing"
                   : "steps " + grouped(lost.first) + " to " + grouped(lost.last) + " are missing") +
              ": the run was resumed after step " + grouped(lost.last);
  }
  what = resumed;
  for (std::size_t i = 0; i < e.steps.size(); ++i) {
    const auto& number = (*e.steps[i])[Field::step];
    if (!number) continue;
    ++out.judged;
    out.printed = out.verdict == Verdict::contradicts ? out.printed : number->value;
    if (number->value < 0 || number->value != std::floor(number->value)) {
      contradict(out, number->value, {std::max(0.0, std::floor(number->value)), 1e300}, e.steps[i]->line);
      no_number = true;
      if (what.empty()) what = "step " + shown(number->value, Unit::none) + " is no count of steps";
    }
    if (i == 0 || (copied_to > 0 && i == copied_to) || !(*e.steps[i - 1])[Field::step]) continue;
    const double before = (*e.steps[i - 1])[Field::step]->value, here = number->value;
    if (here <= before) gap = usual;
    if (done_again(e.record, e.steps, i)) {
      ++restarts;
    } else if (here == before) {
      contradict(out, here, exact_interval(before + gap), e.steps[i]->line);
      doubled = true;
      if (what.empty()) what = "step " + whole(here) + " stands twice";
    } else if (const Copies copies = here < before ? copies_at(e, i) : Copies{}; copies.lines > 0) {
      contradict(out, here, exact_interval(before + gap), e.steps[i]->line);
      out.contradicted += static_cast<std::int64_t>(copies.lines) - 1, copied_to = i + copies.lines;
      if (copied.empty()) copied = told_as_copies(e, i, copies);
      if (what.empty()) what = copied;
    } else if (here < before) {
      // One step out of place comes back at once; a restart goes on from where it fell to, if not every time.
      const bool back = i + 1 < e.steps.size() && (*e.steps[i + 1])[Field::step] &&
                        (*e.steps[i + 1])[Field::step]->value > before;
      if (back || (all_kept && falls_in_a_row(e, i) >= 3)) {
        contradict(out, here, exact_interval(before + gap), e.steps[i]->line);
        ++swaps;
        if (what.empty()) what = "step " + whole(here) + " stands after step " + whole(before);
      } else {
        ++restarts;
      }
    } else if (all_kept && gap > 0 && here - before > gap && i > 1 &&
               (i + 1 < e.steps.size() || here - before > 100 * gap)) {
      if (begins_interval(e, i)) {
        gap = here - before;
        continue;
      }
      if (says_so(e, i, (here - before) / gap - 1)) {
        ++left_out;
        continue;
      }
      if (!regular) {
        chosen = true;
        continue;
      }
      contradict(out, here, exact_interval(before + gap), e.steps[i]->line);
      missing = true;
      if (what.empty()) what = "steps between " + whole(before) + " and " + whole(here) + " are missing";
    }
  }
  if (out.judged == 0) {
    judge_unnumbered_doubles(e, out, what);
    doubled = out.judged > 0;
  }
  if (out.judged == 0) return not_judged("step numbers");
  if (!all_kept) judge_gaps(e, out, what, missing);
  if (!all_kept && e.record.gaps.empty() && out.verdict != Verdict::contradicts)
    return not_judged("the steps between those that are kept");
  if (out.verdict == Verdict::contradicts) {
    out.note = what;
    if (no_number)
      blame(out, "step_no_number",
            "a step's number is a whole one from 0 on: another column, or a damaged line");
    if (swaps)
      blame(out, "steps_out_of_order", "lines are out of order: several writers, or logs put together");
    if (!copied.empty()) blame_copies(out, copied);
    if (doubled && !swaps && copied.empty())
      blame(out, "step_doubled", "steps are logged twice: two writers, or logs put together");
    if (missing && !swaps)
      blame(out, "step_missing", resumed.empty() ? "lines were lost, or steps were skipped" : resumed);
  } else {
    out.recomputed = exact_interval(out.printed);
    if (restarts)
      out.note =
          std::to_string(restarts) + (restarts == 1 ? " restart" : " restarts") + " from an earlier step";
    if (left_out)
      out.note += std::string(out.note.empty() ? "" : "; ") +
                  std::string("lines are left out, as the log says itself, ") +
                  (e.record.unread_lines + e.record.cut_lines.count > 0 ? "or are not read, " : "") + "in " +
                  std::to_string(left_out) + (left_out == 1 ? " place" : " places");
    if (chosen)
      out.note += std::string(out.note.empty() ? "" : "; ") +
                  "the lines have no interval: a selection, of which none is taken for lost";
    if (e.record.printed_twice)
      out.note += std::string(out.note.empty() ? "" : "; ") +
                  "every line is printed twice, all its numbers alike (two handlers of one log): read once";
    if (e.record.ranks_maybe_copies) {
      // Of as many lines as the mesh has ranks, each has its own; of fewer, either may be.
      const auto& mesh = e.record[Setting::gpus];
      const std::string times = std::to_string(e.record.ranks) + " times, all alike: lines of so many ranks";
      if (!mesh || mesh->value != static_cast<double>(e.record.ranks))
        return not_judged("whose lines they are (each step stands " + times +
                          (mesh ? ", of " + whole(mesh->value) : "") + ", or one line printed as often)");
      out.note +=
          (out.note.empty() ? "" : "; ") + ("each stands " + times + ", or one line printed as often");
    }
  }
  return out;
}

Result judge_planned_steps(const Evidence& e) {
  const auto& configured = e.record[Setting::max_steps];
  Result out = holding(0);
  // A total that was taken from a line is nothing to hold the lines against.
  const bool stated = configured && std::none_of(e.steps.begin(), e.steps.end(), [&](const Step* step) {
                        return configured->line > 0 && step->line == configured->line;
                      });
  bool beyond = false, other = false, printed = false;
  for (const Step* step : e.steps) {
    const auto &planned = (*step)[Field::planned_steps], &number = (*step)[Field::step];
    if (!planned) continue;
    printed = true;
    if (number && number->value > planned->value) {
      contradict(out, number->value, {0, planned->value}, step->line);
      beyond = true;
      continue;
    }
    if (!stated) continue;
    ++out.judged;
    if (out.verdict != Verdict::contradicts) out.printed = planned->value, out.recomputed = wide(*configured);
    if (planned->value == configured->value) continue;
    contradict(out, planned->value, wide(*configured), step->line);
    other = true;
  }
  if (e.trainer.summary_of_state && !(printed && stated)) return judge_steps_of_state(e);
  const auto& completed = e.record[Setting::completed_steps];
  if (configured && completed && e.record.restarts.empty()) {
    ++out.judged;
    if (out.verdict != Verdict::contradicts)
      out.printed = completed->value, out.recomputed = wide(*configured);
    if (completed->value != configured->value) {
      contradict(out, completed->value, wide(*configured), completed->line);
      blame(out, "completed_steps_other",
            "the run says that it is done after " + whole(completed->value) + " steps, and that " +
                whole(configured->value) + " were planned" + held_against(e.record, "max_steps"));
    }
  }
  if (out.judged == 0 && !beyond) return not_judged(printed ? "configured steps" : "steps of the whole run");
  if (other)
    blame(out, "planned_steps_other",
          "the lines are of a run of " + whole(out.printed) + (out.printed == 1 ? " step" : " steps") +
              ", not of the " + whole(configured->value) + " that are configured" +
              held_against(e.record, "max_steps") + ": another run's lines, or its settings");
  if (beyond) blame(out, "step_beyond", "the number of the step is beyond the last one");
  return out;
}

}  // namespace assay::spec::audit
