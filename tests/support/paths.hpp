#pragma once
// Where this build and its sources lie. Functions, not macros: a path on every command line would keep
// compiler caches from sharing results between clones.
#include <string>

namespace assay::tests {

std::string source_dir();  ///< root of the repository
std::string binary_dir();  ///< build/<preset>: programs are in bin/

}  // namespace assay::tests
