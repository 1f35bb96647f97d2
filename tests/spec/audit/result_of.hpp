#pragma once
// What an audit says of one invariant, and what it names first.
#include <stdexcept>
#include <string>
#include <string_view>

#include "spec/audit/hypotheses.hpp"

namespace assay::tests {

/// Errors: std::out_of_range when the audit has no invariant of that name.
inline const spec::audit::Result& result_of(const spec::audit::Audit& audit, std::string_view id) {
  for (const spec::audit::Result& result : audit.results)
    if (result.id == id) return result;
  throw std::out_of_range(std::string(id));
}

/// The first change of the likeliest reading; "" where it has none.
inline std::string first_cause(const spec::audit::Audit& audit) {
  const auto& changes = audit.readings.front().changes;
  return changes.empty() ? "" : changes.front().id;
}

}  // namespace assay::tests
