#pragma once
// Lines that a trainer prints twice by habit.
#include "spec/audit/run_record.hpp"

namespace assay::spec::audit {

/// Hugging Face's console has two printers of one dictionary, on each node, and LLaMA-Factory a third with
/// its own rounding and its throughput: where every line of the log stands as often in a row with the same
/// numbers, one step is left of each, with what any of them says. A line doubled here or there, or one whose
/// double says something else, stays as it is. Of other trainers the same is done where all numbers are
/// alike, stamps too, as they are of a log with two handlers (RunFacts::printed_twice); not of lines that may
/// be those of ranks.
void merge_doubled_lines(RunRecord& run);

}  // namespace assay::spec::audit
