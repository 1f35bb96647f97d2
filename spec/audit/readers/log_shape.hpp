#pragma once
// What a log is, by its first bytes.
#include <string>
#include <string_view>

namespace assay::spec::audit {

/// Whether the line is a fence of Markdown ("```", "```json"), which stands around a log and is no line of
/// it.
bool is_fence(std::string_view line);

/// Whether the line says no more than that whoever put the log together left lines out: "...", "[...]",
/// "<snip>".
bool is_elision(std::string_view line);

enum class LogShape { text, document, json_lines };

/// What a log is that starts so.
LogShape shape_of(std::string_view start);

/// Refuses what is no text. Errors: UserError(bad_data).
void check_text(std::string_view start, const std::string& origin);

}  // namespace assay::spec::audit
