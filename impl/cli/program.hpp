#pragma once
// Other programs: where they are, running them, becoming them.
#include <string>
#include <utility>
#include <vector>

namespace assay::impl::cli {

/// Path of the program `name` in the folder of this program; empty when there is none that can be executed.
std::string beside_this_program(const std::string& name);

struct Outcome {
  int code = 0;          ///< exit code; 128 + signal when a signal ended it; 124 when the time was up
  std::string output;    ///< stdout, at most 1 MiB
  std::string messages;  ///< stderr, at most 1 MiB
};

/// Runs `command` to its end or until `seconds` are over (then it is killed). Errors: UserError(io) when the
/// system cannot start a process.
Outcome run_program(const std::vector<std::string>& command, double seconds);

/// Names of the shared libraries that the dynamic loader does not find for `program`; empty when it finds
/// all, or when the program is none of its own (a script). Takes some 40 ms for libtorch, and runs nothing of
/// the program.
std::vector<std::string> missing_libraries(const std::string& program);

/// Variables of the processor's threads for a trainer: how long one that waits for the others spins. GNU's
/// OpenMP spins for milliseconds, which on a core that another program wants costs whole time slices. Empty
/// where the user has set how threads wait.
std::vector<std::pair<std::string, std::string>> thread_environment();

/// Replaces this process by `command` (its first word is a path), with `variables` added to the environment
/// unless they are set already. Returns only by throwing UserError(io) when it cannot be executed.
[[noreturn]] void become(const std::vector<std::string>& command,
                         const std::vector<std::pair<std::string, std::string>>& variables);

}  // namespace assay::impl::cli
