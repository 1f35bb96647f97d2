#include "spec/audit/compare_runs.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "spec/audit/groups.hpp"
#include "spec/audit/joint_readings.hpp"
#include "spec/text/quantity.hpp"

namespace assay::spec::audit {
namespace {

std::optional<double> median_printed(const Audit& audit, Field field) {
  std::vector<double> values;
  for (const Step& step : audit.record->steps)
    if (step[field] && std::isfinite(step[field]->value) && !not_measured(*step[field]))
      values.push_back(step[field]->value);
  if (values.empty()) return std::nullopt;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

std::optional<double> ratio(const std::optional<double>& second, const std::optional<double>& first) {
  return second && first && *first > 0 ? std::optional(*second / *first) : std::nullopt;
}

/// Speeds of the same work on the same machine differ by so much from run to run (ci/bench's medians): less
/// is no difference, and a ratio of printed numbers that leaves the corrected ones' by more than five times
/// that is one of accounting. Chosen. [shares]
constexpr double equally_fast = 0.01, told_apart = 0.05;
/// The least mistake of counting that makes each of more GPUs faster is twice: two GPUs' rate taken for
/// one's, a sparse peak, half of the passes; less by what distinguishes ratios. What lies below, no
/// mistake makes, and other settings than a log shows may: compilation, less recompute, smaller shards.
constexpr double counted_twice = 2 * (1 - told_apart);
/// Caches and smaller shards may make each of more GPUs a little faster; more is worth a word. Chosen.
constexpr double usual_efficiency = 1.1;

std::string times(double x) { return fixed(x, 2) + "x"; }

std::string each_of(const Audit& a, const Audit& b) {
  const auto on_cpu = [](const Audit& audit) { return audit.record->device == "cpu"; };
  return on_cpu(a) && on_cpu(b) ? "per rank" : "per GPU";
}

/// Of both runs, what is stated and differs so that a token of one is other work than a token of the other.
std::string other_work(const Audit& a, const Audit& b) {
  std::string out;
  const auto add = [&](const std::string& what) { out += (out.empty() ? "" : ", ") + what; };
  const auto stated = [&](Setting setting) {
    const auto &x = (*a.record)[setting], &y = (*b.record)[setting];
    return x && y ? std::optional(y->value / x->value) : std::nullopt;
  };
  const auto parameters = stated(Setting::parameters);
  if (!a.model.empty() && !b.model.empty() && a.model != b.model)
    add(a.model + " and " + b.model);
  else if (parameters && std::abs(*parameters - 1) > equally_fast)
    add("parameters " + times(*parameters));
  if (const auto length = stated(Setting::sequence_length); length && *length != 1)
    add("sequences of " + shown((*a.record)[Setting::sequence_length]->value, Unit::tokens) + " and " +
        shown((*b.record)[Setting::sequence_length]->value, Unit::tokens) + " tokens");
  return out;
}

/// Whose model is not known, so that a token of one may be other work than a token of the other; empty where
/// both are, or both print as many parameters.
std::string unknown_work(const Audit& a, const Audit& b) {
  const auto &x = (*a.record)[Setting::parameters], &y = (*b.record)[Setting::parameters];
  if ((!a.model.empty() && !b.model.empty()) || (x && y)) return "";
  const std::string &first = a.record->origin, &second = b.record->origin;
  if (!a.model.empty()) return second;
  return b.model.empty() ? first + " and of " + second : first;
}

SpeedDifference difference(const std::vector<Audit>& audits, std::size_t first, std::size_t second) {
  const Audit &a = audits[first], &b = audits[second];
  SpeedDifference out;
  out.first = first;
  out.second = second;
  out.same_work = same_work(a, b);
  out.each = each_of(a, b);
  out.printed =
      ratio(median_printed(b, Field::tokens_per_second), median_printed(a, Field::tokens_per_second));
  out.printed_mfu = ratio(median_printed(b, Field::mfu), median_printed(a, Field::mfu));
  const Corrected &x = a.readings.front().corrected, &y = b.readings.front().corrected;
  const auto middle = [](const std::optional<Interval>& i) {
    return i ? std::optional(i->middle()) : std::nullopt;
  };
  out.all = ratio(middle(y.tokens_per_second), middle(x.tokens_per_second));
  out.per_gpu = ratio(middle(y.per_gpu), middle(x.per_gpu));
  out.mfu_exact = ratio(middle(y.mfu_exact), middle(x.mfu_exact));
  if (!out.per_gpu) {
    out.verdict = "cannot be compared: " + (x.per_gpu ? y.missing : x.missing);
    return out;
  }
  const bool other_gpu = !a.gpu.empty() && !b.gpu.empty() && a.gpu != b.gpu;
  const std::string mfus = out.mfu_exact ? "exact MFU " + shown(middle(x.mfu_exact).value(), Unit::share) +
                                               " and " + shown(middle(y.mfu_exact).value(), Unit::share)
                                         : "";
  if (const std::string other = other_work(a, b); !other.empty()) {
    const bool mfu_apart =
        out.mfu_exact && out.printed_mfu && std::abs(*out.printed_mfu / *out.mfu_exact - 1) > told_apart;
    out.verdict = std::string(mfu_apart ? "partly accounting; " : "") + "other work (" + other +
                  "), so tokens/s do not compare: " + (mfus.empty() ? "no exact MFU of both" : mfus);
    return out;
  }
  const double off = std::abs(*out.per_gpu - 1);
  // A rate may be printed of all GPUs or of one, and an MFU falls with the speed.
  const auto apart = [](double printed, double corrected) {
    return std::abs(printed / corrected - 1) > told_apart;
  };
  const bool shown_apart =
      (out.printed_mfu && apart(*out.printed_mfu, out.mfu_exact.value_or(*out.per_gpu))) ||
      (out.printed && apart(*out.printed, *out.per_gpu) &&
       apart(*out.printed, out.all.value_or(*out.per_gpu)));
  if (const std::string unknown = unknown_work(a, b); !unknown.empty())
    out.verdict = std::string(shown_apart ? "partly accounting; " : "") + times(*out.per_gpu) +
                  " the tokens/s " + out.each + ", but the model of " + unknown +
                  " is not known, so a token may be other work (--model M)";
  else if (off < equally_fast)
    out.verdict = shown_apart ? "accounting: " + out.each + " they are equally fast (" +
                                    percent(*out.per_gpu - 1, 2) + ")"
                              : "equally fast " + out.each + " (" + percent(*out.per_gpu - 1, 2) + ")";
  else
    out.verdict = std::string(shown_apart ? "partly accounting; " : "") + "real: " + times(*out.per_gpu) +
                  " " + out.each;
  if (other_gpu) out.verdict += ", on " + b.gpu + " in place of " + a.gpu + (mfus.empty() ? "" : ": " + mfus);
  return out;
}

/// More GPUs do not make each of them twice as fast; something that the logs do not show may make it faster.
Result scaling(const std::vector<Audit>& audits, const std::vector<SpeedDifference>& differences) {
  Result out = holding(0);
  out.id = "scaling";
  for (const SpeedDifference& d : differences) {
    // CPUs share their cores between ranks, and a handful of steps says nothing.
    const auto judged = [&](const Audit& a) { return a.gpus > 0 && !a.gpu.empty(); };
    if (!d.same_work || !d.per_gpu || !judged(audits[d.first]) || !judged(audits[d.second])) continue;
    if (audits[d.first].gpus == audits[d.second].gpus) continue;
    const bool more = audits[d.second].gpus >= audits[d.first].gpus;
    const double efficiency = more ? *d.per_gpu : 1 / *d.per_gpu;
    ++out.judged;
    out.printed = efficiency;
    out.recomputed = {0, counted_twice};
    if (efficiency > usual_efficiency && efficiency < counted_twice)
      out.note = "per GPU " + times(efficiency) +
                 " with more GPUs: a setting that the logs do not show may differ (compilation, recompute), "
                 "or what is counted";
    if (efficiency >= counted_twice) {
      contradict(out, efficiency, out.recomputed, 0);
      blame(out, "scaling_above_linear",
            "more GPUs make each faster: other work, or another way of counting");
    }
  }
  if (out.judged == 0) {
    Result none = not_judged("two runs of equal work on different numbers of GPUs");
    none.id = "scaling";
    return none;
  }
  return out;
}

}  // namespace

Together audit(const std::vector<RunRecord>& records) {
  Together out;
  for (const RunRecord& record : records) out.audits.push_back(audit(record));
  std::set<std::string> formats;
  for (const RunRecord& record : records) formats.insert(record.format.name);
  for (const std::string& format : formats) {
    std::vector<Audit*> runs;
    for (Audit& one : out.audits)
      if (one.record->format.name == format) runs.push_back(&one);
    settle(std::move(runs), out.settled);
  }
  for (std::size_t i = 1; i < out.audits.size(); ++i)
    if (!records[i].later_start) out.differences.push_back(difference(out.audits, 0, i));
  if (!out.differences.empty()) out.results.push_back(scaling(out.audits, out.differences));
  return out;
}

}  // namespace assay::spec::audit
