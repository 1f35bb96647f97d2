#pragma once
// What the wall-clock time of a run went into, over all of its starts.
#include <string>
#include <vector>

#include "spec/record/event.hpp"

namespace assay::spec::record {

/// Over all starts in `events`. Of a start whose end says its goodput the parts are those, with the time of
/// its steps told apart: steps that the run rests on, steps behind the checkpoint that a later start resumed
/// from, steps that were skipped. Of a start without an end its steps alone are known. Domain: `events`
/// starts with a run_start.
RunGoodput run_goodput(const std::vector<Event>& events);

/// "93.1 % of 2 h 5 min in productive steps; start-up 2.9 %, saves 2.0 %, steps done again 2.0 %": parts
/// below 0.05 % are left out, the largest first. Domain: seconds > 0.
std::string goodput_text(const RunGoodput& goodput);

}  // namespace assay::spec::record
