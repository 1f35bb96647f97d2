#pragma once
// The name by which ranks distinguish hosts.
#include <string>

namespace assay::impl {

/// As gethostname gives it; "unknown" where it does not.
std::string host_name();

}  // namespace assay::impl
