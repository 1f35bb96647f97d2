#pragma once
// Events from lines of JSON, validated.
#include <istream>
#include <string>
#include <string_view>
#include <vector>

#include "spec/record/event.hpp"

namespace assay::spec::record {

/// The event of one line. `where` starts every message, e.g. "run.jsonl:12".
/// Errors: UserError(bad_data): not JSON, unknown event, missing or extra field (with its path), wrong type,
/// another schema version.
Event from_json(std::string_view line, const std::string& where);

/// All events of a record. Its first event is a run_start. A last line without line break that is not JSON
/// was cut off by a crash and is left out; any other fault is an error. Errors: as from_json with `origin`
/// and the line number; an empty record.
std::vector<Event> read_events(std::istream& in, const std::string& origin);

/// The same from a file, or from run.jsonl of a folder. Errors: also UserError(io) when it cannot be opened.
std::vector<Event> read_events(const std::string& file_or_folder);

}  // namespace assay::spec::record
