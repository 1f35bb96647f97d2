// Whether losses and gradient norms are finite, and stay so.
#include <algorithm>
#include <cmath>

#include "spec/audit/filtered_losses.hpp"
#include "spec/audit/groups.hpp"

namespace assay::spec::audit {
namespace {

/// The last step whose loss is finite; where a line has none, its gradient norm stands for it.
std::size_t last_finite(const Evidence& e) {
  for (std::size_t i = e.steps.size(); i > 0; --i) {
    const auto &loss = (*e.steps[i - 1])[Field::loss], &norm = (*e.steps[i - 1])[Field::gradient_norm];
    const auto& number = loss ? loss : norm;
    if (number && std::isfinite(number->value)) return i - 1;
  }
  return 0;
}

/// Loss scaling halves its factor with every skipped step: even from 2^32 it is soon through.
constexpr std::int64_t most_skips_in_a_row = 64;

/// Steps at the end of the log that its trainer left out because their loss was no number, and what its
/// summary makes of such losses.
void judge_end(Result& out, const Evidence& e) {
  std::size_t begin = e.steps.size();
  for (; begin > 0 && !(*e.steps[begin - 1])[Field::loss]; --begin) {
  }
  for (std::size_t i = begin; i < e.steps.size(); ++i) {
    const auto& left_out = (*e.steps[i])[Field::not_finite];
    if (!left_out || !(left_out->value > 0)) continue;
    ++out.judged;
    contradict(out, std::nan(""), {0, 1e308}, e.steps[i]->line);
    const auto& number = (*e.steps[i])[Field::step];
    blame(out, "loss_not_finite",
          "the log ends in steps whose loss was no number" +
              (number ? ", from step " + shown(number->value, Unit::steps) + " on" : std::string()) +
              ": the run diverged");
  }
  for (const Setting setting : {Setting::final_loss, Setting::average_loss}) {
    const auto& loss = e.record[setting];
    if (!loss) continue;
    ++out.judged;
    if (std::isfinite(loss->value)) continue;
    contradict(out, loss->value, {0, 1e308}, loss->line);
    blame(out, "loss_not_finite", "the loss of the summary is no number: some step's was none");
  }
}

/// Every line counts the skipped steps, and there are none.
bool counts_no_skip(const Evidence& e) {
  return std::all_of(e.steps.begin(), e.steps.end(), [](const Step* step) {
    const auto& skipped = (*step)[Field::skipped];
    return skipped && skipped->value == 0;
  });
}

/// "step 7"; of one that is printed without its number, "the step of line 9".
std::string name_of(const Step& step) {
  if (const auto& number = step[Field::step]) return "step " + shown(number->value, Unit::steps);
  return step.line > 0 ? "the step of line " + std::to_string(step.line) : "one of the steps";
}

}  // namespace

Result judge_loss_finite(const Evidence& e) {
  Result out = holding(0);
  const std::size_t last = last_finite(e), filtered = first_filtered_loss(e);
  const bool scaled = e.record.dtype.empty() || computing_precision(e.record.dtype) == Precision::fp16;
  std::int64_t skipped = 0, in_a_row = 0, first_skipped = 0;
  bool endless = false, loss_ends = false, losses_are_finite = true;
  const Step* first_wrong = nullptr;
  for (std::size_t i = 0; i < e.steps.size(); ++i) {
    const auto &loss = (*e.steps[i])[Field::loss], &norm = (*e.steps[i])[Field::gradient_norm];
    out.judged += loss.has_value() + norm.has_value();
    if (loss && out.verdict != Verdict::contradicts) out.printed = loss->value;
    const auto fails = [&](const Printed& number) {
      if (out.verdict != Verdict::contradicts) first_wrong = e.steps[i];
      contradict(out, number.value, {0, 1e308}, number.line ? number.line : e.steps[i]->line);
    };
    if (loss && !std::isfinite(loss->value)) {
      fails(*loss);
      losses_are_finite = false;
      loss_ends = loss_ends || i > last;
    }
    if (!norm) continue;
    if (std::isfinite(norm->value)) {
      in_a_row = 0;
      continue;
    }
    // Losses go on: the trainer left the update out. At the end only fp16's loss scaling is known to.
    const bool goes_on =
        i < filtered && (!loss || std::isfinite(loss->value)) && (i < last || (i == last && scaled));
    endless = endless || ++in_a_row > most_skips_in_a_row;
    if (goes_on && !endless) {
      if (skipped++ == 0) first_skipped = norm->line ? norm->line : e.steps[i]->line;
    } else {
      fails(*norm);
    }
  }
  if (skipped > 0)
    out.note = std::to_string(skipped) + (skipped == 1 ? " step" : " steps") +
               " with a gradient that is no number, the first in line " + std::to_string(first_skipped) +
               ": left out, as with loss scaling, for the losses go on";
  if (out.verdict != Verdict::contradicts) {
    judge_end(out, e);
    if (std::none_of(e.steps.begin(), e.steps.end(),
                     [](const Step* s) { return (*s)[Field::loss].has_value(); })) {
      out.unprinted = true;
      if (out.note.empty()) out.note = "gradient norms: no step's loss is printed";
    }
    return out.judged == 0 ? not_judged("loss") : out;
  }
  const std::string step = name_of(*first_wrong);
  if (filtered < e.steps.size() && losses_are_finite) {
    out.note.clear();  // no loss goes on
    blame(out, "loss_not_finite",
          "no loss is known from " + name_of(*e.steps[filtered]) +
              " on, and no gradient is a number: the Trainer prints 0.0 where no loss since its line before "
              "was one (logging_nan_inf_filter)");
  } else if (endless)
    blame(out, "gradient_not_finite", "no step of so many in a row was updated");
  else if (losses_are_finite)
    blame(out, "gradient_not_finite",
          counts_no_skip(e)
              ? "gradients overflowed, and the log counts no step as skipped: its update was done with them"
              : "gradients overflowed; a step that loss scaling skips does no harm, any other ends the "
                "training");
  else if (loss_ends || last == 0)
    blame(out, "loss_not_finite", "the run diverged at " + step + "; no later step of it trains a model");
  else
    blame(out, "loss_not_finite",
          "no loss: " + step + " was left out or its line is damaged, for later losses are finite");
  return out;
}

}  // namespace assay::spec::audit
