// Another batch than the stated one: passes, sequences and tokens of a step.
#include <algorithm>
#include <cmath>

#include "spec/audit/batch_of_run.hpp"
#include "spec/audit/invariants.hpp"
#include "spec/audit/solving.hpp"
#include "spec/text/quantity.hpp"

namespace assay::spec::audit::solving {

using R = Relation;

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

/// The residual's number; of one that is printed rounded ("2.1M") the multiple that it holds, 2, 3, ... 64 or
/// one part in so many; 0: none.
double whole_multiple(const Interval& residual) {
  if (residual.high <= residual.low * (1 + 1e-9)) return residual.middle();
  for (int n = 2; n <= 64; ++n)
    for (const double x : {static_cast<double>(n), 1.0 / n})
      if (held(residual, x)) return x;
  return 0;
}

/// A header's sequences or tokens that are not what its own micro-batch, passes, ranks and length make: each
/// of them may be the one that is stated wrong.
void add_stated_batch(ChangeBuilder& b, const Left& left) {
  const Evidence& e = left.e;
  const bool of_sequences = left.relation == R::sequences, own = usable(e.record[Setting::sequences]);
  if (!of_sequences && (left.relation != R::tokens_per_step || own)) return;
  const double a = one_number(e.accumulation), m = one_number(e.micro), k = a > 0 ? whole(left, a) : 0,
               x = whole_multiple(left.residual);
  if (k > 0 && of_sequences)
    b.add("sequences_of_other_accumulation",
          "the sequences of a step are those of accumulation " + written(k) + ", not " + written(a), 3.6,
          {{R::sequences, k / a}})
        .of_printer = false;
  if (k > 0 && !of_sequences)
    b.add("accumulation_other", "passes are " + written(k) + ", not " + written(a), 3.7,
          {{R::tokens_per_step, k / a}})
        .of_printer = false;
  if (const double n = m > 0 ? whole(left, m) : 0; n > 0)
    b.add("micro_other",
          "micro-batches are of " + counted(n, "sequence") +
              (of_sequences && a == 0 ? " or fewer, not " : ", not ") + written(m),
          3.8, {{left.relation, n / m}})
        .of_printer = false;
  // The parts win over the product where the clock, or what is made of the batch, says so.
  const auto& stated = e.record[of_sequences ? Setting::sequences : Setting::tokens_per_step];
  if (!stated || !(x > 0)) return;
  const bool printed_tokens = usable(e.record[Setting::tokens_per_step]);
  std::vector<ChangeBuilder::Effect> effects;
  if (of_sequences && printed_tokens)
    effects = {{R::sequences_total, 1 / x}, {R::tokens_per_step, 1 / x}};
  else
    effects = of_batch(b, 1 / x, 1 / x);
  effects.push_back({left.relation, x});
  Change& change = b.add("batch_stated_other",
                         "a step has " + written(std::round(stated->value / x)) +
                             (of_sequences ? " sequences" : " tokens") + ", as its parts make, not the " +
                             written(stated->value) + " that are stated",
                         3.5, effects);
  if (!of_sequences || !printed_tokens) change.batch = 1 / x;
  change.of_printer = false;
}

/// Lines that state another batch than the settings: they say what was done, or they are wrong.
void add_batch_of_lines(ChangeBuilder& b, const Left& left) {
  const double stated = one_number(stated_batch(left.e));
  if (left.relation != R::step_sequences || stated == 0) return;
  const double n = whole(left, stated);
  if (n == 0) return;
  const double x = n / stated;
  std::vector<ChangeBuilder::Effect> effects = of_batch(b, x, x);
  effects.push_back({R::step_sequences, x});
  effects.push_back({R::sequences_rate, 1});  // held against the lines' batch
  Change& change = b.add("batch_performed",
                         "each step performs " + counted(n, "sequence") + ", as its line says, not the " +
                             written(stated) + " that are configured",
                         2.5, effects);
  change.batch = x;
  change.of_printer = false;
  b.add("batch_of_lines",
        "the lines' batch of " + counted(n, "sequence") + " is not that of a step, which has the " +
            written(stated) + " that are configured",
        3.2, {{R::step_sequences, x}, {R::sequences_rate, 1 / x}})
      .of_printer = false;
}

/// A batch that the lines alone state, where tokens/s times time, and what is counted since the start, make
/// another.
void add_unconfirmed_batch(ChangeBuilder& b, const Left& left) {
  const auto& stated = left.e.record[Setting::tokens_per_step];
  if (left.relation != R::rate_time || !b.has(R::tokens_total) || !usable(stated) || left.e.steps.empty())
    return;
  const Step& first = *left.e.steps.front();
  if (!first[Field::tokens] || stated->line != first.line) return;
  const Interval count =
      median_ratio(at(left.comparisons, R::tokens_total)) / exact_interval(left.factors[R::tokens_total]);
  const double low = std::max(count.low, left.residual.low), high = std::min(count.high, left.residual.high);
  if (!(low > 0) || low > high || held({low, high}, 1)) return;
  // A whole multiple where the digits leave one.
  double x =
      std::clamp(likely_ratio(at(left.comparisons, R::rate_time)) / left.factors[R::rate_time], low, high);
  for (const double simple : {std::round(x), 1 / std::round(1 / x)})
    if (held({low, high}, simple)) x = simple;
  Change& change = b.add("batch_of_lines",
                         "the lines' batch is " + shown(1 / x, Unit::none) +
                             " times that of a step, by tokens/s and time and by the tokens since the start",
                         3.5,
                         {{R::rate_time, x},
                          {R::rate_wall_clock, 1 / x},
                          {R::flops_rate_of_batch, x},
                          {R::mfu_of_batch, x},
                          {R::tokens_total, x},
                          {R::summary_tokens, x}});
  change.batch = x;
  change.of_printer = false;
}

/// What is counted since the start may be what was done, or be counted in another way; both fit any number.
void add_batch_of_count(ChangeBuilder& b, const Left& left) {
  const double stated = one_number(left.e.of(Setting::sequences));
  if (left.relation != R::sequences_total || stated == 0) return;
  const double n = whole(left, stated), x = n / stated;
  if (n == 0) return;
  Change& change = b.add("batch_performed",
                         "each step performs " + counted(n, "sequence") +
                             ", as the count since the start grows, not " + written(stated),
                         4.5, of_batch(b, x, x));
  change.batch = x;
  change.of_printer = false;
  b.add("sequences_counted_other",
        "the count since the start grows by " + written(n) + " a step, which performs " + written(stated),
        4.7, {{R::sequences_total, x}});
}

}  // namespace assay::spec::audit::solving
