#include "spec/audit/invariants.hpp"

#include <algorithm>
#include <cmath>

#include "spec/audit/groups.hpp"
#include "spec/audit/identities.hpp"
#include "spec/audit/interpretation.hpp"
#include "spec/audit/relations.hpp"
#include "spec/text/nearest.hpp"

namespace assay::spec::audit {
namespace {

struct Other {
  std::string_view id;
  Judge judge;
};

constexpr Other others[] = {{"mfu_possible", judge_mfu_possible},
                            {"hfu", judge_hfu},
                            {"memory", judge_memory},
                            {"memory_share", judge_memory_share},
                            {"settings_agree", judge_settings_agree},
                            {"parameter_tensors", judge_parameter_tensors},
                            {"first_loss", judge_first_loss},
                            {"loss_finite", judge_loss_finite},
                            {"values_possible", judge_values},
                            {"loss_possible", judge_loss_possible},
                            {"learning_rate", judge_learning_rate},
                            {"steps", judge_steps},
                            {"planned_steps", judge_planned_steps},
                            {"epochs", judge_epochs},
                            {"rate_steady", judge_rate_steady},
                            {"resume", judge_resume},
                            {"line_clock", judge_line_clock},
                            {"average_seconds", judge_average_seconds},
                            {"average_mfu", judge_average_mfu},
                            {"average_rate", judge_average_rate},
                            {"average_loss", judge_average_loss},
                            {"average_steps_rate", judge_steps_rate},
                            {"average_sequences_rate", judge_sequences_rate},
                            {"total_tokens", judge_total_tokens},
                            {"total_seconds", judge_total_seconds},
                            {"total_flops", judge_total_flops},
                            {"average_speed", judge_average_speed},
                            {"final", judge_final},
                            {"gap_closed", judge_gap_closed},
                            {"valid_tokens", judge_valid_tokens},
                            {"vocabulary", judge_vocabulary},
                            {"phases", judge_phases},
                            {"memory_plan", judge_memory_plan}};

const Invariant& invariant_named(std::string_view id) {
  std::vector<std::string> known;
  for (const Invariant& invariant : invariants()) {
    if (invariant.id == id) return invariant;
    known.emplace_back(invariant.id);
  }
  const auto guess = nearest(id, known);
  throw SpecError("audit_c1", "no invariant \"" + std::string(id) + "\"" +
                                  (guess ? "; did you mean \"" + *guess + "\"?" : ""));
}

/// "exact", "exact or nanotron": what the log's numbers do not tell apart.
std::string ways_that_agree(const Comparison& comparison, double factor) {
  std::string out;
  int told = 0;
  for (std::size_t way = 0; way < comparison.ways.size(); ++way) {
    Comparison one = {comparison.samples, {comparison.ways[way]}, comparison.of_ranks, ""};
    if (agrees(one, factor) && told++ < 3)
      out += (out.empty() ? "" : " or ") + comparison.ways[way].convention;
  }
  return out + (told > 3 ? " or others" : "");
}

/// Chosen: above what writing a line takes, and a report of it to a metrics service, between two lines that
/// are seconds apart. [share]
constexpr double worth_a_word = 0.05;

/// A product relation under the interpretation: every place whose ratio leaves out the factor contradicts.
Result judge_relation(const Comparison& comparison, double factor, const std::string& note) {
  if (comparison.samples.empty()) return not_judged(comparison.missing);
  Result out = holding(static_cast<std::int64_t>(comparison.samples.size()));
  // Where no way of counting agrees, what any of them gives is reported.
  const std::size_t way = best_way(comparison, factor);
  const bool agrees_so = comparison.ways.empty() || agrees(comparison, factor);
  const Interval scale = comparison.ways.empty() ? exact_interval(1)
                         : agrees_so             ? comparison.ways[way].scale
                                                 : all_ways(comparison);
  for (const Sample& sample : comparison.samples) {
    const Interval recomputed = sample.recomputed * exact_interval(factor) * scale;
    if (out.verdict != Verdict::contradicts) out.printed = sample.printed, out.recomputed = recomputed;
    if (holds(comparison, sample, factor, way)) continue;
    const bool first = out.verdict != Verdict::contradicts;
    contradict(out, sample.printed, recomputed, sample.line);
    if (first) out.off_by = sample.printed / recomputed.middle();
  }
  if (factor != 1) out.note = note;
  if (const double longer = comparison.clock_over_steps * factor - 1;
      out.verdict == Verdict::holds && longer > worth_a_word) {
    out.clock_longer = longer;
    out.note = "the clock shows at least " + shown(longer, Unit::share) +
               " more in every stretch: time that the lines leave out" + std::string(comparison.left_out) +
               ", or numbers that are too good";
  }
  if (comparison.paused && out.verdict == Verdict::holds)
    out.note += std::string(out.note.empty() ? "" : "; ") +
                "the clock runs like the steps between some lines and shows more between most: pauses";
  if (!comparison.mean.empty()) out.note += (out.note.empty() ? "" : "; ") + std::string(comparison.mean);
  if (comparison.of_ranks)
    out.note += (out.note.empty() ? "" : "; ") +
                (agrees_so ? "of ranks that share the passes: " + ways_that_agree(comparison, factor)
                           : std::string("no number of ranks that divides the passes makes it"));
  else if (!comparison.ways.empty())
    out.note += (out.note.empty() ? "" : "; ") +
                (agrees_so ? "FLOPs counted as " + ways_that_agree(comparison, factor)
                           : std::string("no convention that is known counts so"));
  return out;
}

}  // namespace

std::string_view to_string(Verdict verdict) {
  constexpr std::string_view names[] = {"holds", "contradicts", "cannot be judged"};
  return names[static_cast<std::size_t>(verdict)];
}

Result holding(std::int64_t judged) {
  Result out;
  out.verdict = Verdict::holds;
  out.judged = judged;
  return out;
}

Result not_judged(std::string missing) {
  Result out;
  out.note = std::move(missing);
  return out;
}

void contradict(Result& result, double printed, Interval recomputed, std::int64_t line) {
  if (result.verdict != Verdict::contradicts) {
    result.verdict = Verdict::contradicts;
    result.printed = printed;
    result.recomputed = recomputed;
    // By how much it leaves the interval, seen from the nearer end.
    const double end = printed < recomputed.low ? recomputed.low : recomputed.high;
    result.off_by = end > 0 && end < 1e290 && std::isfinite(printed) ? printed / end : 1;
  }
  ++result.contradicted;
  // Two numbers of one line contradict in one place.
  const bool known =
      line > 0 && std::find(result.lines.begin(), result.lines.end(), line) != result.lines.end();
  if (result.lines.size() < 8 && !known) result.lines.push_back(line);
}

std::vector<Result> judge(const RunRecord& record) {
  const Evidence evidence(record);
  return judge(evidence, compare(evidence));
}

std::vector<Result> judge(const Evidence& evidence, const Comparisons& comparisons) {
  const Interpretation interpretation = interpret(evidence, comparisons);
  std::vector<Result> out;
  for (const Invariant& invariant : invariants()) {
    if (invariant.id == "scaling") continue;  // of several runs: compare_runs.hpp
    Result result;
    for (std::size_t i = 0; i < relation_count; ++i)
      if (to_string(static_cast<Relation>(i)) == invariant.id)
        result = judge_relation(comparisons[i], interpretation.factors.values[i], interpretation.note);
    for (const Other& other : others)
      if (other.id == invariant.id) result = other.judge(evidence);
    for (std::size_t i = 0; i < identities().size(); ++i)
      if (identities()[i].invariant.id == invariant.id)
        result = judge_identity(evidence.record, static_cast<Identity>(i));
    if (invariant.id == "work_steady") result = judge_work_steady(evidence, comparisons);
    if (invariant.id == "learning_rate" && result.verdict == Verdict::cannot_be_judged)
      if (const auto lone = judge_lone_rate(evidence)) result = *lone;
    result.id = invariant.id;
    result.unit = invariant.unit;
    if (result.id == "parameters" && result.verdict == Verdict::cannot_be_judged)
      if (const auto of_rank = judge_first_rank(evidence.record)) {
        result = *of_rank;
        result.id = invariant.id, result.unit = invariant.unit;
        out.push_back(std::move(result));
        continue;
      }
    if (result.id == "parameters" && result.verdict != Verdict::cannot_be_judged)
      result.note = note_on_parameters(evidence);
    out.push_back(std::move(result));
  }
  return out;
}

void rejudge(std::vector<Result>& results, const Comparisons& comparisons,
             const Interpretation& interpretation) {
  for (Result& result : results)
    for (std::size_t i = 0; i < relation_count; ++i)
      if (to_string(static_cast<Relation>(i)) == result.id) {
        // What one rank counts enters no relation.
        if (result.verdict != Verdict::cannot_be_judged && comparisons[i].samples.empty() &&
            comparisons[i].ways.empty() && result.id == "parameters")
          continue;
        const Unit unit = result.unit;
        const std::string id = result.id, note = result.note;
        result = judge_relation(comparisons[i], interpretation.factors.values[i], interpretation.note);
        result.id = id;
        result.unit = unit;
        if (id == "parameters") result.note = note;
      }
}

Result judge(std::string_view id, const RunRecord& record) {
  invariant_named(id);
  for (Result& result : judge(record))
    if (result.id == id) return std::move(result);
  return {};
}

}  // namespace assay::spec::audit
