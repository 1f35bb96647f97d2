#pragma once
// Readings of several runs of one trainer, chosen together.
#include <string>
#include <vector>

#include "spec/audit/hypotheses.hpp"

namespace assay::spec::audit {

/// Same model, GPU, micro-batch and length: per-GPU rates may then differ by communication alone.
bool same_work(const Audit& a, const Audit& b);

/// Reads the runs of one trainer together; their best readings come first afterwards. `settled` gains a line
/// for each run that is only clear beside the others.
void settle(std::vector<Audit*> runs, std::vector<std::string>& settled);

}  // namespace assay::spec::audit
