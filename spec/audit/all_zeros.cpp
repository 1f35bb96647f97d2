// Rates and times of 0 on many lines, beside other numbers that the same time makes.
#include <algorithm>
#include <cmath>
#include <span>

#include "spec/audit/conventions.hpp"
#include "spec/audit/groups.hpp"

namespace assay::spec::audit {
namespace {

/// As of a single line (lone_numbers.cpp): so many times what may be printed as 0.
constexpr double far_from_zero = 10;
/// Taken where neither model nor count is known. Chosen: eight times those of 405B parameters. [flop]
constexpr double most_flops_per_token = 2e13;
constexpr double most_gpus = 1e5;  // taken where their number is not known; chosen

struct Ends {
  double low, high;
};

/// The FLOPs of a token, as any convention counts them.
Ends flops_of_token(const Evidence& e, const Step& step) {
  auto known = e.flops_per_token(step);
  if (!known) known = any_convention(e);
  return known ? Ends{known->low, known->high} : Ends{0, most_flops_per_token};
}

/// What is known of a line's number; 0 where it is not there.
Ends ends_of(const Step& step, Field field) {
  const auto& number = step[field];
  if (!usable(number) || not_measured(*number)) return {0, 0};
  return {wide(*number).low, wide(*number).high};
}

struct Beside {
  double least = 0;  ///< the number is no less,
  const char* by = "";
};

/// The least that the other numbers of its line leave a rate or a time, of one GPU or all, and the number
/// that leaves most.
Beside least_beside(const Evidence& e, const Step& step, Field field) {
  const Ends rate = ends_of(step, Field::tokens_per_second), achieved = ends_of(step, Field::flops_rate),
             seconds = ends_of(step, Field::seconds), sequences = ends_of(step, Field::sequences_per_second),
             share = ends_of(step, Field::mfu), per_token = flops_of_token(e, step);
  const double gpus = e.gpus.value_or(most_gpus);
  const Scope of_rate = e.record.format.tokens_per_second, of_flops = e.record.format.flops_rate;
  const double others = of_rate == of_flops && of_rate != Scope::unknown ? 1 : gpus;
  const double tokens = e.tokens_per_step ? e.tokens_per_step->low : 0;
  const double by_share = e.dense_peak ? share.low * *e.dense_peak : 0;
  Beside out;
  const auto at_least = [&](double least, const char* by) {
    if (std::isfinite(least) && least > out.least) out = {least, by};
  };
  switch (field) {
    case Field::tokens_per_second:
    case Field::gpu_tokens_per_second:
      at_least(achieved.low / per_token.high / (field == Field::tokens_per_second ? others : gpus), "FLOP/s");
      at_least(by_share / per_token.high, "MFU");
      if (seconds.high > 0) at_least(tokens / seconds.high / gpus, "a step time");
      break;
    case Field::flops_rate:
      at_least(by_share, "MFU");
      at_least(rate.low * per_token.low / others, "tokens/s");
      break;
    case Field::seconds:
      if (rate.high > 0) at_least(tokens / rate.high / gpus, "tokens/s");
      if (sequences.high > 0) at_least(1 / sequences.high, "sequences/s");
      break;
    case Field::sequences_per_second:
      if (seconds.high > 0) at_least(1 / seconds.high / gpus, "a step time");
      break;
    default:
      break;
  }
  return out;
}

}  // namespace

void judge_all_zeros(const Evidence& e, Result& out, Cause& cause) {
  struct Named {
    Field field;
    const char* name;
  };
  for (const Named& of :
       {Named{Field::seconds, "a step time"}, Named{Field::tokens_per_second, "tokens/s"},
        Named{Field::flops_rate, "FLOP/s"}, Named{Field::sequences_per_second, "sequences/s"},
        Named{Field::gpu_tokens_per_second, "tokens/s of one GPU"}}) {
    // Where most are not 0, they say what is usual (lone_numbers.cpp).
    std::size_t all = 0, above = 0;
    for (const Step* step : e.steps)
      if (const auto& number = (*step)[of.field]) ++all, above += number->value > 0;
    if (4 * above >= 3 * all) continue;
    for (const Stretch& stretch : e.stretches)
      for (std::size_t i = first_measured(e, stretch, of.field); i < stretch.end; ++i) {
        const Step& step = *e.steps[i];
        const auto& zero = step[of.field];
        if (!zero || zero->value != 0) continue;
        const Beside beside = least_beside(e, step, of.field);
        if (!(beside.least > far_from_zero * wide(*zero).high)) continue;
        contradict(out, 0, {beside.least, 1e300}, zero->line ? zero->line : step.line);
        if (cause.id.empty())
          cause = {"zero_of_a_line", std::string(of.name) + " of 0 beside " + beside.by +
                                         " above 0: no work takes no time, and none is done at no speed"};
      }
  }
}

}  // namespace assay::spec::audit
