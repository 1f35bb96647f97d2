#include "tests/support/paths.hpp"

namespace assay::tests {

std::string source_dir() { return ASSAY_SOURCE_DIR; }
std::string binary_dir() { return ASSAY_BINARY_DIR; }

}  // namespace assay::tests
