#pragma once
// A run's audit in a few words.
#include <string>
#include <vector>

#include "spec/audit/hypotheses.hpp"

namespace assay::spec::audit {

/// What the log prints of its speed in FLOPs and nothing could judge, as the FLOPs of its tokens are not
/// known: "MFU", "FLOP/s" or "MFU and FLOP/s". That they go with each other (mfu_of_flops_rate) and are
/// possible (mfu_possible) says nothing of them. Empty where one of them was judged, or none is printed.
std::string utilisation_left_open(const RunRecord& record, const std::vector<Result>& results);

/// "tokens/s", "step time", both or none: what the steps print, and print no number of on any line.
std::string rates_not_numbers(const Audit& audit);

/// What contradicts where its reading changes nothing: ids of results whose cause is their own, in no factor
/// between rates, times and batch. Empty where a reading changes something or nothing contradicts.
std::vector<std::string> causes_of_their_own(const Audit& audit, const Reading& reading);

/// "CONTRADICTS", "cannot be judged", "consistent", "consistent but for its MFU, which could not be judged",
/// or "consistent, but its clock shows at least 12.00 % more time than its steps".
std::string headline(const Audit& audit);

}  // namespace assay::spec::audit
