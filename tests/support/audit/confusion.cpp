// Draws of faults: each is put into logs, which the audit reads.
#include "tests/support/audit/confusion.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "spec/audit/hypotheses.hpp"
#include "tests/support/simulated/read.hpp"

namespace assay::tests::confusion {
namespace {

using spec::audit::Audit;
using spec::audit::Change;
using spec::audit::Reading;
using spec::audit::Result;
using spec::audit::RunRecord;
using spec::audit::Verdict;

/// What the audit names first: the first change of its best reading, or the cause of what contradicts on its
/// own.
std::string named_first(const Audit& audit) {
  if (!audit.contradicts) return "nothing";
  for (const Change& change : audit.readings.front().changes) return change.id;
  for (const Result& result : audit.results)
    if (result.verdict == Verdict::contradicts && !result.causes.empty()) return result.causes.front().id;
  return "no cause";
}

/// Whether the fault is named first, or told as what explains the log as well.
bool told(const Audit& audit, const Fault& fault) {
  const auto is = [&](const std::string& id) { return id == fault.id || fault.also.contains(id); };
  if (is(named_first(audit))) return true;
  for (const Reading& reading : audit.readings)
    for (const Change& change : reading.changes)
      if (equally(audit.readings.front(), reading) &&
          (is(change.id) || std::any_of(change.alternative_ids.begin(), change.alternative_ids.end(), is)))
        return audit.contradicts;
  return false;
}

void take(const Fault& fault, const SimulatedRun& run, const std::string& log, Row& row) {
  ++row.draws;
  const RunRecord record = record_of(run, log);
  const Audit one = audit(record);
  const std::string name = named_first(one);
  ++row.named[name];
  row.detected += one.contradicts;
  for (const Result& result : one.results)
    if (result.verdict == Verdict::contradicts) ++row.contradicted[result.id];
  for (const Reading& reading : one.readings)
    for (const auto& mfu : {reading.corrected.mfu_exact, reading.corrected.mfu_palm_total})
      EXPECT_TRUE(!mfu || mfu->high <= 1) << fault.id << " in " << to_string(run.format);
  row.right += name == fault.id || fault.also.contains(name);
  row.told += told(one, fault);
}

/// Puts the fault into `draws` logs of `formats` in turn; fewer when it does not show in `seeds` runs.
Row draw(const Fault& fault, const std::vector<LogFormat>& formats, int draws, std::uint64_t seeds) {
  Row row;
  for (std::uint64_t seed = 0; row.draws < draws && seed < seeds; ++seed) {
    const SimulatedRun truth = simulate(formats[seed % formats.size()], first_seed + seed);
    SimulatedRun run = truth;
    const auto faulty = fault.inject(run, seed);
    if (!faulty) continue;
    const auto twin = std::find_if(fault.twins.begin(), fault.twins.end(),
                                   [&](const Twin& t) { return t.same(truth, seed); });
    if (twin != fault.twins.end()) {
      ++row.twins[twin->text];
      continue;
    }
    const std::string log = render(run, *faulty);
    if (log != render(truth)) take(fault, run, log, row);
  }
  return row;
}

Row draw(const Fault& fault) { return draw(fault, fault.formats, draws_of_a_fault, 20 * draws_of_a_fault); }

}  // namespace

const std::vector<std::pair<const Fault*, Row>>& scored() {
  static const std::vector<std::pair<const Fault*, Row>> all = [] {
    std::vector<std::pair<const Fault*, Row>> out;
    for (const Fault& fault : faults()) out.emplace_back(&fault, draw(fault));
    return out;
  }();
  return all;
}

const std::vector<Elsewhere>& elsewhere() {
  static const std::vector<Elsewhere> all = [] {
    std::vector<Elsewhere> out;
    for (const Fault& fault : faults())
      for (std::size_t i = 0; i < log_formats; ++i) {
        const auto format = static_cast<LogFormat>(i);
        if (std::count(fault.formats.begin(), fault.formats.end(), format) > 0) continue;
        Row row = draw(fault, {format}, draws_elsewhere, seeds_elsewhere);
        if (row.draws > 0) out.push_back({&fault, format, std::move(row)});
      }
    return out;
  }();
  return all;
}

}  // namespace assay::tests::confusion
