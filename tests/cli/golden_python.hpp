#pragma once
// The Python with the packages that tests of other programs' readers need: that of `ci/setup --golden`, or
// ASSAY_GOLDEN_PYTHON.
#include <cstdlib>
#include <string>

#include "tests/cli/built_program.hpp"

namespace assay::tests {

inline std::string golden_python() {
  const char* python = std::getenv("ASSAY_GOLDEN_PYTHON");
  return python ? python : source_dir() + "/.toolchain/golden/bin/python3";
}

/// Why a test that needs `package` is skipped; empty where the package is there.
inline std::string lacks_package(const std::string& package) {
  if (shell(golden_python() + " -c 'import " + package + "'").code == 0) return "";
  return package + " is not installed (ci/setup --golden, or ASSAY_GOLDEN_PYTHON)";
}

/// Runs a Python program of tests/cli.
inline impl::cli::Outcome run_golden_python(const std::string& words, double seconds) {
  return shell(golden_python() + " -B " + source_dir() + "/tests/cli/" + words, seconds);
}

}  // namespace assay::tests
