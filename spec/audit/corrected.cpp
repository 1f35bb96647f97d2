#include "spec/audit/corrected.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "spec/audit/conventions.hpp"
#include "spec/audit/denied_lines.hpp"
#include "spec/audit/groups.hpp"

namespace assay::spec::audit {
namespace {

std::optional<double> median_after_first(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  if (values.size() > 2) values.erase(values.begin());
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// No machine does more than its peak, so no MFU is given that says so.
void withhold_impossible(Corrected& c, const Evidence& e) {
  constexpr double rounded_peak = 1 + off_by_three_digits;
  constexpr double most_uncomputed = 2;  // palm_total counts each pair of tokens twice as often as causal
                                         // attention computes it
  if (c.mfu_exact)
    c.impossible = c.mfu_exact->low > rounded_peak;
  else if (c.mfu_palm_total)
    c.impossible = c.mfu_palm_total->low > rounded_peak * most_uncomputed;
  const auto withhold = [&](std::optional<Interval>& mfu, const std::string& why) {
    if (!mfu) return;
    mfu->high = std::min(mfu->high, 1.0);
    if (mfu->low <= mfu->high) return;
    mfu.reset();
    if (c.missing.find(why) == std::string::npos) c.missing += (c.missing.empty() ? "" : "; ") + why;
  };
  const std::string passes = "it would pass the dense " + std::string(to_string(e.precision)) +
                             " peak: tokens, time, GPU, dtype or number of GPUs is another";
  withhold(c.mfu_exact, passes);
  withhold(c.mfu_palm_total,
           c.impossible ? passes : "palm_total passes the peak: it counts what is not computed");
}

}  // namespace

Typical::Typical(const Evidence& e) {
  std::vector<double> rates, times;
  const DeniedLines wrong_rates = denied_lines(e, Field::tokens_per_second),
                    wrong_times = denied_lines(e, Field::seconds);
  const auto among = [](const DeniedLines& denied, std::size_t i) {
    return std::binary_search(denied.lines.begin(), denied.lines.end(), i);
  };
  for (std::size_t i = 0; i < e.steps.size(); ++i) {
    const auto &r = (*e.steps[i])[Field::tokens_per_second], &t = (*e.steps[i])[Field::seconds];
    if (usable(r) && !among(wrong_rates, i)) {
      rates.push_back(r->value);
      width = std::max(width, (wide(*r).high - r->low) / r->value / 2);
    }
    if (usable(t) && !among(wrong_times, i)) times.push_back(t->value);
  }
  rate = median_after_first(std::move(rates));
  seconds = median_after_first(std::move(times));
  if (!rate && !seconds) of_run = tokens_rate_of_run(e);
}

Grounds::Grounds(const Comparisons& c, const Reading& reading) {
  const auto open = [&](Relation relation) {
    return std::find(reading.unexplained.begin(), reading.unexplained.end(), relation) !=
           reading.unexplained.end();
  };
  const bool with_time = open(Relation::rate_time), with_clock = open(Relation::rate_wall_clock);
  rate = !with_time && !with_clock;
  // Step times that add up to the clock are not what is wrong.
  time = !open(Relation::wall_clock) && (!with_time || !at(c, Relation::wall_clock).samples.empty());
  rate = rate && !open(Relation::wall_clock);
  missing = with_time ? "tokens/s, tokens per step and step time contradict, and nothing tells which is wrong"
            : with_clock
                ? "tokens/s, tokens per step and the clock contradict, and nothing tells which is wrong"
                : "the step times contradict the clock, and nothing tells which is wrong";
}

Corrected corrected(const Evidence& e, const Typical& typical, const Grounds& grounds,
                    const Reading& reading) {
  Corrected out;
  double rate = count_of(e, reading.interpretation.rate), time = 1, gpus = 1, batch = 1;
  Interval within{1 - typical.width, 1 + typical.width};
  if (reading.interpretation.accumulation_divided) batch /= *e.ranks;
  for (const Change& change : reading.changes) {
    rate *= change.rate;
    within = {std::min(within.low, change.rate_within.low), std::max(within.high, change.rate_within.high)};
    time *= change.time;
    batch *= change.batch;
    gpus *= change.gpus;
  }
  if (typical.rate && grounds.rate) {
    out.tokens_per_second = within * exact_interval(*typical.rate * rate);
  } else if (typical.seconds && e.tokens_per_step && grounds.time) {
    out.tokens_per_second = *e.tokens_per_step * exact_interval(batch / (*typical.seconds * time));
  } else if (typical.of_run) {
    out.tokens_per_second = typical.of_run;
  }
  if (!out.tokens_per_second) {
    const bool timed = typical.seconds && !e.tokens_per_step;
    out.missing = !(grounds.rate && grounds.time) ? grounds.missing
                  : timed && !e.sequence_length   ? "no tokens/s, and no length to make one of the step time "
                                                    "(--seq T, and --set sequences=N where no batch is printed)"
                  : timed                         ? "no tokens/s, and no batch to make one of the step time "
                                                    "(--set sequences=N)"
                                                  : "no tokens/s, nor a step time and tokens per step";
    return out;
  }
  const auto lacks = [&](const std::string& what) {
    out.missing += (out.missing.empty() ? "" : "; ") + what;
  };
  if (e.gpus) {
    out.per_gpu = *out.tokens_per_second / exact_interval(*e.gpus * gpus);
  } else {
    lacks("no number of GPUs (--gpus N)");
    // Without their number, one GPU's rate remains one GPU's.
    if (typical.rate && grounds.rate && e.record.format.tokens_per_second == Scope::gpu)
      out.per_gpu = std::exchange(out.tokens_per_second, std::nullopt);
    else
      return out;
  }
  if (!e.dense_peak) {
    lacks(e.on_cpu()             ? "no peak of a CPU, so no MFU"
          : e.record.gpu.empty() ? "no name of the GPU (--gpu X)"
          : !e.precision_known   ? "no dtype that has a peak (--set dtype=bf16)"
                                 : "no facts of this GPU (--gpu X)");
    return out;
  }
  if (!e.sequence_length) {
    lacks("no sequence length (--seq T)");
    return out;
  }
  const Interval peak = exact_interval(*e.dense_peak);
  Evidence ran = e;
  for (const Change& change : reading.changes) {
    if (change.model) ran.model = change.model;
    if (change.shape_unknown) ran.model.reset();
    // A count of parameters that is reported to be wrong is none to count FLOPs by: the shape is.
    if (change.factors[Relation::parameters] != 1 && ran.model) ran.model_basis = whole_shape;
    if (change.sequence_length > 0) ran.sequence_length = exact_interval(change.sequence_length);
  }
  if (const auto flops = counted_flops(ran, "exact")) out.mfu_exact = *out.per_gpu * *flops / peak;
  if (const auto flops = counted_flops(ran, "palm_total")) out.mfu_palm_total = *out.per_gpu * *flops / peak;
  if (!out.mfu_exact) lacks("no model for `exact` (--model M)");
  withhold_impossible(out, e);
  return out;
}

}  // namespace assay::spec::audit
