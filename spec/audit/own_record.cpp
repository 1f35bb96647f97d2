// What our own record says twice: the loss it ends with, the tokens that count, the vocabulary.
#include <cmath>

#include "spec/audit/groups.hpp"
#include "spec/audit/relations.hpp"

namespace assay::spec::audit {

/// (log V - final loss) / (log V - floor), as spec/record/record.md defines it.
Result judge_gap_closed(const Evidence& e) {
  const auto &printed = e.record[Setting::gap_closed], &loss = e.record[Setting::final_loss],
             &floor = e.record[Setting::loss_floor], &vocab = e.record[Setting::vocab];
  if (!printed) return not_judged("share of the gap that is closed");
  if (!loss || !floor || !usable(vocab)) return not_judged("final loss, floor and vocabulary");
  const double uniform = std::log(vocab->value);
  if (!(floor->value < uniform)) return not_judged("a floor below log V");
  Result out = holding(1);
  out.printed = printed->value;
  const double share = (uniform - loss->value) / (uniform - floor->value),
               rounding = 1e-6 * (1 + std::abs(share));
  out.recomputed = {share - rounding, share + rounding};
  out.note = "from log V = " + shown(uniform, Unit::nats) + " to the floor";
  if (out.recomputed.meets(wide(*printed))) return out;
  contradict(out, printed->value, out.recomputed, printed->line);
  blame(out, "gap_of_other_loss", "made of another loss, floor or vocabulary than the record states");
  return out;
}

Result judge_valid_tokens(const Evidence& e) {
  Result out = holding(0);
  for (const Step* step : e.steps) {
    const auto &valid = (*step)[Field::valid_tokens], &tokens = (*step)[Field::tokens];
    if (!valid || !tokens) continue;
    ++out.judged;
    if (out.verdict != Verdict::contradicts) out.printed = valid->value, out.recomputed = {0, tokens->value};
    if (valid->value < 0 || valid->value > tokens->value)
      contradict(out, valid->value, {0, tokens->value}, step->line);
  }
  if (out.judged == 0) return not_judged("tokens whose loss counts");
  if (out.verdict == Verdict::contradicts)
    blame(out, "valid_tokens_other",
          "more tokens count than the step has: another batch's, or another rank's");
  return out;
}

Result judge_phases(const Evidence& e) {
  Result out = holding(0);
  for (const Step* step : e.steps) {
    const auto &phases = (*step)[Field::phases], &seconds = (*step)[Field::seconds];
    if (!phases || !seconds) continue;
    ++out.judged;
    if (out.verdict != Verdict::contradicts) out.printed = seconds->value, out.recomputed = wide(*phases);
    if (!wide(*phases).meets(wide(*seconds))) contradict(out, seconds->value, wide(*phases), step->line);
  }
  if (out.judged == 0) return not_judged("times of a step's parts");
  if (out.verdict == Verdict::contradicts)
    blame(out, "line_seconds", "step time, or that of one of its parts, of " + lines_alone(out));
  return out;
}

/// Other trainers pad vocabularies; our record states the model's own.
Result judge_vocabulary(const Evidence& e) {
  const auto& vocab = e.record[Setting::vocab];
  if (!vocab) return not_judged("vocabulary");
  if (!e.trainer.states_own_vocabulary || !e.model ||
      (e.model_basis != "named" && e.model_basis != "defined"))
    return not_judged("a model that the record names or defines");
  Result out = holding(1);
  out.printed = vocab->value;
  out.recomputed = exact_interval(static_cast<double>(e.model->vocab));
  if (out.recomputed.meets(wide(*vocab))) return out;
  contradict(out, vocab->value, out.recomputed, vocab->line);
  blame(out, "vocabulary_other",
        e.model->name + " has another: the model, or its vocabulary, is not what ran");
  return out;
}

}  // namespace assay::spec::audit
