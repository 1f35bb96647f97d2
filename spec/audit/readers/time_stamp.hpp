#pragma once
// The time of day that loggers put before a line.
#include <cstdint>
#include <optional>
#include <string_view>

#include "spec/audit/printed.hpp"

namespace assay::spec::audit {

/// The last "2025-11-20 09:13:20", "2025-11-20 09:13:20,123" or "2025-11-20 09:13:20.123456" in `before`, as
/// seconds since 1970 on the writer's clock. A stamp cuts off what lies behind its last digit: the interval
/// reaches half a unit of that up, to which the audit adds another (evidence.hpp, wide). Empty where there is
/// none, or no such day.
std::optional<Printed> time_stamp(std::string_view before, std::int64_t line);

}  // namespace assay::spec::audit
