#pragma once
// The GPUs that CTest has given to a test: RESOURCE_GROUPS of cmake/AssayTests.cmake, cut from the file that
// ci/test writes.
#include <functional>
#include <string>

namespace assay::tests {

using Environment = std::function<const char*(const std::string&)>;

/// The GPUs of all groups of the test, "2,3", as CUDA_VISIBLE_DEVICES takes them; empty where CTest gave
/// none. Source: ctest(1), "Resource Allocation", environment variables. Errors: std::invalid_argument where
/// what CTest says is not of that form.
std::string visible_gpus(const Environment& environment);

}  // namespace assay::tests
