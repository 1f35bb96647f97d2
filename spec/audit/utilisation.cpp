#include <algorithm>

#include "spec/audit/groups.hpp"

namespace assay::spec::audit {

namespace {

/// nanoGPT divides by the peak of an A100 whatever it runs on: its "MFU" may pass 1 where the GPU is faster.
double most(const Evidence& e) {
  if (e.record.format.name != "nanogpt") return 1;
  constexpr double a100 = 312e12;
  double fastest = 0;
  for (const Gpu& gpu : gpus())
    if (const Peak* peak = gpu.peak(Precision::bf16)) fastest = std::max(fastest, peak->dense);
  return e.dense_peak.value_or(fastest) / a100;
}

}  // namespace

Result judge_mfu_possible(const Evidence& e) {
  const double limit = most(e);
  Result out = holding(0);
  std::int64_t sentinels = 0;
  for (const Step* step : e.steps)
    for (const Field field : {Field::mfu, Field::hfu}) {
      const auto& share = (*step)[field];
      if (!share) continue;
      if (not_measured(*share)) {
        ++sentinels;
        continue;
      }
      ++out.judged;
      out.printed = share->value;
      if (share->value >= 0 && share->low <= limit) continue;
      contradict(out, share->value, {0, limit}, share->line ? share->line : step->line);
    }
  if (out.judged == 0) return not_judged(sentinels ? "MFU: only \"not measured\" is printed" : "MFU");
  out.recomputed = {0, limit};
  if (out.verdict == Verdict::contradicts) {
    out.note = "no machine does more than its peak, nor less than nothing";
    if (out.printed > limit && out.printed <= 100 && out.contradicted * 2 > out.judged)
      blame(out, "mfu_in_percent", "percent are read as shares of 1");
  } else if (limit != 1) {
    out.note = "nanoGPT divides by the peak of an A100, whatever the GPU";
  } else if (sentinels) {
    out.note = std::to_string(sentinels) + " printed as -1 or -100 %: not measured";
  }
  return out;
}

Result judge_hfu(const Evidence& e) {
  Result out = holding(0);
  for (const Step* step : e.steps) {
    const auto &mfu = (*step)[Field::mfu], &hfu = (*step)[Field::hfu];
    if (!mfu || !hfu || not_measured(*mfu) || not_measured(*hfu)) continue;
    ++out.judged;
    out.printed = hfu->value;
    out.recomputed = {wide(*mfu).low, 1};
    if (wide(*hfu).high < mfu->low) contradict(out, hfu->value, {wide(*mfu).low, 1}, step->line);
  }
  if (out.judged == 0) return not_judged("HFU beside MFU");
  if (out.verdict == Verdict::contradicts) {
    out.note = "what was executed is at least what the model needs";
    blame(out, "hfu_below_mfu", "MFU and HFU are exchanged, or count by different conventions");
  }
  return out;
}

}  // namespace assay::spec::audit
