#pragma once
// The step lines of Megatron-LM's console and of its descendants': formats.md, "megatron".
#include <optional>
#include <string_view>

#include "spec/audit/readers/scan.hpp"

namespace assay::spec::audit::megatron {

/// Behind "iteration" of a line like "iteration  10/ 100 | ... |"; data() is null on other lines.
std::string_view step_line(std::string_view text);

/// Reads what `step_line` gave into `step`, its batch, in whatever its trainer counts it, into `batch`. False
/// where a known number cannot be read, or no time is there.
bool read_numbers(std::string_view text, std::int64_t line, Step& step, std::optional<Printed>& batch,
                  TakenNumbers* taken = nullptr);

}  // namespace assay::spec::audit::megatron
