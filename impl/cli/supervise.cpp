#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "impl/cli/program.hpp"
#include "spec/error.hpp"

namespace assay::impl::cli {
namespace {

constexpr int stop_signals[] = {SIGINT, SIGTERM};
volatile std::sig_atomic_t launcher = 0;  // process id
volatile std::sig_atomic_t requests = 0;

void pass_on(int) {
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

}  // namespace

int supervise(const std::vector<std::string>& command,
              const std::vector<std::pair<std::string, std::string>>& variables) {
  for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 0);
  std::vector<char*> words;
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
  for (const int signal : stop_signals)
    if (child > 0) sigaction(signal, &action, nullptr);
  sigprocmask(SIG_SETMASK, &before, nullptr);
  if (child < 0) throw UserError(ExitCode::io, "cannot start " + command[0] + ": " + std::strerror(reason));
  int status = 0;
  pid_t ended = 0;
  while ((ended = waitpid(child, &status, 0)) < 0 && errno == EINTR) {
  }
  launcher = 0;
  if (ended < 0)
    throw UserError(ExitCode::io, "cannot learn how " + command[0] + " ended: " + std::strerror(errno));
  if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
    throw UserError(ExitCode::io, "cannot start " + command[0] + ", or what it was to start");
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace assay::impl::cli
