#include "impl/cli/launch_ranks.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <optional>
#include <random>
#include <thread>
#include <utility>

#include "impl/cli/program.hpp"
#include "impl/machine/launcher_word.hpp"
#include "impl/machine/launchers.hpp"
#include "impl/machine/listener.hpp"
#include "impl/machine/open_files.hpp"
#include "spec/error.hpp"
#include "spec/text/quantity.hpp"
#include "spec/text/quote.hpp"

namespace assay::impl::cli {
namespace {
using Clock = std::chrono::steady_clock;

[[noreturn]] void cannot_start_ranks(const std::string& what, int reason) {
  throw UserError(ExitCode::io, "cannot start " + what + ": " + std::strerror(reason));
}

/// A socket that listens on the loopback interface, at a port which the system chooses.
std::pair<int, int> listening() {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* any = reinterpret_cast<sockaddr*>(&address);
  socklen_t size = sizeof address;
  const int descriptor = listening_at(any, size, /*again=*/false);
  if (descriptor < 0 || getsockname(descriptor, any, &size) != 0)
    cannot_start_ranks("ranks: no TCP port of the loopback interface", descriptor < 0 ? -descriptor : errno);
  return {descriptor, ntohs(address.sin_port)};
}

std::string random_key() {
  std::random_device random;
  return std::to_string(getpid()) + "-" + std::to_string(random());
}

/// The processes of the ranks, and what becomes of them.
class Ranks {
 public:
  Ranks(const RankJob& job, const std::vector<std::string>& words, Cgroups groups)
      : job_(job), groups_(std::move(groups)), memory_kills_(groups_.memory_kills()) {
    set_up_signals();
    for (const auto& [name, value] : thread_environment()) setenv(name.c_str(), value.c_str(), 0);
    setenv("ASSAY_LAUNCHER", "1", 1);
    setenv("WORLD_SIZE", std::to_string(job.all).c_str(), 1);
    setenv("LOCAL_WORLD_SIZE", std::to_string(job.here).c_str(), 1);
    unsetenv("TORCHELASTIC_USE_AGENT_STORE");
    int listener = -1, port = job.port;
    if (job.host.empty()) {
      std::tie(listener, port) = listening();
      unsetenv("ASSAY_HOST_KEY");
    } else {
      setenv("ASSAY_HOST_KEY", random_key().c_str(), 1);
    }
    setenv("MASTER_ADDR", job.host.empty() ? "127.0.0.1" : job.host.c_str(), 1);
    setenv("MASTER_PORT", std::to_string(port).c_str(), 1);
    try {
      for (std::int64_t r = 0; r < job.here; ++r) start(static_cast<int>(r), r == 0 ? listener : -1, words);
    } catch (...) {
      end_all();
      throw;
    }
    if (listener >= 0) close(listener);
  }

  int wait() {
    while (alive() > 0) {
      siginfo_t info = {};
      const int signal = next_signal(info);
      if (signal == SIGCHLD)
        reap();
      else if (signal > 0)
        asked(signal);
      if (insisted_at_ && Clock::now() - *insisted_at_ > patience) end_all();
      if (ended_badly_at_ && !peers_told_ && Clock::now() - *ended_badly_at_ > patience) {
        peers_told_ = true;
        say(LauncherWord::peer_lost);
      }
    }
    return code();
  }

 private:
  struct Child {
    pid_t process = 0;
    bool alive = true;
    int status = 0;
  };
  static constexpr int insisted = 128 + SIGINT;
  /// What the ranks get to end by themselves: where one has ended, the others mostly know why and say so.
  static constexpr std::chrono::seconds patience{3};
  /// A terminal, a batch system or `timeout` may deliver one request twice, to this process and to its group.
  static constexpr std::chrono::milliseconds one_request{100};

  /// Signals wait until next_signal takes them.
  void set_up_signals() {
    // Where the caller's parent had this signal ignored, there would be no exit code to wait for.
    std::signal(SIGCHLD, SIG_DFL);
    sigemptyset(&awaited_);
    sigaddset(&awaited_, SIGCHLD);
    for (const int signal : stop_signals) {
      struct sigaction now = {};
      sigaction(signal, nullptr, &now);
      const bool by_nohup = signal == SIGHUP && now.sa_handler == SIG_IGN;
      if (!by_nohup) sigaddset(&awaited_, signal);
    }
    sigprocmask(SIG_BLOCK, &awaited_, &before_);
  }

