#pragma once
// Ranks that print without saying which they are: all of a log, or those behind one prefix. "0: " of `srun
// -l` is a node where one task starts its ranks; "[default0]:" of torchrun is a rank of every node.
#include <vector>

#include "spec/audit/run_record.hpp"

namespace assay::spec::audit {

/// The lines of a log, or of those of one prefix, in which every step stands several times.
struct UnnamedRanks {
  std::vector<const Step*> lines;  ///< the first of each step; all of them where no ranks are seen
  std::size_t ranks = 1;           ///< that print each step
  /// Every line of a step is the same, its stamp too: ranks that round alike, or one line printed as often.
  bool maybe_copies = false;
};

/// How many ranks may print a step line without naming themselves: torchtitan's all do, unless the launcher
/// filters them (as many as its mesh holds, infinity where that is lost), shared out among so many
/// `prefixes`; 1 of other trainers, whose lines are copies where they are the same.
double ranks_that_may_print(const RunRecord& record, std::size_t prefixes = 1);

/// The first line of each step, where the steps have as many lines (the first and the last may be cut, and
/// one line of eight steps may be lost), near each other and with one loss: ranks that print without saying
/// which they are, some a step ahead of others. Else all lines: one doubled here or there is no rank, nor is
/// a log whose every line is there oftener than `may_print` ranks would print it, the same each time; behind
/// a prefix that names a rank, any other number of times.
UnnamedRanks without_unnamed_ranks(const std::vector<const Step*>& lines, double may_print);

}  // namespace assay::spec::audit
