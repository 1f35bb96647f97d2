#pragma once
// What must hold between the numbers of a log. Each invariant is a pure function of the record; what it says,
// rests on and forgives: spec/audit/audit.md, `assay audit --explain ID`.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "spec/audit/run_record.hpp"
#include "spec/interval.hpp"

namespace assay::spec::audit {

enum class Verdict { holds, contradicts, cannot_be_judged };
std::string_view to_string(Verdict verdict);  ///< "cannot be judged"

/// How numbers of an invariant are written.
enum class Unit {
  none,
  tokens,
  tokens_per_second,
  seconds,
  flops,
  flops_per_second,
  share,
  bytes,
  nats,
  steps
};
std::string shown(double number, Unit unit);            ///< "106,979 /s", "939.7 TFLOP/s", "10.44 %"
std::string shown(const Interval& numbers, Unit unit);  ///< one number when its ends print alike

/// Why a number is what it is, as far as the log can tell.
struct Cause {
  std::string id;    ///< "rate_of_one_rank"
  std::string text;  ///< "tokens/s is one rank's"
};

struct Result {
  std::string id;
  Verdict verdict = Verdict::cannot_be_judged;
  Unit unit = Unit::none;
  std::int64_t judged = 0, contradicted = 0;  ///< places
  // Of the first place that contradicts, or else the last one judged:
  double printed = 0;
  bool unprinted = false;  ///< `printed` stands on no line: other numbers make it
  Interval recomputed{0, 0};
  double off_by = 1;                ///< printed / recomputed; 1 where that says nothing
  std::vector<std::int64_t> lines;  ///< of the first places that contradict (at most 8)
  std::string note;                 ///< the missing input; what the reading took for granted; what is wrong
  std::vector<Cause> causes;        ///< of a contradiction that explains itself; the others: hypotheses.hpp
  double clock_longer = 0;  ///< what a clock shows more than the steps in every stretch, where it is worth a
                            ///< word [share]
};

struct Invariant {
  std::string_view id;         ///< "rate_time"
  std::string_view statement;  ///< one line, as an equation where it is one
  std::string_view explains;   ///< what a contradiction means, what is forgiven
  Unit unit;
};

/// All invariants in the order of results, `scaling` (of several runs, compare_runs.hpp) last.
const std::vector<Invariant>& invariants();

/// Judges every invariant. Never throws for what a log may hold.
std::vector<Result> judge(const RunRecord& record);

/// One of them. Errors: SpecError audit_c1, an unknown id.
Result judge(std::string_view id, const RunRecord& record);

/// Whether something can be judged and nothing contradicts: an empty record is not consistent, nor one whose
/// model or GPU the caller named (in a record that no reader made, or by RunRecord::state) and nobody knows.
bool consistent(const RunRecord& record);

/// One line per contradiction; empty when there is none.
std::string contradictions(const RunRecord& record);

/// Why the record is not consistent: its contradictions, a model or GPU of the caller's that is not known, or
/// that nothing can be judged. Empty when it is. For test reports.
std::string objections(const RunRecord& record);

}  // namespace assay::spec::audit
