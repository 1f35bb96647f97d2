#pragma once
// Events from lines of JSON, validated.
#include <functional>
#include <istream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "spec/record/event.hpp"
#include "spec/record/lines.hpp"

namespace assay::spec::record {

/// The event of one line, whose hash is not judged. `where` starts every message, e.g. "run.jsonl:12".
/// Errors: UserError(bad_data): not JSON, unknown event, missing or extra field (with its path), wrong type,
/// another schema version.
Event from_json(std::string_view line, const std::string& where);

/// How a record is read that may be damaged.
struct Tolerance {
  std::vector<StatedPlace> places;  ///< that it must hold; those that were found are taken out
  Damage damage;                    ///< what was found
};

/// Hands all events of a record to `take`, in their order. The first is a run_start. A last line that a crash
/// cut off is left out; any other fault is an error. With `tolerance`, what lines with hashes are damaged in
/// is noted there instead, and the others are read on; those that cannot be read are left out, and the first
/// may be another one, where a run_start follows. Errors: as from_json with `origin` and the line number; a
/// line that is not as it was written (record_c3); an empty record; UserError(io).
void for_each_event(std::istream& in, const std::string& origin, const std::function<void(Event&&)>& take,
                    Tolerance* tolerance = nullptr);

/// The number of the step whose line this is, where it begins as this program writes it.
std::optional<std::int64_t> step_in(std::string_view line);

/// The same, but for the lines of steps, of which `step` takes the number and the rest is not read: in a
/// fraction of the time. A line of a step that begins otherwise is an event.
void for_each_event_and_step(std::istream& in, const std::string& origin,
                             const std::function<void(Event&&)>& take,
                             const std::function<void(std::int64_t)>& step, Tolerance& tolerance);

/// All of them.
std::vector<Event> read_events(std::istream& in, const std::string& origin, Tolerance* tolerance = nullptr);

/// The same from a file, or from run.jsonl of a folder. Errors: also UserError(io) when it cannot be opened.
std::vector<Event> read_events(const std::string& file_or_folder, Tolerance* tolerance = nullptr);

/// The run_start and run_end events of a record, of a long one in a fraction of the time that all take. Lines
/// that cannot be read are left out; what does not exist has none.
std::vector<Event> starts_and_ends(const std::string& file_or_folder);

/// The file, or run.jsonl of the folder.
std::string record_file(const std::string& file_or_folder);

}  // namespace assay::spec::record
