// Changes with a free number: how many passes, GPUs, tokens, or which share, makes a ratio agree.
#include <algorithm>
#include <cmath>

#include "spec/audit/change_builder.hpp"
#include "spec/audit/conventions.hpp"
#include "spec/audit/invariants.hpp"
#include "spec/text/quantity.hpp"

namespace assay::spec::audit {

Interval median_ratio(const Comparison& comparison) {
  std::vector<double> low, high;
  for (const Sample& sample : comparison.samples) {
    low.push_back(sample.ratio.low);
    high.push_back(sample.ratio.high);
  }
  const auto middle = static_cast<std::ptrdiff_t>(low.size() / 2);
  std::nth_element(low.begin(), low.begin() + middle, low.end());
  std::nth_element(high.begin(), high.begin() + middle, high.end());
  const Interval ways = all_ways(comparison);
  return {std::min(low[static_cast<std::size_t>(middle)], high[static_cast<std::size_t>(middle)]) / ways.high,
          high[static_cast<std::size_t>(middle)] / ways.low};
}

namespace {

using R = Relation;

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

/// Data-parallel ranks times the axes of model parallelism, as stated; 0 where they are not stated.
double ranks_product(const Evidence& e) {
  if (!usable(e.record[Setting::data_parallel])) return 0;
  double out = e.record[Setting::data_parallel]->value;
  for (const Setting axis : {Setting::tensor_parallel, Setting::pipeline_parallel, Setting::context_parallel})
    if (usable(e.record[axis])) out *= e.record[axis]->value;
  return out;
}

/// What stays of a contradiction, and what the log says of the run.
struct Left {
  const Evidence& e;
  const Interpretation& reading;
  const Comparisons& comparisons;
  const Factors& factors;
  R relation;
  Interval residual;
};

std::string written(double n) { return shown(n, Unit::none); }

/// The one whole number n >= 1 with n / of in the residual; 0: none, or too many to tell.
double whole(const Left& left, double of) {
  const double low = left.residual.low * of, high = left.residual.high * of, n = std::round((low + high) / 2);
  const bool one = n >= 1 && n < 1e12 && low * (1 - 1e-9) <= n && n <= high * (1 + 1e-9) && high - low < 1;
  return one && n != of ? n : 0;
}

bool held(const Interval& residual, double x) {
  return residual.low * (1 - 1e-9) <= x && x <= residual.high * (1 + 1e-9);
}

double one_number(const std::optional<Interval>& count) {
  return count && count->low == count->high ? count->low : 0;
}

/// Every relation that feels a step of `x` times the stated tokens, and of `sequences` times the sequences.
std::vector<ChangeBuilder::Effect> of_batch(const ChangeBuilder& b, double x, double sequences) {
  // The rate is held against the tokens that the step prints, where it prints them.
  return {{R::rate_time, b.has(R::step_tokens) ? 1 : x},
          {R::rate_wall_clock, 1 / x},
          {R::flops_rate_of_batch, x},
          {R::mfu_of_batch, x},
          {R::step_tokens, x},
          {R::tokens_total, x},
          {R::sequences_total, sequences},
          {R::summary_tokens, x}};
}

bool is_of_batch(R relation) {
  return relation == R::rate_time || relation == R::flops_rate_of_batch || relation == R::mfu_of_batch ||
         relation == R::step_tokens || relation == R::tokens_total || relation == R::sequences_total;
}

void add_performed(ChangeBuilder& b, const Left& left) {
  const double a = one_number(left.e.accumulation), ranks = left.e.ranks.value_or(1);
  if (a == 0 || !is_of_batch(left.relation)) return;
  const double k = whole(left, a);
  if (!(k > 0 && (k < a || k == a * ranks))) return;
  const bool divided = k * ranks == a && ranks > 1, multiplied = k == a * ranks && ranks > 1;
  Change& change = b.add(k == 1       ? "accumulation_not_performed"
                         : divided    ? "accumulation_divided"
                         : multiplied ? "accumulation_multiplied"
                                      : "accumulation_performed",
                         "accumulation " + written(k) + " was performed, not " + written(a) +
                             (divided      ? " (divided by the ranks once more)"
                              : multiplied ? " (times the ranks)"
                                           : ""),
                         k == 1 || divided || multiplied ? 3 : 3.5, of_batch(b, k / a, k / a));
  change.batch = k / a;
  change.of_printer = false;
}

/// The clock is loose, so that it tells about how many passes ran.
void add_performed_by_clock(ChangeBuilder& b, const Left& left) {
  const double a = one_number(left.e.accumulation);
  if (left.relation != R::rate_wall_clock || a <= 1) return;
  const double k = std::max(1.0, std::round(a / left.residual.middle()));
  if (!(k < a) || !held(left.residual, a / k)) return;
  Change& change =
      b.add("accumulation_performed",
            "accumulation " + std::string(left.residual.high / left.residual.low > 1.02 ? "about " : "") +
                written(k) + " was performed, not " + written(a),
            5.4, of_batch(b, k / a, k / a));
  change.batch = k / a;
  change.of_printer = false;
}

void add_stated_batch(ChangeBuilder& b, const Left& left) {
  const Evidence& e = left.e;
  const double a = one_number(e.accumulation);
  if (a > 0 && left.relation == R::sequences)
    if (const double k = whole(left, a); k > 0)
      b.add("sequences_of_other_accumulation",
            "sequences per step are those of accumulation " + written(k) + ", not " + written(a), 3.6,
            {{R::sequences, k / a}})
          .of_printer = false;
}

/// Lines that state another batch than the settings: they say what was done, or they are wrong.
void add_batch_of_lines(ChangeBuilder& b, const Left& left) {
  const auto& stated = left.e.record[Setting::sequences];
  if (left.relation != R::step_sequences || !usable(stated)) return;
  const double n = whole(left, stated->value);
  if (n == 0) return;
  const double x = n / stated->value;
  std::vector<ChangeBuilder::Effect> effects = of_batch(b, x, x);
  effects.push_back({R::step_sequences, x});
  Change& change = b.add("batch_performed",
                         "each step performs " + written(n) + " sequences, as its line says, not the " +
                             written(stated->value) + " that are configured",
                         2.5, effects);
  change.batch = x;
  change.of_printer = false;
  b.add("batch_of_lines",
        "the lines' " + written(n) + " sequences are not those of a step, which has the " +
            written(stated->value) + " that are configured",
        3.2, {{R::step_sequences, x}})
      .of_printer = false;
}

/// What is counted since the start may be what was done, or be counted in another way; both fit any number.
void add_batch_of_count(ChangeBuilder& b, const Left& left) {
  const double stated = one_number(left.e.of(Setting::sequences));
  if (left.relation != R::sequences_total || stated == 0) return;
  const double n = whole(left, stated), x = n / stated;
  if (n == 0) return;
  Change& change = b.add("batch_performed",
                         "each step performs " + written(n) +
                             " sequences, as the count since the start grows, not " + written(stated),
                         4.5, of_batch(b, x, x));
  change.batch = x;
  change.of_printer = false;
  b.add("sequences_counted_other",
        "the count since the start grows by " + written(n) + " a step, which performs " + written(stated),
        4.7, {{R::sequences_total, x}});
}

void add_gpus(ChangeBuilder& b, const Left& left) {
  const Evidence& e = left.e;
  const R relation = left.relation;
  const bool axes = relation == R::ranks, own_sequences = e.record[Setting::sequences].has_value();
  if (!(relation == R::sequences || axes || relation == R::peak ||
        (relation == R::tokens_per_step && !own_sequences) ||
        (e.tokens_basis != "as printed" && (relation == R::rate_time || relation == R::step_tokens))))
    return;
  // The printed number over the product of the axes is by how much it is too large: the axes are what ran.
  const double gpus = e.gpus.value_or(1), g = axes ? ranks_product(e) : whole(left, gpus);
  if (!(g > 0 && e.gpus && g != gpus && g / gpus <= 64 && gpus / g <= 64)) return;
  const double x = g / gpus;
  // A configured accumulation that is divided by the ranks makes one batch, however many they are.
  const bool by_product =
      e.tokens_basis == "micro x accumulation x ranks x T" && !axes && !left.reading.accumulation_divided;
  // llm_TII prints one number under both names.
  const bool one_count = e.record.format.name == "llm_tii" && e.ranks == e.gpus;
  // What is read as one GPU's was taken times their printed number, and a peak that is not printed too.
  const auto if_so = [&](bool so) { return so ? x : 1; };
  const Interpretation& reading = left.reading;
  const double rate = if_so(reading.rate == Whose::gpu), flops = if_so(reading.flops_rate == Whose::gpu),
               peak = if_so(reading.peak_of_one || !e.printed_peak()), batch = if_so(by_product);
  Change& change = b.add("gpus_other", written(g) + " GPUs ran, not " + written(gpus),
                         relation == R::step_tokens ? 3.7 : 3.4,
                         {{R::sequences, axes ? 1 : x},
                          {R::ranks, axes        ? 1 / x
                                     : one_count ? 1
                                                 : x},
                          {R::peak, reading.peak_of_one ? 1 : x},
                          {R::tokens_per_step, axes || own_sequences ? 1 : x},
                          {R::rate_time, (b.has(R::step_tokens) ? 1 : batch) / rate},
                          {R::rate_wall_clock, rate / batch},
                          {R::flops_rate, rate / flops},
                          {R::flops_rate_of_batch, batch / flops},
                          {R::mfu, rate / peak},
                          {R::mfu_of_flops_rate, flops / peak},
                          {R::mfu_of_batch, batch / peak},
                          {R::step_tokens, batch},
                          {R::tokens_total, batch},
                          {R::sequences_total, batch},
                          {R::summary_tokens, batch}});
  change.rate = rate;
  change.gpus = x;
  change.batch = by_product ? x : 1;
  change.of_printer = false;
}

/// What the log shows of sequences that are `x` times as long: of the batch, where it is made of the length,
/// and of the FLOPs per token, where they are not printed.
std::vector<ChangeBuilder::Effect> of_length(const ChangeBuilder& b, const Evidence& e, double x,
                                             double flops) {
  std::vector<ChangeBuilder::Effect> out;
  const bool of_length = e.tokens_basis != "as printed";
  if (of_length) out = of_batch(b, x, 1);
  out.push_back({R::tokens_per_step, of_length ? 1 : x});
  out.push_back({R::flops_per_token, flops});
  if (!b.has(R::flops_per_token) && !e.of(Setting::flops_per_token)) {
    const double batch = of_length ? x : 1;
    out.push_back({R::flops_rate, flops});
    out.push_back({R::mfu, flops});
    out.push_back({R::flops_rate_of_batch, batch * flops});
    out.push_back({R::mfu_of_batch, batch * flops});
  }
  return out;
}

/// A length shows where the batch is made of it, and in the attention of a token. Where the tokens of a step
/// are printed, any length may have made them; else those are tried that are off by a power of two.
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
  if (of_tokens) {
    if (const double t = whole(left, length); t > 0) lengths.push_back(t);
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

/// Step times that do not add up to the clock. What is made of them is off with them; a rate that they
/// contradict by as much is not.
void add_time(ChangeBuilder& b, const Left& left) {
  Interval residual = left.residual;
  const bool alone = left.relation == R::rate_time;
  if (alone) {
    if (!b.has(R::wall_clock)) return;
    const Interval clock =
        median_ratio(at(left.comparisons, R::wall_clock)) / exact_interval(left.factors[R::wall_clock]);
    if (!clock.meets(residual) || held(clock, 1)) return;
    residual = {std::max(clock.low, residual.low), std::min(clock.high, residual.high)};
  } else if (left.relation != R::wall_clock) {
    return;
  }
  const double x = residual.middle();
  if (!(x > 0)) return;
  const std::string share = percent(std::abs(1 - x), 0), id = x < 1 ? "time_leaves_out" : "time_beyond_clock",
                    off = x < 1 ? " leave out " + share + " of the time"
                                : " hold " + share + " more than the time that passed";
  if (alone || !b.has(R::rate_time))
    b.add(id, "step times" + off, 3.5, {{R::wall_clock, x}, {R::rate_time, x}}).time = 1 / x;
  if (alone) return;
  Change& change = b.add(id, "step times, and the rates made of them," + off, 3.6, {{R::wall_clock, x}});
  change.time = 1 / x;
  change.rate = x;
}

void add_padding(ChangeBuilder& b, const Left& left, double x) {
  if (left.relation != R::rate_time || !((x > 1.002 && x < 1.7) || (x > 0.55 && x < 0.998))) return;
  const std::string share = percent(std::abs(x - 1), 1);
  b.add("rate_counts_padding",
        x > 1 ? "tokens/s counts " + share + " more tokens than the batch has (padding)"
              : "tokens/s leaves out " + share + " of the batch (padding, masked tokens)",
        4.5, {{R::rate_time, x}, {R::flops_rate, 1 / x}, {R::mfu, 1 / x}})
      .rate = 1 / x;
  b.add("rate_counts_padding",
        x > 1 ? "tokens/s, and what is made of it, counts " + share +
                    " more tokens than the batch has (padding)"
              : "tokens/s, and what is made of it, leaves out " + share +
                    " of the batch (padding, masked tokens)",
        5, {{R::rate_time, x}})
      .rate = 1 / x;
}

/// A simple multiple that the residual leaves, and it alone: 2, 3, ... 64, or one part in as many; 0: none.
/// What is measured by a clock leaves several; then the one nearest to its middle.
double simple_multiple(const Interval& residual) {
  const double middle = std::sqrt(residual.low * residual.high);
  double best = 0;
  int held_by = 0;
  for (int n = 2; n <= 64; ++n)
    for (const double x : {static_cast<double>(n), 1.0 / n})
      if (held(residual, x)) {
        ++held_by;
        if (best == 0 || std::abs(std::log(x / middle)) < std::abs(std::log(best / middle))) best = x;
      }
  return held_by == 1 || residual.high / residual.low > 1.1 ? best : 0;
}

/// "4 times ", "1/4 of ".
std::string as_multiple(double x) { return x > 1 ? written(x) + " times " : "1/" + written(1 / x) + " of "; }

/// A rate, and perhaps what is made of it, that is `x` times what it is called; `of` says of what.
void add_rate_multiple(ChangeBuilder& b, double x, const std::string& of, bool throughout) {
  if (throughout)
    b.add("rate_multiple", "tokens/s, and what is made of it, is " + of, 6,
          {{R::rate_time, x}, {R::rate_wall_clock, 1 / x}})
        .rate = 1 / x;
  b.add("rate_multiple", "tokens/s is " + of, 6.2,
        {{R::rate_time, x}, {R::rate_wall_clock, 1 / x}, {R::flops_rate, 1 / x}, {R::mfu, 1 / x}})
      .rate = 1 / x;
}

void add_flops_multiple(ChangeBuilder& b, double x, const std::string& of) {
  b.add("flops_rate_multiple", "the FLOP/s, and what is made of them, are " + of, 6,
        {{R::flops_rate, x}, {R::mfu, x}, {R::flops_rate_of_batch, x}, {R::mfu_of_batch, x}});
  b.add("flops_rate_multiple", "the FLOP/s are " + of, 6.2,
        {{R::flops_rate, x}, {R::flops_rate_of_batch, x}, {R::mfu_of_flops_rate, 1 / x}});
}

/// What the batch or its time may be, where a number made of both is `x` times what they make.
void add_batch_multiples(ChangeBuilder& b, const Left& left, double x, const std::string& many) {
  if (left.relation != R::rate_wall_clock)
    b.add("time_multiple", "the step time is " + many + "that of one step", 6.3,
          {{R::rate_time, x}, {R::wall_clock, x}, {R::flops_rate_of_batch, x}, {R::mfu_of_batch, x}})
        .time = 1 / x;
  const auto batch = [&](const char* id, const char* before, double of, const char* behind, double cost) {
    const double n = std::round(of * x);
    if (of == 0 || n < 1 || std::abs(n - of * x) > 1e-9 * n) return;
    Change& change = b.add(id, before + written(n) + behind + written(of), cost, of_batch(b, x, x));
    change.batch = x;
    change.of_printer = false;
  };
  batch("accumulation_performed", "accumulation ", one_number(left.e.accumulation), " was performed, not ",
        6.4);
  batch("micro_other", "micro-batches are of ", one_number(left.e.micro), " sequences, not ", 6.5);
}

/// What no known mistake explains, and is a simple multiple: told with everything that may be as many times
/// what it is called, so that it can be looked for.
void add_multiples(ChangeBuilder& b, const Left& left) {
  const double found = simple_multiple(left.residual);
  if (found == 0) return;
  switch (left.relation) {
    case R::rate_time:
      add_rate_multiple(b, found, as_multiple(found) + "what the batch and its time make", true);
      return add_batch_multiples(b, left, found, as_multiple(found));
    case R::rate_wall_clock:
      add_rate_multiple(b, 1 / found, "about " + as_multiple(1 / found) + "what the batch and the clock make",
                        true);
      return add_batch_multiples(b, left, 1 / found, "about " + as_multiple(1 / found));
    case R::flops_rate_of_batch:
      add_flops_multiple(b, found, as_multiple(found) + "what model, batch and time make");
      return add_batch_multiples(b, left, found, as_multiple(found));
    case R::mfu_of_batch:
      b.add("mfu_multiple", "MFU is " + as_multiple(found) + "what model, batch, time and peak make", 6.5,
            {{R::mfu_of_batch, found}});
      return add_batch_multiples(b, left, found, as_multiple(found));
    case R::flops_rate:
      add_rate_multiple(b, 1 / found, as_multiple(1 / found) + "what the FLOP/s are made of", false);
      return add_flops_multiple(b, found, as_multiple(found) + "what model and rate make");
    case R::mfu:
      add_rate_multiple(b, 1 / found, as_multiple(1 / found) + "what the MFU is made of", false);
      b.add("mfu_multiple", "MFU is " + as_multiple(found) + "what model, rate and peak make", 6.5,
            {{R::mfu, found}, {R::mfu_of_flops_rate, found}});
      return;
    default:
      return;
  }
}

}  // namespace

std::vector<Change> solved(const Evidence& e, const Comparisons& comparisons, const Interpretation& reading,
                           const Factors& factors, Relation relation, Interval residual) {
  ChangeBuilder b(e, comparisons);
  const Left left{e, reading, comparisons, factors, relation, residual};
  add_performed(b, left);
  add_performed_by_clock(b, left);
  add_stated_batch(b, left);
  add_batch_of_lines(b, left);
  add_batch_of_count(b, left);
  add_gpus(b, left);
  add_length(b, left);
  // A rate that is off alone shows in every relation that it enters: together they say by how much.
  Interval together = residual;
  if (relation == R::rate_time)
    for (const R inverse : {R::flops_rate, R::mfu})
      if (b.has(inverse)) {
        const Interval ratio = median_ratio(at(comparisons, inverse));
        const Interval here = {factors[inverse] / ratio.high, factors[inverse] / ratio.low};
        if (here.meets(together))
          together = {std::max(here.low, together.low), std::min(here.high, together.high)};
      }
  add_time(b, left);
  add_padding(b, left, together.middle());
  add_multiples(b, left);
  return b.finish();
}

Change unknown(Relation relation) {
  Change change;
  change.id = "unknown";
  change.text = "no reading is known that explains it";
  change.cost = 8;
  change.factors[relation] = 0;  // stands for whatever it takes
  return change;
}

}  // namespace assay::spec::audit
