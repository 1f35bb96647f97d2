// Rates, times and utilisation of each step.
#include <algorithm>
#include <cmath>

#include "spec/audit/conventions.hpp"
#include "spec/audit/running_mean.hpp"

namespace assay::spec::audit {
namespace {

/// Each count once, by the first name that has it, beside the first one.
std::vector<FlopCounting> ways_of(const std::vector<CountedFlops>& counted) {
  std::vector<FlopCounting> out;
  const Interval first = exact_interval(counted.front().flops.middle());
  for (const CountedFlops& one : counted) {
    const Interval scale = one.flops / first;
    const bool known = std::any_of(out.begin(), out.end(), [&](const FlopCounting& way) {
      return std::abs(way.scale.low / scale.low - 1) < 1e-9 &&
             std::abs(way.scale.high / scale.high - 1) < 1e-9;
    });
    if (!known) out.push_back({one.convention, scale});
  }
  return out;
}

/// A stated count that is not the one of the convention is one wrong number: an MFU that is made of the right
/// one on every line, and on none of the stated one, is no second.
void count_by_convention(const Evidence& e, const std::optional<Interval>& counted, Comparison& mfu) {
  const auto stated = e.of(Setting::flops_per_token);
  if (!stated || !counted || e.record.format.convention.empty() || !mfu.ways.empty()) return;
  Comparison other;
  other.ways = {{e.record.format.convention, *counted / *stated}};
  const bool right =
      !mfu.samples.empty() && std::all_of(mfu.samples.begin(), mfu.samples.end(), [&](const Sample& sample) {
        return holds(other, sample, 1, 0) && !sample.holds(1);
      });
  if (right) mfu.ways = other.ways;
}

/// Where neither log nor reader says how many ranks share the passes: any number that divides them.
std::vector<FlopCounting> ways_of_ranks(const Evidence& e) {
  std::vector<FlopCounting> out;
  const double passes =
      e.accumulation_is_configured && e.accumulation->low == e.accumulation->high ? e.accumulation->low : 0;
  for (double ranks = 1; ranks <= std::min(passes, 4096.0); ++ranks)
    if (std::fmod(passes, ranks) == 0)
      out.push_back({std::to_string(static_cast<int>(ranks)), exact_interval(1 / ranks)});
  return out;
}

/// Of a batch that changes: the tokens of a step by the batch of its line, where its neighbours print the
/// same one. Between others some of the steps since the line before had another, and trainers print the batch
/// of the step or of the next one.
std::optional<Interval> tokens_of_line(const Evidence& e, std::size_t i) {
  const auto& batch = (*e.steps[i])[Field::step_sequences];
  if (!usable(batch) || !e.sequence_length || i == 0 || i + 1 >= e.steps.size()) return std::nullopt;
  for (const std::size_t k : {i - 1, i + 1})
    if (const auto& other = (*e.steps[k])[Field::step_sequences]; !other || other->value != batch->value)
      return std::nullopt;
  return wide(*batch) * *e.sequence_length;
}

}  // namespace

void compare_rates(const Evidence& e, Comparisons& out) {
  Comparison &rate_time = at(out, Relation::rate_time), &flops_rate = at(out, Relation::flops_rate),
             &mfu = at(out, Relation::mfu), &mfu_of = at(out, Relation::mfu_of_flops_rate),
             &step_tokens = at(out, Relation::step_tokens),
             &flops_of_batch = at(out, Relation::flops_rate_of_batch),
             &mfu_of_batch = at(out, Relation::mfu_of_batch);
  // Where no convention is stated, a number contradicts only outside all of them.
  auto by_convention = counted_flops(e, e.record.format.convention);
  const bool counted_on_lines =
      e.of(Setting::flops_per_token) || std::any_of(e.steps.begin(), e.steps.end(), [](const Step* s) {
        return (*s)[Field::flops_per_token].has_value();
      });
  if (!by_convention && e.record.format.convention.empty()) {
    by_convention = any_convention(e);
    if (by_convention && !counted_on_lines) {
      const std::vector<CountedFlops> counted = counted_flops(e);
      by_convention = exact_interval(counted.front().flops.middle());
      for (Comparison* comparison : {&flops_rate, &mfu, &flops_of_batch, &mfu_of_batch})
        comparison->ways = ways_of(counted);
    }
  }
  const auto by_convention_at_peak = flops_at_one_peak(e, by_convention);
  std::optional<Interval> peak_of_all;
  if (e.written_peak && e.gpus) peak_of_all = *e.written_peak * exact_interval(*e.gpus);
  const double constant = e.trainer.constant_peak;
  if (constant > 0) peak_of_all = exact_interval(constant * e.gpus.value_or(1));
  if (constant > 0 && !e.gpus && mfu_of_batch.ways.empty() && !e.printed_peak()) {
    mfu_of_batch.ways = ways_of_ranks(e);
    mfu_of_batch.of_ranks = !mfu_of_batch.ways.empty();
  }
  const bool rate_is_mean = e.averaged(Field::tokens_per_second), time_is_mean = e.averaged(Field::seconds);
  // Where the number of GPUs is lost, a rate of all may stand beside a peak of one.
  const bool same_gpus = e.gpus || e.record.format.tokens_per_second == Scope::gpu || mfu_of_batch.of_ranks;
  using F = Field;
  const auto means = [&](Field field, Field beside, Comparison& to) {
    return Means(e, field, e.averaged(field) != e.averaged(beside), to);
  };
  Means rates = means(F::tokens_per_second, F::seconds, rate_time),
        flops_of_batches = means(F::flops_rate, F::seconds, flops_of_batch),
        flops_of_rates = means(F::flops_rate, F::tokens_per_second, flops_rate),
        shares_of_rates = means(F::mfu, F::tokens_per_second, mfu),
        shares_of_flops = means(F::mfu, F::flops_rate, mfu_of),
        shares_of_batches = means(F::mfu, F::seconds, mfu_of_batch);
  // One GPU's rate says nothing of the batch where the number of GPUs is lost.
  const bool whose_is_known = e.gpus || e.record.format.tokens_per_second != Scope::gpu;
  // Nor does one GPU's of FLOP/s; and beside a rate of all only where both are of the same GPUs.
  const Scope of_flops = e.record.format.flops_rate, of_rate = e.record.format.tokens_per_second;
  const bool flops_of_known = e.gpus || of_flops != Scope::gpu,
             flops_beside_rate = e.gpus || of_flops == of_rate || of_flops != Scope::gpu;
  bool any_rate = false, any_time = false, any_flops = false, any_mfu = false;
  for (std::size_t i = 0; i < e.steps.size(); ++i) {
    const Step& s = *e.steps[i];
    const auto &rate = s[F::tokens_per_second], &seconds = s[F::seconds], &achieved = s[F::flops_rate],
               &share = s[F::mfu], &tokens = s[F::tokens];
    any_rate |= usable(rate), any_time |= usable(seconds), any_flops |= usable(achieved);
    const bool has_mfu = usable(share) && !not_measured(*share);
    any_mfu |= has_mfu;
    const auto &batch = s[F::step_sequences], &length = s[F::step_length];
    const auto of_line =
        usable(batch) && usable(length) ? std::optional(wide(*batch) * wide(*length)) : std::nullopt;
    const auto of_step = usable(tokens)      ? std::optional(wide(*tokens))
                         : of_line           ? of_line
                         : e.tokens_per_step ? e.tokens_per_step
                                             : tokens_of_line(e, i);
    if (const auto& stated = e.tokens_per_step ? e.tokens_per_step : of_line; usable(tokens) && stated)
      add_sample(step_tokens, *tokens, *stated, static_cast<std::int64_t>(i));
    // What tokens and time make, or a printed number, is `times` as much of another kind.
    const bool timed = usable(seconds) && of_step;
    const auto of_batch = [&](Means& to, const Printed& printed, Interval times) {
      to.add(i, printed, *of_step / wide(*seconds) * times,
             of_step->middle() / seconds->value * times.middle());
    };
    const auto of_number = [&](Means& to, const Printed& printed, const Printed& made_of, Interval times) {
      to.add(i, printed, wide(made_of) * times, made_of.value * times.middle());
    };
    if (usable(rate) && timed && whose_is_known) of_batch(rates, *rate, exact_interval(1));
    // A running mean says nothing of this step where the step's own time does.
    const bool own_rate = usable(rate) && !(rate_is_mean && !time_is_mean && timed);
    auto per_token = e.flops_per_token(s), at_peak = per_token;
    if (!per_token) per_token = by_convention, at_peak = by_convention_at_peak;
    if (usable(achieved) && !own_rate && per_token && timed && flops_of_known)
      of_batch(flops_of_batches, *achieved, *per_token);
    if (own_rate && usable(achieved) && per_token && flops_beside_rate)
      of_number(flops_of_rates, *achieved, *rate, *per_token);
    const Printed* printed_peak = e.printed_peak(s);
    const auto peak = printed_peak ? std::optional(wide(*printed_peak)) : peak_of_all;
    if (!has_mfu || !peak) continue;
    if (own_rate && at_peak && same_gpus) of_number(shares_of_rates, *share, *rate, *at_peak / *peak);
    if (usable(achieved)) of_number(shares_of_flops, *share, *achieved, exact_interval(1) / *peak);
    if (!own_rate && !usable(achieved) && at_peak && timed && same_gpus)
      of_batch(shares_of_batches, *share, *at_peak / *peak);
  }
  for (Means* all :
       {&rates, &flops_of_batches, &flops_of_rates, &shares_of_rates, &shares_of_flops, &shares_of_batches})
    all->finish();
  count_by_convention(e, by_convention, mfu);
  const bool peak = e.printed_peak() || peak_of_all;
  const bool per_token = by_convention || e.of(Setting::flops_per_token) ||
                         std::any_of(e.steps.begin(), e.steps.end(),
                                     [&](const Step* s) { return e.flops_per_token(*s).has_value(); });
  const char* no_peak = e.on_cpu()             ? e.no_gpu()
                        : e.record.gpu.empty() ? "peak, or the name of the GPU"
                        : !e.precision_known   ? e.no_gpu()
                                               : "number of GPUs, or a peak";
  rate_time.missing = !any_rate         ? "tokens/s"
                      : !any_time       ? "step time"
                      : !whose_is_known ? "number of GPUs"
                                        : "tokens per step";
  flops_rate.missing = !any_flops           ? "achieved FLOP/s"
                       : !any_rate          ? "tokens/s"
                       : !flops_beside_rate ? "number of GPUs"
                                            : "FLOPs per token";
  mfu.missing = !any_mfu     ? "MFU"
                : !per_token ? "FLOPs per token"
                : !peak      ? no_peak
                : !same_gpus ? "number of GPUs"
                             : "tokens/s";
  mfu_of.missing = !any_mfu ? "MFU" : !any_flops ? "achieved FLOP/s" : no_peak;
  step_tokens.missing = "tokens per step";
  flops_of_batch.missing = !any_flops        ? "achieved FLOP/s"
                           : !per_token      ? "FLOPs per token"
                           : !flops_of_known ? "number of GPUs"
                                             : "step time and tokens per step";
  mfu_of_batch.missing = !any_mfu     ? "MFU"
                         : !per_token ? "FLOPs per token"
                         : !peak      ? no_peak
                         : !same_gpus ? "number of GPUs"
                                      : "step time and tokens per step";
}

}  // namespace assay::spec::audit
