#pragma once
// Consoles that are known by sight and not read: what a refusal can name.
#include <string_view>

namespace assay::spec::audit {

/// Whose console `line` looks like ("DeepSpeed"); empty for anything else, also for the trainers that are
/// read.
std::string_view unread_trainer(std::string_view line);

/// What a line stands for that is a part of a known log and no step of it, with what to give instead; empty
/// where it is none.
std::string_view unread_part(std::string_view line);

}  // namespace assay::spec::audit
