#include "spec/time/waterfall.hpp"

#include <cmath>

#include "spec/error.hpp"
#include "spec/text/quantity.hpp"

namespace assay::spec::time {
namespace {

void check_time(const char* what, double seconds) {
  // waterfall_c2
  if (!std::isfinite(seconds) || seconds < 0)
    throw SpecError("waterfall_c2", std::string(what) + " takes " + fixed(seconds, 6) + " s");
}

double seconds_of(const MeasuredStep& step, StepClass kind) {
  double sum = 0;
  for (const MeasuredPart& part : step.parts)
    if (class_of(part.op) == kind) sum += part.seconds;
  return sum;
}

/// What `seconds` are longer than `flops` take at the peak.
double beyond_peak(const char* what, double seconds, double flops, double peak) {
  if (!(peak > 0)) return seconds;
  const double least = flops / peak;
  // waterfall_c3
  if (seconds < least)
    throw SpecError("waterfall_c3", std::string(what) + " take " + fixed(seconds * 1e3, 3) +
                                        " ms, less than the " + fixed(least * 1e3, 3) +
                                        " ms of their FLOPs at the peak of " + si(peak, "FLOP/s") +
                                        "; look at the clock, and at which GPU the peak is of");
  return seconds - least;
}

void add_bar(Waterfall& to, const std::string& name, double seconds) {
  WaterfallBar bar;
  bar.name = name;
  bar.seconds = seconds;
  to.bars.push_back(bar);
}

}  // namespace

void check_sum(double step_seconds, const std::vector<double>& parts) {
  check_time("the step", step_seconds);
  // waterfall_c2
  if (!(step_seconds > 0)) throw SpecError("waterfall_c2", "the step takes no time");
  double sum = 0;
  for (const double part : parts) sum += part;
  // waterfall_c1
  if (!(std::abs(sum - step_seconds) <= waterfall_tolerance * step_seconds))
    throw SpecError("waterfall_c1", "the parts add up to " + fixed(sum * 1e3, 3) + " ms, the step took " +
                                        fixed(step_seconds * 1e3, 3) + " ms: more than 1 % apart");
}

Waterfall waterfall(const MeasuredStep& step, const NeededFlops& needed) {
  std::vector<double> times = {step.between};
  check_time("what lies between the ops", step.between);
  check_time("waiting for data", step.data_wait);
  for (const MeasuredPart& part : step.parts) {
    check_time(name_of(part.op, part.pass).c_str(), part.seconds);
    times.push_back(part.seconds);
  }
  check_sum(step.seconds, times);
  const bool known = needed.peak > 0;
  const double gemms = seconds_of(step, StepClass::gemm), attention = seconds_of(step, StepClass::attention),
               elementwise = seconds_of(step, StepClass::elementwise),
               loss = seconds_of(step, StepClass::loss), update = seconds_of(step, StepClass::optimizer);
  Waterfall out;
  if (known) {
    const double least = (needed.gemms + needed.attention) / needed.peak;
    add_bar(out, "exact FLOPs at the peak", least);
    out.mfu = least / step.seconds;
  }
  const char* beyond = known ? " beyond the peak's time" : "";
  add_bar(out, std::string("GEMMs") + beyond, beyond_peak("GEMMs", gemms, needed.gemms, needed.peak));
  add_bar(out, std::string("attention") + beyond,
          beyond_peak("attention's GEMMs", attention, needed.attention, needed.peak));
  add_bar(out, "norms, rope, SwiGLU, embedding", elementwise);
  add_bar(out, "loss", loss);
  add_bar(out, "gradient norm, optimizer", update);
  add_bar(out, "waiting for data", step.data_wait);
  const double named = gemms + attention + elementwise + loss + update + step.data_wait;
  add_bar(out, "gaps", step.seconds - named);
  return out;
}

}  // namespace assay::spec::time
