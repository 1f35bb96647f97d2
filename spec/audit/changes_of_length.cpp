// Sequences of another length than the stated one.
#include <cmath>

#include "spec/audit/conventions.hpp"
#include "spec/audit/solving.hpp"

namespace assay::spec::audit::solving {

using R = Relation;

namespace {

/// FLOPs per token at other sequence lengths, as factors on those at the stated one.
class FlopsAt {
 public:
  FlopsAt(const Evidence& e, const Comparisons& comparisons)
      : other_(e), convention_(e.record.format.convention), stated_(counted_flops(e, convention_)) {
    const auto& samples = at(comparisons, Relation::flops_per_token).samples;
    if (!stated_ && !samples.empty()) printed_ = &samples.front();
  }
  double operator()(double length) {
    other_.sequence_length = exact_interval(length);
    if (stated_) {
      const auto there = counted_flops(other_, convention_);
      return there ? there->middle() / stated_->middle() : 1;
    }
    if (!printed_) return 1;
    // No convention is stated: at either length it is the one nearest to what is printed.
    double nearest = 0;
    for (const CountedFlops& counted : counted_flops(other_))
      if (const double flops = counted.flops.middle();
          nearest == 0 ||
          std::abs(std::log(printed_->printed / flops)) < std::abs(std::log(printed_->printed / nearest)))
        nearest = flops;
    return nearest > 0 ? nearest / printed_->recomputed.middle() : 1;
  }

 private:
  Evidence other_;
  std::string convention_;
  std::optional<Interval> stated_;
  const Sample* printed_ = nullptr;
};

/// What the log shows of sequences that are `x` times as long: of the batch, where it is made of the length,
/// and of the FLOPs per token, where they are not printed.
std::vector<ChangeBuilder::Effect> of_length(const ChangeBuilder& b, const Evidence& e, double x,
                                             double flops) {
  std::vector<ChangeBuilder::Effect> out;
  const bool of_length = e.tokens_basis != "as printed";
  if (of_length) out = of_batch(b, x, 1);
  out.push_back({R::tokens_per_step, of_length ? 1 : x});
  out.push_back({R::flops_per_token, flops});
  out.push_back({R::ffn_flops_per_layer, x});
  if (!b.has(R::flops_per_token) && !e.of(Setting::flops_per_token)) {
    const double batch = of_length ? x : 1;
    out.push_back({R::flops_rate, flops});
    out.push_back({R::mfu, flops});
    out.push_back({R::flops_rate_of_batch, batch * flops});
    out.push_back({R::mfu_of_batch, batch * flops});
  }
  return out;
}

}  // namespace

/// A length shows where the batch is made of it, and in the attention of a token. Where the tokens of a step
/// are printed to the last digit, any length may have made them; else those are tried that are off by a power
/// of two.
void add_length(ChangeBuilder& b, const Left& left) {
  const Evidence& e = left.e;
  const bool of_tokens = left.relation == R::tokens_per_step, of_flops = left.relation == R::flops_rate ||
                                                                         left.relation == R::mfu ||
                                                                         left.relation == R::flops_per_token;
  if (!e.sequence_length || left.relation == R::sequences_total) return;
  if (!of_tokens && !of_flops && left.relation != R::rate_wall_clock && !is_of_batch(left.relation)) return;
  // What another change moved already, or is far off, is no length's.
  if (left.factors[left.relation] != left.reading.factors[left.relation] || left.residual.low > 128 ||
      left.residual.high < 1.0 / 128)
    return;
  const double length = e.sequence_length->low;
  std::vector<double> lengths;
  if (const double one = of_tokens ? whole(left, length) : 0; one > 0) {
    lengths.push_back(one);
  } else {
    for (int power = -6; power <= 6; ++power)
      if (const double t = std::ldexp(length, power); power != 0 && t == std::round(t)) lengths.push_back(t);
  }
  if (lengths.empty()) return;
  const auto explains = [&](const std::vector<ChangeBuilder::Effect>& effects) {
    double factor = 1;  // the last one of a relation counts
    for (const ChangeBuilder::Effect& effect : effects)
      if (effect.relation == left.relation) factor = effect.factor;
    return factor != 1 && held(left.residual, factor);
  };
  const bool feels_flops =
      of_flops || left.relation == R::flops_rate_of_batch || left.relation == R::mfu_of_batch;
  std::optional<FlopsAt> flops;  // dear: counted where something may come of it
  for (const double t : lengths) {
    const double x = t / length;
    if (!feels_flops && !explains(of_length(b, e, x, 1))) continue;
    if (!flops) flops.emplace(e, left.comparisons);
    const std::vector<ChangeBuilder::Effect> effects = of_length(b, e, x, (*flops)(t));
    if (!explains(effects)) continue;
    Change& change =
        b.add("sequence_length_other", "sequences are of " + written(t) + " tokens, not " + written(length),
              of_tokens  ? 3
              : of_flops ? 3.4
                         : 3.6,
              effects);
    if (e.tokens_basis != "as printed") change.batch = x;
    change.sequence_length = t;
    change.of_printer = false;
  }
}

}  // namespace assay::spec::audit::solving
