#pragma once

namespace assay::tests {

/// Runs GoogleTest with the project's options (tests/support/program/main.cpp) and returns the exit code.
int run(int argc, char** argv);

}  // namespace assay::tests