  void start(int number, int listener, const std::vector<std::string>& words) {
    std::vector<char*> pointers;
    pointers.reserve(words.size() + 1);
    for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
    pointers.push_back(nullptr);
    setenv("LOCAL_RANK", std::to_string(number).c_str(), 1);
    if (job_.host.empty())
      setenv("RANK", std::to_string(number).c_str(), 1);
    else
      unsetenv("RANK");
    if (listener >= 0)
      setenv("ASSAY_STORE_LISTENER", std::to_string(listener).c_str(), 1);
    else
      unsetenv("ASSAY_STORE_LISTENER");
    int fault[2];
    if (pipe2(fault, O_CLOEXEC) != 0) cannot_start_ranks(words[0], errno);
    const pid_t launcher = getpid(), child = fork();
    if (child == 0) {
      // Only calls that are safe after a fork.
      prctl(PR_SET_PDEATHSIG, SIGTERM);
      if (getppid() != launcher) _exit(1);
      const int nothing = open("/dev/null", O_RDONLY);
      if (nothing >= 0 && dup2(nothing, STDIN_FILENO) >= 0 && nothing != STDIN_FILENO) close(nothing);
      if (listener >= 0) fcntl(listener, F_SETFD, 0);
      sigprocmask(SIG_SETMASK, &before_, nullptr);
      execv(pointers[0], pointers.data());
      const int reason = errno;
      if (write(fault[1], &reason, sizeof reason) < 0) _exit(126);
      _exit(127);
    }
    int reason = child < 0 ? errno : 0;
    close(fault[1]);
    if (child > 0) {
      children_.push_back({.process = child});
      while (read(fault[0], &reason, sizeof reason) < 0 && errno == EINTR) {
      }
    }
    close(fault[0]);
    if (reason != 0) cannot_start_ranks(words[0], reason);
  }

  std::ptrdiff_t alive() const {
    return std::ranges::count_if(children_, [](const Child& each) { return each.alive; });
  }
  void say(LauncherWord word) const {
    for (const Child& child : children_)
      if (child.alive) say_to(child.process, word);
  }
  void end_all() const {
    for (const Child& child : children_)
      if (child.alive) kill(child.process, SIGKILL);
  }

  /// The next of the awaited signals; 0 after half a second without one.
  int next_signal(siginfo_t& info) const {
    constexpr timespec half_a_second{0, 500'000'000};
    const int signal = sigtimedwait(&awaited_, &info, &half_a_second);
    return std::max(signal, 0);
  }

  void asked(int signal) {
    const auto now = Clock::now();
    if (!asked_at_) {
      asked_at_ = now, asked_by_ = signal;
      return say(LauncherWord::stop);
    }
    // A terminal that goes away says so more than once.
    if (signal == SIGHUP || now - *asked_at_ < one_request) return;
    insist();
  }
  void insist() {
    if (!insisted_at_) insisted_at_ = Clock::now();
    say(LauncherWord::at_once);
  }

  void reap() {
    for (Child& child : children_) {
      if (!child.alive || waitpid(child.process, &child.status, WNOHANG) != child.process) continue;
      child.alive = false;
      const bool well =
          WIFEXITED(child.status) && (WEXITSTATUS(child.status) == 0 ||
                                      WEXITSTATUS(child.status) == static_cast<int>(ExitCode::saved_requeue));
      // It was a rank itself that somebody insisted to.
      if (WIFEXITED(child.status) && WEXITSTATUS(child.status) == insisted) insist();
      if (!well && !ended_badly_at_) {
        ended_badly_at_ = Clock::now();
        first_bad_ = child.status;
        tell_of_signal(child);
      }
    }
  }

  /// The rank itself cannot say it, and whoever is left knows no more than that it is gone.
  void tell_of_signal(const Child& child) const {
    if (!WIFSIGNALED(child.status) || asked_at_) return;
    const auto number = &child - children_.data();
    const int signal = WTERMSIG(child.status);
    std::cerr << "assay: the process of rank " << number << " of this host (" << child.process
              << ") was ended by signal " << signal << " (" << sigdescr_np(signal) << ")"
              << (signal == SIGKILL ? reason_of_kill() : "") << std::endl;
  }
  /// The system counts the processes that it ends, before it ends them.
  std::string reason_of_kill() const {
    const auto now = groups_.memory_kills();
    if (!now || !memory_kills_ || *now <= *memory_kills_)
      return ", from outside, or by the system for want of memory";
    const auto limit = groups_.memory_limit();
    return ": the system killed it for want of memory; lower batch.micro or data.prefetch, set "
           "memory.recompute=block, start fewer ranks on this host, or " +
           (limit ? "raise the memory limit of its cgroup, " + limit->file + " (" +
                        spec::bytes(limit->bytes) + ")"
                  : std::string("end what else takes its memory"));
  }

