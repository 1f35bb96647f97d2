#pragma once
// What an error means to who started the program: one table for every program and rank.
#include <exception>
#include <string>

#include "spec/error.hpp"

namespace assay {

struct Failure {
  ExitCode code;
  std::string text;  ///< without what the code says
};

/// A UserError's own code; `usage` of a SpecError; `io` of a file system's; `usage` where memory ran out;
/// `bug` otherwise.
Failure failure_of(const std::exception& error);

}  // namespace assay
