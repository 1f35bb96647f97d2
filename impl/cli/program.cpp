#include "impl/cli/program.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "spec/error.hpp"

extern char** environ;

namespace assay::impl::cli {
namespace {

constexpr std::size_t kMostOutput = 1 << 20;

[[noreturn]] void cannot_start(const std::string& program, int reason) {
  throw UserError(ExitCode::io, "cannot start " + program + ": " + std::strerror(reason));
}

std::vector<char*> pointers(const std::vector<std::string>& command) {
  std::vector<char*> out;
  out.reserve(command.size() + 1);
  for (const std::string& word : command) out.push_back(const_cast<char*>(word.c_str()));
  out.push_back(nullptr);
  return out;
}

/// Reading ends of a child's two streams; appends what comes until both are closed or the time is up.
class Collector {
 public:
  Collector(int out, int err) : ends_{{out, POLLIN, 0}, {err, POLLIN, 0}} {}

  /// Whether both streams ended before `deadline`.
  bool collect(Outcome& outcome, std::chrono::steady_clock::time_point deadline) {
    while (ends_[0].fd >= 0 || ends_[1].fd >= 0) {
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
      if (left.count() <= 0) return false;
      if (poll(ends_, 2, static_cast<int>(left.count())) < 0 && errno != EINTR) return false;
      take(ends_[0], outcome.output);
      take(ends_[1], outcome.messages);
    }
    return true;
  }

 private:
  static void take(pollfd& end, std::string& text) {
    if (end.fd < 0 || !(end.revents & (POLLIN | POLLHUP | POLLERR))) return;
    char block[4096];
    const ssize_t got = read(end.fd, block, sizeof block);
    if (got > 0 && text.size() < kMostOutput) text.append(block, static_cast<std::size_t>(got));
    if (got == 0 || (got < 0 && errno != EINTR)) end.fd = -1;  // poll skips negative descriptors
  }

  pollfd ends_[2];
};

}  // namespace

std::string beside_this_program(const std::string& name) {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::string path = (self.parent_path() / name).string();
  return !error && access(path.c_str(), X_OK) == 0 ? path : "";
}

Outcome run_program(const std::vector<std::string>& command, double seconds) {
  int out[2], err[2];
  if (pipe2(out, O_CLOEXEC) != 0) cannot_start(command[0], errno);
  if (pipe2(err, O_CLOEXEC) != 0) {
    const int reason = errno;
    close(out[0]);
    close(out[1]);
    cannot_start(command[0], reason);
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out[1], 1);
  posix_spawn_file_actions_adddup2(&actions, err[1], 2);
  pid_t child = 0;
  const int failed =
      posix_spawn(&child, command[0].c_str(), &actions, nullptr, pointers(command).data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(out[1]);
  close(err[1]);
  Outcome outcome;
  bool in_time = true;
  if (!failed) {
    const auto span = std::chrono::duration_cast<std::chrono::steady_clock::duration>(
        std::chrono::duration<double>(seconds));
    in_time = Collector(out[0], err[0]).collect(outcome, std::chrono::steady_clock::now() + span);
    if (!in_time) kill(child, SIGKILL);
  }
  close(out[0]);
  close(err[0]);
  if (failed) cannot_start(command[0], failed);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  outcome.code = !in_time ? 124 : WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return outcome;
}

std::vector<std::string> missing_libraries(const std::string& program) {
  // What ldd does. The variable is for the child alone.
  setenv("LD_TRACE_LOADED_OBJECTS", "1", 1);
  Outcome listed;
  try {
    listed = run_program({program}, 10);
  } catch (const UserError&) {
    // It cannot be started at all: whoever starts it says why.
  }
  unsetenv("LD_TRACE_LOADED_OBJECTS");
  std::vector<std::string> missing;
  std::istringstream lines(listed.output);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t arrow = line.find(" => not found");
    if (arrow == std::string::npos) continue;
    const std::size_t begin = line.find_first_not_of(" \t");
    const std::string name = line.substr(begin, arrow - begin);
    if (std::find(missing.begin(), missing.end(), name) == missing.end()) missing.push_back(name);
  }
  return missing;
}

std::vector<std::pair<std::string, std::string>> thread_environment() {
  if (std::getenv("OMP_WAIT_POLICY") || std::getenv("GOMP_SPINCOUNT")) return {};
  // docs/decisions/0013-short-spin.md
  return {{"GOMP_SPINCOUNT", "10000"}};
}

void become(const std::vector<std::string>& command,
            const std::vector<std::pair<std::string, std::string>>& variables) {
  for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 0);
  execv(command[0].c_str(), pointers(command).data());
  cannot_start(command[0], errno);
}

}  // namespace assay::impl::cli
