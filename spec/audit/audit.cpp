// One log judged as a whole: every verdict, the readings that explain it, and what each contradiction rests
// on.
#include <algorithm>
#include <cmath>

#include "spec/audit/conventions.hpp"
#include "spec/audit/groups.hpp"
#include "spec/audit/hypotheses.hpp"

namespace assay::spec::audit {

bool equally(const Reading& best, const Reading& other) {
  // Beside other runs the joint price decides; alone it is the reading's own.
  const bool together = best.joint > 0 || other.joint > 0;
  const double dearer = together ? other.joint - best.joint : other.cost - best.cost;
  return dearer < 1 && other.unexplained.size() <= best.unexplained.size();
}

namespace {

/// An MFU that follows from other printed numbers is as wrong as they are: it is held against the corrected
/// one.
void correct_utilisation(Audit& audit, const Evidence& e) {
  const Reading& best = audit.readings.front();
  std::vector<Cause> causes;
  for (const Change& change : best.changes)
    if (change.rate != 1 || change.gpus != 1 || change.factors[Relation::peak] != 1)
      causes.push_back({change.id, change.text});
  const Corrected& right = best.corrected;
  if (causes.empty() || !right.per_gpu || right.impossible || !e.dense_peak || e.steps.empty()) return;
  auto flops = e.flops_per_token(*e.steps.back());
  if (!flops) flops = counted_flops(e, e.record.format.convention);
  if (!flops) return;
  const Interval mfu = *right.per_gpu * *flops / exact_interval(*e.dense_peak);
  for (Result& result : audit.results) {
    if (result.id != "mfu" && result.id != "mfu_of_flops_rate") continue;
    if (result.verdict != Verdict::holds || std::abs(result.printed / mfu.middle() - 1) < 0.02) continue;
    result.verdict = Verdict::contradicts;
    result.recomputed = mfu;
    result.off_by = result.printed / mfu.middle();
    result.contradicted = result.judged;
    result.note = "follows from the printed numbers, and so from what is wrong with them";
    result.causes = causes;
  }
}

void explain(Audit& audit, const Evidence& evidence, const Comparisons& comparisons) {
  if (audit.contradicts) rejudge(audit.results, comparisons, audit.readings.front().interpretation);
  name_causes(audit.results, evidence, comparisons, audit.readings);
  correct_utilisation(audit, evidence);
}

}  // namespace

Audit audit(const RunRecord& record) {
  const Evidence evidence(record);
  const Comparisons comparisons = compare(evidence);
  Audit out;
  out.record = &record;
  out.results = judge(evidence, comparisons);
  out.readings = readings(evidence, comparisons);
  out.contradicts = std::any_of(out.results.begin(), out.results.end(),
                                [](const Result& r) { return r.verdict == Verdict::contradicts; });
  if (evidence.model) out.model = evidence.model->name;
  if (evidence.gpu.gpu)
    out.gpu = evidence.gpu.gpu->name;
  else if (!evidence.gpu.candidates.empty())
    out.gpu = record.gpu;
  out.gpus = evidence.gpus.value_or(0);
  explain(out, evidence, comparisons);
  return out;
}

void refresh(Audit& audit) {
  const Evidence evidence(*audit.record);
  const Comparisons comparisons = compare(evidence);
  audit.results = judge(evidence, comparisons);
  explain(audit, evidence, comparisons);
}

}  // namespace assay::spec::audit
