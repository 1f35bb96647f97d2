#pragma once
// Consoles that are known by sight and not read: what a refusal can name.
#include <string_view>

namespace assay::spec::audit {

/// Whose console `line` looks like ("DeepSpeed"); empty for anything else, also for the trainers that are
/// read.
std::string_view unread_trainer(std::string_view line);

}  // namespace assay::spec::audit
