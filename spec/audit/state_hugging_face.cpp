// How far Hugging Face's Trainer says that a run is: its lines, its state and its plan. Source:
// huggingface/transformers trainer.py, _inner_training_loop; trainer_callback.py, TrainerState.
#include <algorithm>
#include <cmath>

#include "spec/audit/groups.hpp"
#include "spec/text/quantity.hpp"

namespace assay::spec::audit {
namespace {

/// The state was saved when its last line was written, or later, and before more steps than were planned; so
/// was its summary, which is of the last step. `done`: of the last line.
void judge_saved_steps(const Evidence& e, double done, Result& out) {
  if (out.verdict == Verdict::contradicts || e.stretches.size() != 1) return;
  const double planned = e.record[Setting::max_steps]->value;
  const auto &step = e.record.saved.step, &summary = e.record.saved.summary_step;
  const auto judge = [&](const std::optional<Printed>& printed, Interval possible, const std::string& what) {
    if (!printed || !std::isfinite(printed->value)) return;
    ++out.judged;
    if (printed->value >= possible.low && printed->value <= possible.high) return;
    contradict(out, printed->value, possible, printed->line);
    blame(out, printed->value > possible.high ? "step_beyond" : "final_step_earlier",
          what + " is " + shown(printed->value, Unit::steps) + ", and the last line's step " +
              shown(done, Unit::steps) + " of " + shown(planned, Unit::steps) + " planned ones");
  };
  judge(step, {done, planned}, "global_step");
  judge(summary, {done, planned}, "the step of the summary");
}

/// The furthest step that the state or its summary says was done, of `planned` ones; 0 where neither does.
/// Lines are every few steps, so that the last one is seldom of the last step.
double furthest_saved(const Evidence& e, double planned) {
  double out = 0;
  for (const auto& step : {e.record.saved.step, e.record.saved.summary_step})
    if (step && std::isfinite(step->value) && step->value <= planned) out = std::max(out, step->value);
  return out;
}

/// A state that was saved at its last line's step has that line's epoch, which earlier versions round to two
/// digits. After later steps it may have less: after a resume with a smaller batch.
void judge_saved_epoch(const Evidence& e, const Printed& done, double planned, Result& out) {
  constexpr double two_digits = 0.01;
  const auto& epoch = e.record.saved.epoch;
  if (!epoch || !std::isfinite(epoch->value) || e.stretches.size() != 1) return;
  ++out.judged;
  const auto &saved = e.record.saved.step, &step = (*e.steps.back())[Field::step];
  const bool same = saved && step && saved->value == step->value;
  const Interval possible = {same ? done.low - two_digits : 0, same ? done.high + two_digits : planned};
  if (epoch->value >= possible.low && epoch->value <= possible.high) return;
  contradict(out, epoch->value, possible, epoch->line);
  blame(out, epoch->value > planned ? "epochs_beyond" : "epoch_other",
        "the state's epoch is " + shown(epoch->value, Unit::none) + ", its last line's " +
            shown(done.value, Unit::none) + " of " + shown(planned, Unit::none) + " planned ones");
}

/// How far the epoch grew from the last line to the state, against what it grew from line to line. A pass
/// whose batches are no multiple of the accumulation ends in a short step, or in one that is not counted, a
/// step for each pass that ends; and what is behind the last line may be of another batch, of up to four
/// times as many sequences (chosen). Lines before a resume may be of any.
void judge_growth_of_epoch(const Evidence& e, const Printed& done, Result& out) {
  constexpr double of_another_batch = 4, two_digits = 0.01;
  constexpr std::size_t enough = 3;
  const auto &epoch = e.record.saved.epoch, &saved = e.record.saved.step,
             &step = (*e.steps.back())[Field::step];
  if (out.verdict == Verdict::contradicts || !epoch || !saved || !step || e.stretches.size() != 1) return;
  if (!std::isfinite(epoch->value) || !std::isfinite(saved->value) || saved->value < step->value) return;
  double most = 0;
  std::size_t lines = 0;
  const Step* before = nullptr;
  for (const Step* here : e.steps) {
    if (!(*here)[Field::epoch] || !(*here)[Field::step]) continue;
    if (before && (*here)[Field::step]->value > (*before)[Field::step]->value) {
      const double grown = wide(*(*here)[Field::epoch]).high - wide(*(*before)[Field::epoch]).low;
      most = std::max(most, grown / ((*here)[Field::step]->value - (*before)[Field::step]->value));
      ++lines;
    }
    before = here;
  }
  if (lines < enough) return;
  const double steps = saved->value - step->value,
               passes = std::max(0.0, std::ceil(epoch->value) - std::floor(done.value)),
               reach = done.high + two_digits + of_another_batch * most * (steps + 1 + passes);
  ++out.judged;
  if (epoch->value <= reach) return;
  contradict(out, epoch->value, {done.low, reach}, epoch->line);
  blame(out, "epoch_jumps",
        "the state's epoch is " + shown(epoch->value, Unit::none) + " at step " +
            shown(saved->value, Unit::steps) + ", the last line's " + fixed(done.value, 4) + " at step " +
            shown(step->value, Unit::steps) + ", and " + shown(steps, Unit::steps) + " steps make at most " +
            fixed(most * steps, 4) + " by the lines: their epochs, or the state's, are counted wrong");
}

/// Whether the run says that it did all it had planned, as epochs and as steps/s over its time go, when it
/// had done `reached` steps of more: Trainer divides the planned steps by the time, whether they were done or
/// not.
bool done_before_the_plan(const Evidence& e, double reached, double planned) {
  constexpr double timed_more = 0.01;  // as of the rates of a summary (summary_rates.cpp)
  const auto &rate = e.record[Setting::average_steps_per_second], &time = e.record[Setting::total_seconds],
             &passes = e.record[Setting::planned_epochs], &epoch = e.record.saved.epoch;
  if (!usable(rate) || !usable(time) || !usable(passes) || !epoch) return false;
  const Interval made = wide(*rate) * wide(*time) * Interval{1 - timed_more, 1 + timed_more};
  return epoch->value >= passes->value && made.holds(reached) && !made.holds(planned);
}

}  // namespace

/// Trainer's state holds the steps that were planned, and counts them from 1.
Result judge_steps_of_state(const Evidence& e) {
  const auto& planned = e.record[Setting::max_steps];
  const Step* const last = e.steps.empty() ? nullptr : e.steps.back();
  if (!usable(planned) || !last || !(*last)[Field::step]) return not_judged("steps of the whole run");
  Result out = holding(1);
  out.printed = planned->value;
  for (const Step* step : e.steps) {
    const auto &number = (*step)[Field::step], &own = (*step)[Field::planned_steps];
    const double most = own ? own->value : planned->value;  // an earlier start may have planned more
    if (number && number->value > most) contradict(out, number->value, {0, most}, step->line);
  }
  const double done = (*last)[Field::step]->value;
  judge_saved_steps(e, done, out);
  const double reached = std::max(done, furthest_saved(e, planned->value));
  out.recomputed = out.verdict == Verdict::contradicts ? out.recomputed : exact_interval(reached);
  if (!out.causes.empty()) return out;
  if (out.verdict != Verdict::contradicts && reached < planned->value &&
      done_before_the_plan(e, reached, planned->value)) {
    contradict(out, planned->value, exact_interval(reached), planned->line);
    blame(out, "planned_steps_other",
          "max_steps is " + shown(planned->value, Unit::steps) + ", and all of the run is " +
              shown(reached, Unit::steps) +
              " steps: its epoch is the last planned one, and steps/s times its "
              "run time are as many");
    return out;
  }
  if (out.verdict == Verdict::contradicts)
    blame(out, "step_beyond",
          "the number of the step is beyond the last one, " + shown(planned->value, Unit::steps));
  else if (reached < planned->value)
    out.note = (reached > done ? "stopped early, or saved before the end: step "
                               : "stopped early, or logged no further: step ") +
               shown(reached, Unit::steps) + " of " + shown(planned->value, Unit::steps);
  else if (done < reached)
    out.note = "the last line is of step " + shown(done, Unit::steps) + ", the " +
               (e.record.saved.step ? "state" : "summary") + " of the last step";
  return out;
}

/// Trainer's state holds the passes over the data that were planned, rounded up, and of each line how many
/// were done. Of the last line: those before a resume may be of another batch, and of another count.
Result judge_epochs(const Evidence& e) {
  const auto& planned = e.record[Setting::planned_epochs];
  const Step* const last = e.steps.empty() ? nullptr : e.steps.back();
  if (!e.trainer.summary_of_state || !usable(planned)) return not_judged("planned epochs");
  if (!last || !usable((*last)[Field::epoch])) return not_judged("the epoch of a step");
  const Printed& done = *(*last)[Field::epoch];
  Result out = holding(1);
  out.printed = done.value, out.recomputed = {0, planned->value};
  // No rounding of a number up to a whole one, to whatever digits, goes beyond that.
  if (wide(done).low > planned->value) {
    contradict(out, done.value, {0, planned->value}, done.line);
    blame(out, "epochs_beyond",
          "more passes over the data than the " + shown(planned->value, Unit::none) +
              " of num_train_epochs (line " + std::to_string(planned->line) +
              "): epochs are counted wrong, or the state is put together of two runs");
    return out;
  }
  judge_saved_epoch(e, done, planned->value, out);
  judge_growth_of_epoch(e, done, out);
  return out;
}

}  // namespace assay::spec::audit