  int code() const {
    constexpr int lost = static_cast<int>(ExitCode::peer_lost),
                  saved = static_cast<int>(ExitCode::saved_requeue);
    const auto was_cut_off = [](const Child& child) {
      return WIFSIGNALED(child.status) || WEXITSTATUS(child.status) == insisted;
    };
    if (insisted_at_ && std::any_of(children_.begin(), children_.end(), was_cut_off)) return insisted;
    int best = 0;  // of ranks that end because another one did, or as they were asked
    std::optional<int> reason;
    for (const Child& child : children_) {
      if (WIFSIGNALED(child.status)) continue;
      const int each = WEXITSTATUS(child.status);
      if (each == lost || (each == saved && best == 0)) best = each;
      if (each != 0 && each != lost && each != saved && each < 128 && !reason) reason = each;
    }
    if (!ended_badly_at_) return best;
    // A rank that a signal ended is a lost one, unless it was asked to stop and knows no other way. A shell
    // around it counts its signal in the same way as shells do.
    const int signal = WIFSIGNALED(first_bad_)         ? WTERMSIG(first_bad_)
                       : WEXITSTATUS(first_bad_) > 128 ? WEXITSTATUS(first_bad_) - 128
                                                       : 0;
    if (signal != 0) return asked_by_ && (signal == SIGTERM || signal == asked_by_) ? 128 + asked_by_ : lost;
    return WEXITSTATUS(first_bad_) != lost ? WEXITSTATUS(first_bad_) : reason.value_or(lost);
  }

  const RankJob& job_;
  const Cgroups groups_;
  const std::optional<std::int64_t> memory_kills_;  ///< before the ranks were started
  sigset_t awaited_ = {}, before_ = {};
  std::vector<Child> children_;
  std::optional<Clock::time_point> asked_at_, insisted_at_, ended_badly_at_;
  bool peers_told_ = false;
  int asked_by_ = 0, first_bad_ = 0;
};

std::int64_t counted(const char* name) {
  const char* text = std::getenv(name);
  return text ? std::atoll(text) : -1;
}
}  // namespace

std::vector<Option> rank_options(const std::string& ranks) {
  return {{"ranks", "", "N", ranks},
          {"of", "", "TOTAL", "ranks of all hosts together; with --rendezvous, the same command once a host"},
          {"rendezvous", "", "HOST:PORT", "where the hosts meet: an address of one of them, a free port"}};
}

RankJob rank_job(const Arguments& arguments, std::int64_t ranks) {
  RankJob job{.here = arguments.positive("ranks", ranks)};
  job.all = arguments.positive("of", job.here);
  const std::string where = arguments.value("rendezvous", "");
  if (job.all < job.here)
    throw UserError(ExitCode::usage, "--of " + std::to_string(job.all) +
                                         " counts the ranks of all hosts, and --ranks " +
                                         std::to_string(job.here) + " are started here alone");
  if (where.empty()) {
    if (arguments.has("of"))
      throw UserError(ExitCode::usage,
                      "--of " + std::to_string(job.all) +
                          " means several hosts: say by --rendezvous HOST:PORT where they meet, an address "
                          "of one of them and a free port");
    return job;
  }
  if (!arguments.has("of"))
    throw UserError(ExitCode::usage,
                    "--rendezvous " + where +
                        " means several hosts: say by --of TOTAL how many ranks they have together");
  const std::size_t colon = where.rfind(':');
  job.host = where.substr(0, colon);
  if (job.host.starts_with('[') && job.host.ends_with(']'))
    job.host = job.host.substr(1, job.host.size() - 2);
  const char* end = where.data() + where.size();
  const auto read = colon == std::string::npos ? std::from_chars_result{end, std::errc::invalid_argument}
                                               : std::from_chars(where.data() + colon + 1, end, job.port);
  if (job.host.empty() || read.ec != std::errc() || read.ptr != end || job.port < 1 || job.port > 65535)
    throw UserError(ExitCode::usage,
                    "--rendezvous " + spec::quote(where) + ": give HOST:PORT, as in node0:29500");
  return job;
}

std::int64_t rank_in_launch() {
  for (const LauncherVariables& each : launchers)
    if (counted(each.size) > 1) return counted(each.rank);
  return -1;
}

int refuse_ranks_within_launch(const std::string& why) {
  if (rank_in_launch() <= 0) throw UserError(ExitCode::usage, why);
  // A launcher ends the others as soon as one has failed.
  std::this_thread::sleep_for(std::chrono::seconds(1));
  return static_cast<int>(ExitCode::usage);
}

int launch_ranks(const RankJob& job, const std::vector<std::string>& words, Cgroups groups) {
  if (job.host.empty() && rank_in_launch() >= 0)
    return refuse_ranks_within_launch(
        "--ranks " + std::to_string(job.here) +
        " starts ranks, and a launcher has started this process as one of several already: do without one of "
        "them, or, with one process a host, say by --of and --rendezvous that they belong together");
  make_room_for_connections(job.all);  // which the ranks inherit; refused once, not by each
  return Ranks(job, words, std::move(groups)).wait();
}

}  // namespace assay::impl::cli
