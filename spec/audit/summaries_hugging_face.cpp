// What Hugging Face's Trainer states of a run as a whole: its mean loss, and its speed. Source:
// huggingface/transformers trainer.py, _inner_training_loop and _maybe_log_save_evaluate.
#include <algorithm>
#include <cmath>

#include "spec/audit/groups.hpp"
#include "spec/flops/conventions.hpp"
#include "spec/text/quantity.hpp"

namespace assay::spec::audit {
namespace {

/// The loss of the last steps, which were not logged, against that of the last line.
constexpr Interval unlogged = {0.5, 2};

/// A logged loss, and how many steps it stands for.
struct LoggedLoss {
  Interval loss;
  double steps;
};

/// Whether the epochs say that lines are lost, at the front or between: a distance, the first one's to 0 too,
/// of more than twice the usual one and what rounding adds.
bool epochs_are_missing(const std::vector<const Step*>& steps) {
  double before = 0, digit = 1;  // of the last place: 0.5 stands among 0.49 and 0.51
  std::vector<double> distances;
  for (const Step* step : steps) {
    const auto& epoch = (*step)[Field::epoch];
    if (!epoch || !(*step)[Field::loss] || !std::isfinite(epoch->value)) continue;
    distances.push_back(epoch->value - before);
    digit = std::min(digit, epoch->high - epoch->low);
    before = epoch->value;
  }
  if (distances.size() < 2) return false;
  std::vector<double> sorted(distances.begin() + 1, distances.end());
  std::sort(sorted.begin(), sorted.end());
  const double most = 2 * (sorted[sorted.size() / 2] + digit) + digit;
  return std::any_of(distances.begin(), distances.end(), [&](double distance) { return distance > most; });
}

/// Lines that may be lost at the front, by epochs of too few digits to tell: that one of the first line is 0
/// to so many distances.
double may_be_lost(const std::vector<const Step*>& steps) {
  const Printed *first = nullptr, *last = nullptr;
  double distances = -1;
  for (const Step* step : steps) {
    const auto& epoch = (*step)[Field::epoch];
    if (!epoch || !(*step)[Field::loss] || !std::isfinite(epoch->value)) continue;
    if (!first) first = &*epoch;
    last = &*epoch;
    ++distances;
  }
  if (distances < 1 || last->low <= first->high) return 0;
  return std::max(0.0, std::floor(first->high / ((last->low - first->high) / distances)) - 1);
}

/// Losses in the order of the log. Empty where some are no cross-entropies, no numbers, or the first ones are
/// not there.
std::vector<LoggedLoss> logged_losses(const std::vector<const Step*>& steps) {
  std::vector<LoggedLoss> out;
  double before = 0;
  bool numbered = true;
  for (const Step* step : steps) {
    const auto &loss = (*step)[Field::loss], &number = (*step)[Field::step];
    if (!loss) continue;
    if (!std::isfinite(loss->value) || loss->value <= 0) return {};
    numbered = number && (out.empty() || numbered);
    out.push_back({wide(*loss), numbered ? std::max(0.0, number->value - before) : 1});
    if (numbered) before = number->value;
  }
  if (out.size() < 2) return {};
  // A log that begins late lacks the losses before.
  const bool late = numbered ? out[0].steps >= 2 * std::max(1.0, out[1].steps) : epochs_are_missing(steps);
  return late ? std::vector<LoggedLoss>() : out;
}

}  // namespace

/// The loss that is summed over all steps, over their number. A logged loss is the mean of the steps since
/// the line before, or in other trainers of its kind the last one's: both lie between it and its neighbour.
Result judge_average_loss(const Evidence& e) {
  const auto& printed = e.record[Setting::average_loss];
  if (!e.trainer.summary_of_state || !usable(printed)) return not_judged("mean loss of a summary");
  if (!e.record.objective.empty()) return not_judged("a loss that is a cross-entropy");
  if (e.record.steps_seen > static_cast<std::int64_t>(e.record.steps.size()))
    return not_judged("the losses between those that are kept");
  if (e.record.unread_lines > 0) return not_judged("the losses on lines that could not be read");
  const std::vector<LoggedLoss> losses = logged_losses(e.steps);
  if (losses.empty()) return not_judged("losses from the first step on");
  const Interval first = losses[0].loss, second = losses[1].loss;
  const double change = std::abs(first.middle() - second.middle());
  Interval before = {first.low - change, first.high + change};
  double low = 0, high = 0, steps = 0;
  for (const auto& [loss, count] : losses) {
    low += count * std::max(0.0, std::min(before.low, loss.low));
    high += count * std::max(before.high, loss.high);
    steps += count;
    before = loss;
  }
  // Fewer than stand between two lines may follow the last one.
  const double rest = losses.back().steps;
  const double low_after = (low + rest * unlogged.low * before.low) / (steps + rest),
               high_after = (high + rest * unlogged.high * before.high) / (steps + rest);
  const double lost = (*e.steps.front())[Field::step] ? 0 : may_be_lost(e.steps),
               high_before = (high + lost * unlogged.high * first.high) / (steps + lost);
  Result out = holding(1);
  out.printed = printed->value;
  out.recomputed = {std::min(low / steps, low_after), std::max({high / steps, high_after, high_before})};
  if (wide(*printed).low > out.recomputed.high) {
    contradict(out, printed->value, out.recomputed, printed->line);
    // A whole multiple of the logged mean may be wrong on either side.
    const Interval ratio = wide(*printed) / out.recomputed;
    const double least = std::ceil(ratio.low), most = std::floor(ratio.high);
    const std::string many = fixed(least, 0) + (most > least ? " to " + fixed(most, 0) : "");
    if (least >= 2 && least <= most)
      blame(out, "average_loss_multiple",
            "about " + many + " times the mean of the logged losses: these are divided by " + many +
                " passes or ranks once too often, or it is a sum over as many");
    blame(out, "average_loss_too_large",
          "no mean of the logged losses: summed over passes or ranks, another run's, or a mean over other "
          "steps");
  } else if (wide(*printed).high < out.recomputed.low) {
    out.note =
        "less than the logged losses make: so it is after a resume, when those since then are divided by "
        "all steps";
  }
  return out;
}

namespace {

/// Passes that compute, of the three that 6 N counts: where adapters alone are trained, the weights'
/// gradients are left out.
constexpr double least_passes = 2.0 / 3;

/// What some number of the run as a whole makes: FLOP/s of one GPU, at the least.
struct LeastSpeed {
  double flops_per_second = 0;
  const char* made_of = nullptr;
  std::int64_t line = 0;
};

/// Of tokens seen, of the summary's rate and of `total_flos`, whichever says the most. `per_token`: FLOPs.
LeastSpeed least_speed_of_run(const Evidence& e, std::optional<double> per_token) {
  LeastSpeed most;
  const auto take = [&](double speed, const char* made_of, std::int64_t line) {
    if (speed / *e.gpus > most.flops_per_second) most = {speed / *e.gpus, made_of, line};
  };
  const Interval seconds = wide(*e.record[Setting::total_seconds]);
  if (const auto& counted = e.record[Setting::total_flops]; usable(counted))
    take(wide(*counted).low * least_passes / seconds.high, "total_flos", counted->line);
  if (!per_token) return most;
  if (const auto& rate = e.record[Setting::average_tokens_per_second]; usable(rate))
    take(wide(*rate).low * *per_token, "train_tokens_per_second", rate->line);
  for (const Step* step : e.steps)
    if (const auto& seen = (*step)[Field::tokens_total]; usable(seen))
      take(wide(*seen).low * *per_token / seconds.high, "num_input_tokens_seen", seen->line);
  return most;
}

}  // namespace

bool of_one_start(const Evidence& e) {
  const Result loss = judge_average_loss(e);
  return e.record.restarts.empty() && loss.verdict == Verdict::holds && loss.note.empty();
}

/// Trainer's tokens are those of all ranks' inputs (num_input_tokens_seen, trainer.py), padding too unless it
/// is set to leave it out ("non_padding": then the GPUs computed more, and what they make is still the
/// least); its `total_flos` is 6 x tokens x parameters without embeddings (modeling_utils.py,
/// floating_point_ops). Both go on after a resume, and the time begins anew: they are of one time only where
/// the mean loss is, too.
Result judge_average_speed(const Evidence& e) {
  const auto& seconds = e.record[Setting::total_seconds];
  if (!e.trainer.summary_of_state || !usable(seconds)) return not_judged("total time of a summary");
  const Printed* printed = e.printed_peak();
  const std::optional<double> peak = e.dense_peak ? e.dense_peak
                                     : printed    ? std::optional(wide(*printed).high)
                                                  : std::nullopt;
  if (!peak || e.on_cpu()) return not_judged(e.no_gpu());
  if (!e.gpus) return not_judged("number of GPUs");
  if (!of_one_start(e)) return not_judged("a mean loss that shows that the run was not resumed");
  std::optional<double> per_token;
  if (e.model)
    if (const auto alone = flops_per_token(Convention::exact, *e.model, 1); alone.flops)
      per_token = alone.flops->to_double() * least_passes;
  const LeastSpeed speed = least_speed_of_run(e, per_token);
  if (!speed.made_of) return not_judged("total FLOPs, or a model and tokens");
  Result out = holding(1);
  const double share = speed.flops_per_second / *peak;
  out.printed = share;
  out.unprinted = true;
  out.recomputed = {0, 1};
  out.note =
      std::string("what ") + speed.made_of + " makes, at the least: adapters alone trained, no attention";
  if (share > 1 + off_by_three_digits) {
    contradict(out, share, {0, 1}, speed.line);
    out.off_by = share;
    blame(
        out, "speed_impossible",
        "more than the dense peak: tokens or time are not what they are called, more GPUs ran, or the GPU or "
        "its dtype is another");
  }
  return out;
}

}  // namespace assay::spec::audit
