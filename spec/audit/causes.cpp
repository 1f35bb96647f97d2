#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "spec/audit/conventions.hpp"
#include "spec/audit/groups.hpp"
#include "spec/audit/hypotheses.hpp"
#include "spec/audit/line_clock.hpp"
#include "spec/text/quantity.hpp"

namespace assay::spec::audit {
namespace {

/// The printed fields that a relation between numbers of one step rests on.
struct Rests {
  Relation relation;
  std::vector<Field> fields;
};
const std::vector<Rests>& rests() {
  static const std::vector<Rests> all = {
      {Relation::rate_time, {Field::tokens_per_second, Field::seconds, Field::tokens}},
      {Relation::sequences_rate, {Field::sequences_per_second, Field::seconds, Field::step_sequences}},
      {Relation::gpu_rate, {Field::gpu_tokens_per_second, Field::tokens_per_second}},
      {Relation::step_tokens, {Field::tokens}},
      {Relation::step_sequences, {Field::step_sequences}},
      {Relation::flops_rate, {Field::flops_rate, Field::tokens_per_second, Field::flops_per_token}},
      {Relation::flops_rate_of_batch, {Field::flops_rate, Field::seconds, Field::flops_per_token}},
      {Relation::mfu, {Field::mfu, Field::tokens_per_second, Field::flops_per_token, Field::peak_flops}},
      {Relation::mfu_of_flops_rate, {Field::mfu, Field::flops_rate, Field::peak_flops}},
      {Relation::mfu_of_batch, {Field::mfu, Field::seconds, Field::flops_per_token, Field::peak_flops}},
      {Relation::rate_wall_clock, {Field::tokens_per_second, Field::tokens_total, Field::elapsed}},
      {Relation::tokens_total, {Field::tokens_total}},
      {Relation::sequences_total, {Field::sequences_total}}};
  return all;
}

/// What a reading makes of the relations: the factor, and the way of counting, of each.
struct Read {
  const Comparisons& comparisons;
  Factors factors;
  std::array<std::size_t, relation_count> ways{};
  Read(const Comparisons& all, const Factors& read) : comparisons(all), factors(read) {
    for (std::size_t i = 0; i < relation_count; ++i) ways[i] = best_way(all[i], factors.values[i]);
  }
  bool holds(Relation relation, const Sample& sample) const {
    return audit::holds(at(comparisons, relation), sample, factors[relation],
                        ways[static_cast<std::size_t>(relation)]);
  }
};

/// Single fields that, if wrong in this step alone, leave every other relation of the step in peace.
std::vector<Field> suspects(const Comparisons& comparisons, const Read& ways, std::int64_t step,
                            const Step& numbers, const Step* neighbour) {
  std::vector<const Rests*> wrong, right;
  for (const Rests& rest : rests())
    for (const Sample& sample : at(comparisons, rest.relation).samples)
      if (sample.step == step) (ways.holds(rest.relation, sample) ? right : wrong).push_back(&rest);
  const auto holds = [](const Rests* rest, Field field) {
    return std::find(rest->fields.begin(), rest->fields.end(), field) != rest->fields.end();
  };
  std::vector<Field> out;
  for (const Field field :
       {Field::mfu, Field::tokens_per_second, Field::seconds, Field::flops_rate, Field::tokens,
        Field::flops_per_token, Field::peak_flops, Field::tokens_total, Field::sequences_total,
        Field::step_sequences, Field::sequences_per_second, Field::gpu_tokens_per_second, Field::elapsed}) {
    if (!numbers[field]) continue;
    // What a log repeats on every line is not what is wrong with one.
    const bool repeated = (field == Field::peak_flops || field == Field::flops_per_token) && neighbour &&
                          (*neighbour)[field] && (*neighbour)[field]->value == numbers[field]->value;
    if (repeated) continue;
    const bool explains = !wrong.empty() && std::all_of(wrong.begin(), wrong.end(),
                                                        [&](const Rests* r) { return holds(r, field); });
    const bool spares =
        std::none_of(right.begin(), right.end(), [&](const Rests* r) { return holds(r, field); });
    if (explains && spares) out.push_back(field);
  }
  return out;
}

/// Of a line whose stamp is among `fields`: clears it where the time that the line's other numbers make
/// (`off` times the stamp) does not lie between the stamps around it, and these others where it alone does.
void clear_by_neighbours(const Evidence& e, std::size_t i, double off, std::vector<Field>& fields) {
  if (std::find(fields.begin(), fields.end(), Field::elapsed) == fields.end()) return;
  const auto stamp_at = [&](std::size_t k) {
    return k < e.steps.size() && (*e.steps[k])[Field::elapsed] ? (*e.steps[k])[Field::elapsed]->value : -1.0;
  };
  const double before = i > 0 ? stamp_at(i - 1) : 0, here = stamp_at(i), after = stamp_at(i + 1);
  const auto between = [&](double stamp) { return before <= stamp && (after < 0 || stamp <= after); };
  if (!between(here * off))
    std::erase(fields, Field::elapsed);
  else if (!between(here))
    fields = {Field::elapsed};
}

std::optional<Relation> relation_of(const std::string& id) {
  for (std::size_t i = 0; i < relation_count; ++i)
    if (to_string(static_cast<Relation>(i)) == id) return static_cast<Relation>(i);
  return std::nullopt;
}

/// Whether a hundredth of a printed MFU is what some convention makes of the step's rate: of all GPUs or one.
bool hundredth_agrees(const Evidence& e) {
  const std::vector<CountedFlops> counted = counted_flops(e);
  if (counted.empty() || !e.written_peak) return false;
  Interval flops = counted.front().flops;
  for (const CountedFlops& other : counted)
    flops = {std::min(flops.low, other.flops.low), std::max(flops.high, other.flops.high)};
  for (const Step* step : e.steps) {
    const auto &mfu = (*step)[Field::mfu], &rate = (*step)[Field::tokens_per_second];
    if (!usable(mfu) || !usable(rate) || mfu->low <= 1) continue;
    for (const double gpus : {1.0, e.gpus.value_or(1)}) {
      const Interval made = flops * wide(*rate) / (*e.written_peak * exact_interval(gpus));
      if (made.meets(wide(*mfu) / exact_interval(100))) return true;
    }
  }
  return false;
}

/// What passes say of an MFU that is too high: a rate may count some that were not performed.
std::string passes_counted(const Evidence& e, double mfu) {
  const double passes = e.accumulation ? e.accumulation->low : 1, most = std::floor(passes / mfu);
  if (passes <= 1 || most < 1 || most >= passes) return "";
  return " (at most " + shown(most, Unit::none) + " of the " + shown(passes, Unit::none) +
         " passes were performed if it counts all)";
}

/// What an MFU above 1 says of a trainer that divides by one peak whatever the GPU: a faster one ran, where
/// the GPU that is stated, or else the fastest that is known, can. Empty otherwise.
std::string over_constant_peak(const Evidence& e, const Reading& best) {
  const double constant = e.trainer.constant_peak;
  if (!(constant > 0) || best.interpretation.own_peak > 0) return "";
  double least = 0, most = 0;
  for (const Step* step : e.steps)
    if (const auto& mfu = (*step)[Field::mfu]; mfu && !not_measured(*mfu))
      least = std::min(least, mfu->value), most = std::max(most, mfu->value);
  double fastest = 0;
  for (const Gpu& gpu : gpus())
    if (const Peak* peak = gpu.peak(Precision::bf16)) fastest = std::max(fastest, peak->dense);
  const double needed = most * constant;
  if (least < 0 || most <= 1 || needed > e.dense_peak.value_or(fastest)) return "";
  const std::string words(e.trainer.constant_peak_in_words);
  if (e.dense_peak)
    return words + ": " + percent(most, 2) + " of that is " + percent(needed / *e.dense_peak, 2) +
           " of the GPU's own, " + shown(*e.dense_peak, Unit::flops_per_second);
  return words + ": a faster one ran, of " + shown(needed, Unit::flops_per_second) +
         " at the least (--gpu says which), or the time is too short";
}

/// An impossible MFU is what the reading, or a jump of the rate, makes of the numbers that it follows from;
/// alone it does not say which of them is wrong.
void name_impossible(std::vector<Result>& results, const Evidence& e, const Reading& best) {
  const auto find = [&](std::string_view id) {
    return std::find_if(results.begin(), results.end(),
                        [&](const Result& r) { return r.id == id && r.verdict == Verdict::contradicts; });
  };
  const auto result = find("mfu_possible");
  if (result == results.end()) return;
  // A speed that the log does not print, made of tokens, time or FLOP/s: what lowers it explains it.
  if (!result->causes.empty()) {
    std::vector<Cause> own = std::exchange(result->causes, {});
    for (const Change& change : best.changes)
      if (change.batch < change.time * change.gpus || change.rate < change.gpus)
        blame(*result, change.id, change.text);
    if (result->causes.empty() || best.corrected.impossible) result->causes = std::move(own);
    return;
  }
  for (const Change& change : best.changes)
    for (const Relation relation :
         {Relation::mfu, Relation::mfu_of_flops_rate, Relation::mfu_of_batch, Relation::flops_rate,
          Relation::flops_rate_of_batch, Relation::peak, Relation::rate_time})
      if (change.id != "unknown" && change.factors[relation] != 1) blame(*result, change.id, change.text);
  if (!result->causes.empty()) return;
  for (const char* id : {"mfu", "mfu_of_flops_rate", "mfu_of_batch", "rate_time", "rate_steady"})
    if (const auto other = find(id); other != results.end())
      for (const Cause& cause : other->causes) blame(*result, cause.id, cause.text);
  if (!result->causes.empty()) return;
  if (const std::string constant = over_constant_peak(e, best); !constant.empty())
    blame(*result, "peak_constant", constant);
  else if (hundredth_agrees(e))
    blame(*result, "mfu_in_percent", "percent are read as shares of 1");
  else
    blame(*result, "mfu_impossible",
          "a peak too small, a rate too large" + passes_counted(e, result->printed) +
              ", or another unit: this log cannot tell");
}

/// The median of a field's values.
double median_of(const Evidence& e, Field field) {
  std::vector<double> values;
  for (const Step* step : e.steps)
    if (const auto& printed = (*step)[field]; usable(printed)) values.push_back(printed->value);
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Whether the lines that are wrong alone are those of a jump that their times show and their rates (or,
/// where none is printed, their MFUs) too: then the jump is what is reported.
bool is_of_jump(const std::vector<Result>& results, const Evidence& e,
                const std::vector<const Sample*>& wrong) {
  const auto steady = std::find_if(results.begin(), results.end(), [](const Result& r) {
    return r.id == "rate_steady" && r.verdict == Verdict::contradicts;
  });
  if (steady == results.end()) return false;
  const double rates = median_of(e, Field::tokens_per_second), times = median_of(e, Field::seconds);
  const Field speed = rates > 0 ? Field::tokens_per_second : Field::mfu;
  const double usual = rates > 0 ? rates : median_of(e, Field::mfu);
  return !wrong.empty() && std::all_of(wrong.begin(), wrong.end(), [&](const Sample* sample) {
    const Step& step = *e.steps[static_cast<std::size_t>(sample->step)];
    return std::count(steady->lines.begin(), steady->lines.end(), sample->line) > 0 &&
           usable(step[Field::seconds]) && 3 * step[Field::seconds]->value < times && usable(step[speed]) &&
           step[speed]->value > 3 * usual;
  });
}

/// Of two settings that are stated beside one another, neither is named alone.
std::string with_alternative(const Change& change) {
  if (change.id != "sequences_of_other_accumulation" && change.id != "accumulation_other") return change.text;
  return change.text + (change.alternatives.empty() ? "" : ", or " + change.alternatives.front());
}

}  // namespace

void name_causes(std::vector<Result>& results, const Evidence& evidence, const Comparisons& comparisons,
                 const std::vector<Reading>& readings) {
  if (readings.empty()) return;
  const Reading& best = readings.front();
  Factors factors = best.interpretation.factors;
  for (const Change& change : best.changes)
    if (change.id != "unknown")
      for (std::size_t i = 0; i < relation_count; ++i) factors.values[i] *= change.factors.values[i];
  const Read read(comparisons, factors);
  for (Result& result : results) {
    const auto relation = relation_of(result.id);
    if (result.verdict != Verdict::contradicts || !relation) continue;
    for (const Change& change : best.changes)
      if (change.factors[*relation] != 1) blame(result, change.id, with_alternative(change));
    if (!result.causes.empty()) continue;
    // The relation holds as a whole: single places are wrong.
    std::vector<const Sample*> wrong;
    for (const Sample& sample : at(comparisons, *relation).samples)
      if (sample.step >= 0 && !read.holds(*relation, sample)) wrong.push_back(&sample);
    std::map<Field, int> votes;
    for (const Sample* sample : wrong) {
      const auto step = static_cast<std::size_t>(sample->step);
      std::vector<Field> of_line = suspects(comparisons, read, sample->step, *evidence.steps[step],
                                            step > 0 ? evidence.steps[step - 1] : nullptr);
      if (of_line.size() > 1 && wrong.size() <= 64) clear_by_quotients(evidence, comparisons, step, of_line);
      if (wrong.size() <= 64)
        clear_by_stamps(evidence, step, sample->ratio.middle() / factors[*relation], of_line);
      clear_by_neighbours(evidence, step, sample->ratio.middle() / factors[*relation], of_line);
      for (const Field field : of_line) ++votes[field];
    }
    if (is_of_jump(results, evidence, wrong)) {
      blame(result, "rate_jump", "as fast as no other step, by the line's time too");
      continue;
    }
    int most = 0;
    for (const auto& [field, count] : votes) most = std::max(most, count);
    for (const auto& [field, count] : votes)
      if (count == most) blame_line(result, field);
    if (result.causes.empty())
      blame(result, "line_unknown", lines_alone(result) + ", by more than one number");
  }
  name_impossible(results, evidence, best);
}

}  // namespace assay::spec::audit
