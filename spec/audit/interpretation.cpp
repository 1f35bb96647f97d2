#include "spec/audit/interpretation.hpp"

#include <algorithm>
#include <cmath>

#include "spec/audit/conventions.hpp"
#include "spec/audit/countings.hpp"
#include "spec/audit/invariants.hpp"

namespace assay::spec::audit {
namespace {

/// Whose a rate may be: what the trainer is known to mean, or, where it is not known, either.
std::vector<Whose> allowed(const Evidence& e, Scope scope) {
  if (!e.gpus || *e.gpus <= 1) return {Whose::all};
  switch (scope) {
    case Scope::all:
      return {Whose::all};
    case Scope::gpu:
      return {Whose::gpu};
    case Scope::unknown:
      break;
  }
  if (e.ranks && *e.ranks != *e.gpus && *e.ranks > 1) return {Whose::all, Whose::rank, Whose::gpu};
  return {Whose::all, Whose::gpu};
}

const char* owner(Whose whose) { return whose == Whose::rank ? "one rank's" : "one GPU's"; }

void append(std::string& note, const std::string& part) { note += (note.empty() ? "" : "; ") + part; }

bool on_some_step(const Evidence& e, Field field) {
  return std::any_of(e.steps.begin(), e.steps.end(),
                     [&](const Step* step) { return (*step)[field].has_value(); });
}
bool prints_rate(const Evidence& e) {
  return e.record[Setting::average_tokens_per_second] ||
         e.record[Setting::expected_tokens_per_second_half_mfu] || on_some_step(e, Field::tokens_per_second);
}

Interpretation made(const Evidence& e, Whose rate, Whose flops, bool one, bool divided, const Counting& way,
                    double own_peak) {
  Interpretation out{rate, flops, one, divided, own_peak, way.factor != 1, {}, 0, ""};
  const double s = count_of(e, rate), q = count_of(e, flops), p = one ? *e.gpus : 1;
  const double k = divided ? *e.ranks : 1;  // the batch is this much smaller than stated
  Factors& f = out.factors;
  f[Relation::rate_time] = 1 / s / k;
  f[Relation::rate_wall_clock] = s * k;
  f[Relation::flops_rate] = s / q;
  f[Relation::flops_rate_of_batch] = 1 / q / k;
  f[Relation::mfu] = s / p;
  f[Relation::mfu_of_flops_rate] = q / p;
  f[Relation::mfu_of_batch] = 1 / p / k;
  f[Relation::peak] = 1 / p;
  f[Relation::expected_rate] = 1;
  for (const Relation counted :
       {Relation::step_tokens, Relation::tokens_total, Relation::sequences_total, Relation::summary_tokens})
    f[counted] = 1 / k;
  for (const Relation counted :
       {Relation::flops_rate, Relation::flops_rate_of_batch, Relation::mfu, Relation::mfu_of_batch})
    f[counted] *= way.factor;
  if (!way.note.empty()) append(out.note, way.note), out.strain += 0.2;
  const auto strained = [&](bool said, const std::string& part) {
    if (said) append(out.note, part);
    out.strain += 0.1;
  };
  if (rate != Whose::all) strained(prints_rate(e), std::string("tokens/s is ") + owner(rate));
  if (flops != Whose::all)
    strained(on_some_step(e, Field::flops_rate), std::string("the FLOP/s are ") + owner(flops));
  if (one) strained(e.printed_peak() || on_some_step(e, Field::mfu), "the peak is one GPU's");
  const double constant = e.trainer.constant_peak;
  if (own_peak > 0) {
    f[Relation::mfu] *= constant / own_peak;
    f[Relation::mfu_of_flops_rate] *= constant / own_peak;
    f[Relation::mfu_of_batch] *= constant / own_peak;
    append(out.note, "MFU divides by " + shown(own_peak, Unit::flops_per_second) +
                         ", the GPU's own peak, not by an A100's as the trainer's source does");
    out.strain += 0.1;
  } else if (constant > 0 && e.dense_peak && *e.dense_peak != constant)
    append(out.note, "MFU divides by " + shown(constant, Unit::flops_per_second) +
                         ", the peak of an A100, whatever the GPU");
  if (!divided && e.trainer.divides_accumulation && e.accumulation_is_configured && e.ranks.value_or(1) > 1)
    out.strain += 3;
  if (divided) append(out.note, "each rank runs the configured accumulation / ranks"), out.strain += 0.1;
  if ((rate == Whose::all) != (flops == Whose::all) && e.record.format.flops_rate == Scope::unknown)
    out.strain += 0.1;
  return out;
}

/// A fork of a trainer that divides by one GPU's peak, whatever the GPU, may divide by that of the GPU which
/// ran, as its author wrote it. 0: the constant.
std::vector<double> own_peaks(const Evidence& e) {
  std::vector<double> out = {0};
  const double constant = e.trainer.constant_peak;
  if (!(constant > 0) || e.printed_peak() || !e.precision_known) return out;
  std::vector<const Gpu*> meant = e.gpu.candidates;
  if (e.gpu.gpu) meant.push_back(e.gpu.gpu);
  for (const Gpu* gpu : meant)
    if (const Peak* const peak = gpu->peak(e.precision))
      for (const double written : peaks_as_written(*peak))
        if (written != constant && std::find(out.begin(), out.end(), written) == out.end())
          out.push_back(written);
  return out;
}

}  // namespace

double count_of(const Evidence& e, Whose whose) {
  if (whose == Whose::all) return 1;
  return whose == Whose::rank ? e.ranks.value_or(1) : e.gpus.value_or(1);
}

std::vector<Interpretation> interpretations(const Evidence& e) {
  std::vector<Interpretation> out;
  const bool several = e.gpus && *e.gpus > 1;
  const bool from_configured = e.accumulation_is_configured && e.ranks && *e.ranks > 1 &&
                               e.tokens_basis == "micro x accumulation x ranks x T";
  const std::vector<Counting> ways = countings(e);
  const std::vector<double> peaks = own_peaks(e);
  // Beside one GPU's tokens/s stands, by name, what all do: gpu_rate says whether they are as many times it.
  const Scope of_rate = e.record.format.tokens_per_second;
  const bool named = of_rate == Scope::unknown && on_some_step(e, Field::gpu_tokens_per_second);
  for (const Whose rate : allowed(e, named ? Scope::all : of_rate))
    for (const Whose flops : allowed(e, e.record.format.flops_rate))
      for (const bool one : {false, true})
        for (const bool divided : {false, true})
          // Only a printed peak may be one GPU's; that of the data sheet is taken of all.
          if ((!one || (several && e.printed_peak())) && (!divided || from_configured))
            for (const Counting& way : ways)
              for (const double peak : peaks) out.push_back(made(e, rate, flops, one, divided, way, peak));
  return out;
}

namespace {

/// Lines that do not agree, of a spread of places, and whether they are more than single ones.
struct Off {
  std::size_t lines = 0;
  bool more = false;
};

/// Of few lines one may be odd: of three at the least, where no factor serves all. What one factor serves may
/// be a mistake of all that the digits of most hide.
std::size_t one_is_odd(const Comparison& comparison) {
  if (comparison.samples.size() < 3) return 0;
  std::vector<Interval> ratios;
  for (const Sample& sample : comparison.samples) {
    if (sample.step < 0) return 0;  // settings have no others of their kind
    ratios.push_back(sample.ratio);
  }
  return shared_factor(ratios).ratios < ratios.size() ? 1 : 0;
}

Off off(const Comparison& comparison, double factor) {
  const std::size_t n = comparison.samples.size();
  if (n == 0) return {};
  // A spread of 64 places stands for all.
  const std::size_t stride = std::max<std::size_t>(1, n / 64);
  const std::size_t seen = (n + stride - 1) / stride;
  const std::size_t allowed = seen >= 8 ? std::max<std::size_t>(2, seen / 20) : one_is_odd(comparison);
  // One way of counting has to serve all places.
  std::size_t fewest = allowed + 1;
  for (std::size_t way = 0; way < std::max<std::size_t>(1, comparison.ways.size()) && fewest > 0; ++way) {
    std::size_t out = 0;
    for (std::size_t i = 0; i < n && out < fewest; i += stride)
      out += !holds(comparison, comparison.samples[i], factor, way);
    fewest = std::min(fewest, out);
  }
  return {fewest, fewest > allowed};
}

}  // namespace

bool agrees(const Comparison& comparison, double factor) { return !off(comparison, factor).more; }

std::vector<Relation> unexplained(const Comparisons& comparisons, const Factors& factors) {
  std::vector<Relation> out;
  for (std::size_t i = 0; i < relation_count; ++i)
    if (!agrees(comparisons[i], factors.values[i])) out.push_back(static_cast<Relation>(i));
  return out;
}

/// What a line that does not agree costs beside a whole relation: more than the strain of an interpretation
/// that is usual (0.01 to 0.05), less together than a relation. Chosen.
constexpr double single_line = 0.1;

Interpretation interpret(const Evidence& evidence, const Comparisons& comparisons) {
  std::vector<Interpretation> all = interpretations(evidence);
  double best = 1e300;
  Interpretation* chosen = &all.front();
  for (Interpretation& one : all) {
    double cost = one.strain / 10;
    for (std::size_t i = 0; i < relation_count; ++i) {
      const Off here = off(comparisons[i], one.factors.values[i]);
      cost += here.more ? 1 : single_line * static_cast<double>(here.lines);
    }
    if (cost < best) best = cost, chosen = &one;
  }
  return *chosen;
}

}  // namespace assay::spec::audit
