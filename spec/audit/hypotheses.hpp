#pragma once
// Readings of a log under which all its numbers agree: small sets of changes, the fewest and commonest first.
// How they are searched and ranked, and when two count as equal: spec/audit/audit.md.
#include <optional>
#include <string>
#include <vector>

#include "spec/audit/changes.hpp"
#include "spec/audit/invariants.hpp"

namespace assay::spec::audit {

/// Throughput and utilisation as a reading has them. Of the median step, the first left out.
struct Corrected {
  std::optional<Interval> tokens_per_second;  ///< of all GPUs [1/s]
  std::optional<Interval> per_gpu;            ///< [1/s]
  std::optional<Interval> mfu_exact;          ///< `exact` against the dense peak; share of 1
  std::optional<Interval> mfu_palm_total;     ///< `palm_total` against the dense peak; share of 1
  std::string missing;                        ///< what keeps an MFU from being given
  bool impossible = false;                    ///< more than the dense peak: no MFU is given
};

struct Reading {
  Interpretation interpretation;
  std::vector<Change> changes;  ///< empty when the log agrees as it stands
  double cost = 0;
  double joint = 0;     ///< beside other runs: what it costs all of them more than the best choice
  double residual = 0;  ///< mean distance of the explained ratios from their middle, in half widths
  std::vector<Relation> explained, unexplained;
  Corrected corrected;
};

/// At most 8, best first. The first explains as much as any; those that follow with nearly its cost
/// (`equally`) explain equally.
std::vector<Reading> readings(const Evidence& evidence, const Comparisons& comparisons);

/// Whether `other` explains as well as `best`: no more left over, and a cost that differs by less than 1.
bool equally(const Reading& best, const Reading& other);

/// A whole audit of one run.
struct Audit {
  const RunRecord* record = nullptr;
  std::vector<Result> results;    ///< with their causes
  std::vector<Reading> readings;  ///< at least one
  bool contradicts = false;
  std::string model, gpu;  ///< as understood; empty when not known
  double gpus = 0;         ///< 0: not known; ranks where the run is on CPUs
};

/// Judges, and explains what contradicts. Never throws for what a log may hold. `record` must outlive the
/// audit.
Audit audit(const RunRecord& record);

/// Judges and names causes anew after its readings were put in another order.
void refresh(Audit& audit);

/// Gives every result the causes that the reading holds for it, and local ones where single places
/// contradict.
void name_causes(std::vector<Result>& results, const Evidence& evidence, const Comparisons& comparisons,
                 const std::vector<Reading>& readings);

}  // namespace assay::spec::audit
