#pragma once
// A run's numbers as a table for other programs.
#include <string>
#include <vector>

#include "impl/report/page.hpp"

namespace assay::impl::report {

/// RFC 4180 with a header. A row each of every step, skipped step and validation of each run, in their order;
/// columns `run`, `event`, `step`, then every number and text that the record has of one of them, named as in
/// spec/record/record.md ("phases.forward"), where any run has it. Numbers read back to the same bits; empty:
/// the record has none.
std::string csv(const std::vector<NamedRun>& runs);

}  // namespace assay::impl::report
