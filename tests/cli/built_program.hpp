#pragma once
// The built program and what running it gave.
#include <string>
#include <vector>

#include "impl/cli/program.hpp"
#include "tests/support/paths.hpp"

namespace assay::tests {

inline std::string assay_path() { return binary_dir() + "/bin/assay"; }

/// Runs build/<preset>/bin/assay with `words`.
inline impl::cli::Outcome assay(std::vector<std::string> words) {
  words.insert(words.begin(), assay_path());
  return impl::cli::run_program(words, 60);
}

/// Runs a shell command line.
inline impl::cli::Outcome shell(const std::string& line, double seconds = 60) {
  return impl::cli::run_program({"/bin/bash", "-c", line}, seconds);
}

}  // namespace assay::tests
