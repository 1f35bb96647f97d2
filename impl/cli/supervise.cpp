#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "impl/cli/program.hpp"
#include "spec/error.hpp"

namespace assay::impl::cli {
namespace {

constexpr int stop_signals[] = {SIGINT, SIGTERM, SIGHUP};
volatile std::sig_atomic_t launcher = 0;  // process id
volatile std::sig_atomic_t requests = 0;

void pass_on(int signal) {
  if (signal == SIGHUP && requests > 0) return;  // a terminal that goes away says so more than once
  requests = requests + 1;
  if (launcher > 0) kill(static_cast<pid_t>(launcher), requests == 1 ? SIGUSR1 : SIGTERM);
}

/// What the child does before it becomes the launcher; only calls that are safe after a fork.
void prepare_child() {
  setpgid(0, 0);  // Ctrl-C must reach this process alone, which passes it on in its own way
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  const int nothing = open("/dev/null", O_RDONLY);
  if (nothing >= 0) dup2(nothing, STDIN_FILENO);
}

/// Processes whose parent this one is: once the launcher is gone, also those that it left behind.
std::vector<pid_t> children() {
  std::vector<pid_t> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream file(entry.path() / "stat");
    std::string line;
    std::getline(file, line);
    const std::size_t after_name = line.rfind(')');
    char state = 0;
    int parent = 0;
    if (after_name != std::string::npos &&
        std::sscanf(line.c_str() + after_name + 1, " %c %d", &state, &parent) == 2 && parent == getpid())
      found.push_back(static_cast<pid_t>(std::stol(name)));
  }
  return found;
}

/// No rank outlives the job: those that a launcher left, because it was killed itself, or because they are
/// stopped, have two seconds to end by themselves.
void end_orphans() {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  for (;;) {
    while (waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    const std::vector<pid_t> left = children();
    if (left.empty()) return;
    if (std::chrono::steady_clock::now() >= until)
      for (const pid_t each : left) kill(each, SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

}  // namespace

int stops_passed_on() { return static_cast<int>(requests); }

int supervise(const std::vector<std::string>& command,
              const std::vector<std::pair<std::string, std::string>>& variables) {
  for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 0);
  std::vector<char*> words;
  words.reserve(command.size() + 1);
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  // A stop that comes before the launcher is known to pass_on waits, or it would end this process and lose
  // the save.
  sigset_t stops, before;
  sigemptyset(&stops);
  for (const int signal : stop_signals) sigaddset(&stops, signal);
  sigprocmask(SIG_BLOCK, &stops, &before);
  // Where the caller's parent had this signal ignored, waitpid would have no exit code to give: 0 for every
  // failure.
  std::signal(SIGCHLD, SIG_DFL);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  const pid_t child = fork();
  if (child == 0) {
    prepare_child();
    sigprocmask(SIG_SETMASK, &before, nullptr);
    execv(words[0], words.data());
    _exit(127);
  }
  const int reason = errno;
  launcher = child;
  struct sigaction action = {};
  action.sa_handler = pass_on;
  for (const int signal : stop_signals) {
    struct sigaction now = {};
    sigaction(signal, nullptr, &now);
    const bool by_nohup = signal == SIGHUP && now.sa_handler == SIG_IGN;
    if (child > 0 && !by_nohup) sigaction(signal, &action, nullptr);
  }
  sigprocmask(SIG_SETMASK, &before, nullptr);
  if (child < 0) throw UserError(ExitCode::io, "cannot start " + command[0] + ": " + std::strerror(reason));
  int status = 0;
  pid_t ended = 0;
  while ((ended = waitpid(child, &status, 0)) < 0 && errno == EINTR) {
  }
  launcher = 0;
  if (ended < 0)
    throw UserError(ExitCode::io, "cannot learn how " + command[0] + " ended: " + std::strerror(errno));
  end_orphans();
  prctl(PR_SET_CHILD_SUBREAPER, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
    throw UserError(ExitCode::io, "cannot start " + command[0] + ", or what it was to start");
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace assay::impl::cli
