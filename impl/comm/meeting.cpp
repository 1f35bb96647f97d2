#include "impl/comm/meeting.hpp"

#include <arpa/inet.h>
#include <c10/util/Logging.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <thread>
#include <utility>
#include <vector>

#include "impl/machine/host_name.hpp"
#include "impl/machine/listener.hpp"
#include "impl/machine/open_files.hpp"
#include "spec/error.hpp"
#include "spec/text/quote.hpp"
#include "spec/text/ranks.hpp"

namespace assay::impl {

namespace {
using Clock = std::chrono::steady_clock;
constexpr auto poll = std::chrono::milliseconds(20);

/// Of an interface of some host, IPv4 or IPv6.
struct Address {
  sockaddr_storage bytes{};
  socklen_t size = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&bytes); }
  bool is_loopback() const {
    if (bytes.ss_family == AF_INET)
      return ntohl(reinterpret_cast<const sockaddr_in*>(&bytes)->sin_addr.s_addr) >> 24 == 127;
    return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(&bytes)->sin6_addr);
  }
  std::string text() const {
    char name[NI_MAXHOST] = {};
    getnameinfo(get(), size, name, sizeof name, nullptr, 0, NI_NUMERICHOST);
    return name;
  }
};

Address address_from(const sockaddr* from, socklen_t size) {
  Address address{.size = size};
  std::memcpy(&address.bytes, from, size);
  return address;
}

/// What `host` is resolved to, as an address of `port`; empty where it is not known here.
std::vector<Address> addresses_of(const std::string& host, int port) {
  addrinfo hints = {}, *all = nullptr;
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  if (getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &all) != 0) return {};
  std::vector<Address> found;
  for (const addrinfo* each = all; each; each = each->ai_next)
    found.push_back(address_from(each->ai_addr, each->ai_addrlen));
  freeaddrinfo(all);
  return found;
}

bool is_literal(const std::string& host) {
  in6_addr any = {};
  return inet_pton(AF_INET, host.c_str(), &any) == 1 || inet_pton(AF_INET6, host.c_str(), &any) == 1;
}

/// Where the store of `launch` listens: the address that it names, and no other. This host's own name, where
/// that leads to itself alone (as Debian has it), is another address elsewhere: then all interfaces do.
std::vector<Address> places_to_listen(const Launch& launch) {
  std::vector<Address> named = addresses_of(launch.host, launch.port);
  if (launch.one_host || is_literal(launch.host)) return named;
  std::vector<Address> leading_out = named;
  std::erase_if(leading_out, [](const Address& each) { return each.is_loopback(); });
  if (!leading_out.empty()) return leading_out;
  const std::string own = host_name(), short_own = own.substr(0, own.find('.'));
  const bool of_this_host = launch.host == own || launch.host.substr(0, launch.host.find('.')) == short_own;
  return of_this_host ? addresses_of("0.0.0.0", launch.port) : named;
}

/// A socket that listens at one of them; -1 where none is this host's, or `in_use`.
int listening(const std::vector<Address>& places, bool& in_use) {
  in_use = false;
  for (const Address& place : places) {
    const int descriptor = listening_at(place.get(), place.size, /*again=*/true);
    if (descriptor >= 0) return descriptor;
    in_use = in_use || descriptor == -EADDRINUSE;
  }
  return -1;
}

/// The address from which this host reaches `host`, which is where other hosts reach this one; of the serving
/// host, whose own name may lead to itself alone, its first address that leads out.
std::string own_address(const std::string& host, int port) {
  for (const Address& there : addresses_of(host, port)) {
    const int descriptor = socket(there.bytes.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    Address here{.size = sizeof(sockaddr_storage)};
    const bool known = descriptor >= 0 && connect(descriptor, there.get(), there.size) == 0 &&
                       getsockname(descriptor, reinterpret_cast<sockaddr*>(&here.bytes), &here.size) == 0;
    if (descriptor >= 0) close(descriptor);
    if (known && !here.is_loopback()) return here.text();
  }
  std::string found = "127.0.0.1";
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return found;
  for (const ifaddrs* each = all; each; each = each->ifa_next)
    if (each->ifa_addr && each->ifa_addr->sa_family == AF_INET && (each->ifa_flags & IFF_UP) &&
        !(each->ifa_flags & IFF_LOOPBACK)) {
      found = address_from(each->ifa_addr, sizeof(sockaddr_in)).text();
      break;
    }
  freeifaddrs(all);
  return found;
}

/// Processes with the same one reach each other by the loopback interface: containers of a host may not.
std::string network_space() {
  struct stat status = {};
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  const bool known = stat("/proc/self/ns/net", &status) == 0;
  return boot + ":" + std::to_string(known ? status.st_ino : 0);
}

/// How long others are waited for: `patience`, and no more than a few seconds once this process was asked to
/// stop, in which those that are on their way still come.
class Patience {
 public:
  Patience(std::chrono::seconds patience, std::function<bool()> stopped)
      : seconds_(patience), until_(Clock::now() + patience), stopped_(std::move(stopped)) {}

  std::chrono::seconds seconds() const { return seconds_; }
  bool is_over(std::chrono::seconds more = {}) {
    constexpr std::chrono::seconds once_stopped{3};
    if (!stop_ && stopped_ && stopped_()) stop_ = Clock::now() + once_stopped;
    return Clock::now() >= (stop_ ? std::min(*stop_, until_) : until_ + more);
  }
  /// Of a wait that is over.
  bool was_stopped() const { return stop_.has_value(); }

 private:
  std::chrono::seconds seconds_;
  Clock::time_point until_;
  std::function<bool()> stopped_;
  std::optional<Clock::time_point> stop_;
};

constexpr const char* stopped_text =
    " was asked to stop while the job's processes met: nothing was trained, and nothing is lost";

/// What the processes say to each other in the store, under keys of the start.
class Meeting {
 public:
  /// `serves`: the store ends with this process.
  Meeting(c10d::Store& store, const Launch& launch, Patience& patience, bool serves)
      : store_(store), launch_(launch), rank_(launch.rank), patience_(patience), serves_(serves) {}

  /// The rank of this process, which had none: the hosts number theirs.
  int numbered() {
    if (launch_.local_rank == 0) {
      const std::int64_t place = store_.add(launch_.keys + "start/hosts", 1);
      say(key("host", place), launch_.host_key + " " + std::to_string(launch_.local_size) + " " +
                                  (serves_ ? "" : host_name()) + " ");
    }
    if (serves_) number_hosts();
    const std::string first = awaited("first" + launch_.host_key);
    if (first.starts_with("!")) refuse(first.substr(1));
    rank_ = std::stoi(first) + launch_.local_rank;
    return rank_;
  }

  /// Whether all are on one host.
  bool meet() {
    if (store_.add(launch_.keys + "start/claim" + std::to_string(rank_), 1) > 1) {
      const std::string twice = "rank " + std::to_string(rank_) + " has come twice: two launchers use " +
                                launch_.host + ":" + std::to_string(launch_.port) +
                                ", or start the same rank; give each job a port of its own";
      say("fault", fault(ExitCode::usage, twice));
      throw UserError(ExitCode::usage, twice);
    }
    say(key("here", rank_), std::to_string(launch_.size) + " " + network_space());
    if (rank_ == 0) say("verdict", look_for_all());
    const std::string verdict = awaited("verdict");
    if (verdict.starts_with("complete")) return verdict == "complete on one host";
    refuse(verdict);
  }

 private:
  static std::string key(const std::string& what, std::int64_t number) {
    return what + std::to_string(number);
  }
  void say(const std::string& what, const std::string& text) {
    store_.set(launch_.keys + "start/" + what, std::vector<std::uint8_t>(text.begin(), text.end()));
  }
  bool is_said(const std::string& what) { return store_.check({launch_.keys + "start/" + what}); }
  std::string heard(const std::string& what) {
    const auto bytes = store_.get(launch_.keys + "start/" + what);
    return {bytes.begin(), bytes.end()};
  }
  /// What the serving process says once its own patience is over, at the latest.
  std::string awaited(const std::string& what) {
    while (!is_said(what)) {
      if (patience_.is_over(std::chrono::seconds(30))) {
        if (patience_.was_stopped()) throw UserError(ExitCode::saved_requeue, name() + stopped_text);
        throw UserError(ExitCode::peer_lost,
                        name() + " waited for the process that serves the job's store at " + launch_.host +
                            ":" + std::to_string(launch_.port) + ", which said nothing; look at that one");
      }
      try {
        store_.wait({launch_.keys + "start/" + what}, std::chrono::seconds(1));
      } catch (const std::exception&) {
        // Not yet; is_said fails where the store is gone.
      }
    }
    return heard(what);
  }
  std::string name() const { return rank_ < 0 ? "host " + host_name() : "rank " + std::to_string(rank_); }
  static std::string fault(ExitCode code, const std::string& why) {
    return std::to_string(static_cast<int>(code)) + " " + why;
  }

  /// `fault`: a code and why. The store ends with the process that serves it, and the others, `readers_` in
  /// all, have to read it.
  [[noreturn]] void refuse(const std::string& fault) {
    const std::size_t blank = fault.find(' ');
    const auto code = static_cast<ExitCode>(std::stoi(fault.substr(0, blank)));
    const std::string why = fault.substr(blank + 1);
    const std::string read = launch_.keys + "start/read";
    store_.add(read, 1);
    const auto until = Clock::now() + std::chrono::seconds(2);
    while (serves_ && Clock::now() < until && store_.add(read, 0) < readers_)
      std::this_thread::sleep_for(poll);
    throw UserError(code, why);
  }

  /// Gives each host the number of its first rank, or, behind "!", why there is none.
  void number_hosts() {
    struct Host {
      std::string key{};
      int ranks = 0;
      std::string name{};  ///< of the serving host empty, so that it comes first
    };
    std::vector<Host> hosts;
    int all = 0;
    while (all < launch_.size && !patience_.is_over()) {
      const std::string next = key("host", std::ssize(hosts) + 1);
      if (!is_said(next)) {
        std::this_thread::sleep_for(poll);
        continue;
      }
      std::istringstream words(heard(next));
      Host& host = hosts.emplace_back();
      words >> host.key >> host.ranks >> host.name;
      all += host.ranks;
    }
    std::stable_sort(hosts.begin(), hosts.end(),
                     [](const Host& a, const Host& b) { return a.name < b.name; });
    std::string why;
    readers_ = std::max(all, readers_);
    if (all < launch_.size && patience_.was_stopped()) {
      why = name() + stopped_text;
    } else if (all != launch_.size) {
      why = std::to_string(std::ssize(hosts)) + (hosts.size() == 1 ? " host brings " : " hosts bring ") +
            spec::ranks_text(all);
      for (const Host& host : hosts)
        why += (&host == &hosts.front() ? " (" : ", ") + (host.name.empty() ? host_name() : host.name) +
               ": " + std::to_string(host.ranks);
      why += "), and the job has " + std::to_string(launch_.size) + " (--of)" +
             (all < launch_.size
                  ? ", which did not come within " + std::to_string(patience_.seconds().count()) + " s"
                  : "") +
             ": start `assay train --ranks N --of " + std::to_string(launch_.size) + " --rendezvous " +
             launch_.host + ":" + std::to_string(launch_.port) + "` once on each host";
    }
    const ExitCode code = all >= launch_.size       ? ExitCode::usage
                          : patience_.was_stopped() ? ExitCode::saved_requeue
                                                    : ExitCode::peer_lost;
    for (int first = 0; const Host& host : hosts) {
      say("first" + host.key, why.empty() ? std::to_string(first) : "!" + fault(code, why));
      first += host.ranks;
    }
  }

  /// "complete", with where they are, or the fault.
  std::string look_for_all() {
    std::vector<int> missing(static_cast<std::size_t>(launch_.size));
    for (int r = 0; r < launch_.size; ++r) missing[static_cast<std::size_t>(r)] = r;
    const std::string own_space = network_space();
    bool one_host = true;
    for (;;) {
      if (is_said("fault")) return heard("fault");
      std::string other;
      std::erase_if(missing, [&](int rank) {
        if (!is_said(key("here", rank))) return false;
        std::istringstream words(heard(key("here", rank)));
        std::string size, space;
        words >> size >> space;
        one_host = one_host && space == own_space;
        if (other.empty() && size != std::to_string(launch_.size))
          other = "rank " + std::to_string(rank) + " was started as one of " + size +
                  " ranks, rank 0 as one of " + std::to_string(launch_.size) +
                  "; start all of them with the same number";
        return true;
      });
      if (!other.empty()) return fault(ExitCode::usage, other);
      if (missing.empty()) return one_host ? "complete on one host" : "complete";
      if (patience_.is_over()) break;
      std::this_thread::sleep_for(poll);
    }
    if (patience_.was_stopped()) return fault(ExitCode::saved_requeue, name() + stopped_text);
    std::string names;
    for (std::size_t i = 0; i < missing.size() && i < 16; ++i)
      names += (i ? ", " : "") + std::to_string(missing[i]);
    if (missing.size() > 16) names += ", ...";
    return fault(ExitCode::peer_lost, "rank 0 waited " + std::to_string(patience_.seconds().count()) +
                                          " s for " + spec::ranks_text(launch_.size) + ", and " +
                                          std::to_string(missing.size()) + " have not come: " + names +
                                          "; were they started, and do they reach " + launch_.host + ":" +
                                          std::to_string(launch_.port) + "?");
  }

  c10d::Store& store_;
  const Launch& launch_;
  int rank_;
  Patience& patience_;
  const bool serves_;
  int readers_ = launch_.size;
};

/// A connection that fails or ends is an exception here; c10d would also print it, with its stack.
void silence_c10d() { FLAGS_caffe2_log_level = c10::GLOG_FATAL; }

/// Without the stack that c10d puts behind it.
std::string first_line(const std::exception& error) {
  const std::string text = error.what();
  return text.substr(0, text.find('\n'));
}

c10d::TCPStoreOptions options_of(std::uint16_t port, std::chrono::seconds patience) {
  c10d::TCPStoreOptions options;
  options.port = port;
  options.waitWorkers = false;
  options.timeout = patience;
  return options;
}

/// The socket on which this process serves the store; -1: another one does.
int listener_of(const Launch& launch) {
  if (launch.listener >= 0) return launch.listener;
  const bool may_serve = launch.rank == 0 || (launch.rank < 0 && launch.local_rank == 0);
  if (launch.served || !may_serve) return -1;
  bool in_use = false;
  const int descriptor = listening(places_to_listen(launch), in_use);
  // Of hosts without numbers one has this address, and perhaps several launchers.
  if (descriptor >= 0 || launch.rank < 0) return descriptor;
  throw UserError(ExitCode::usage, "rank 0 cannot serve the job's store at " + launch.host + ":" +
                                       std::to_string(launch.port) +
                                       (in_use ? ": another program listens there; give each job a port of "
                                                 "its own (MASTER_PORT)"
                                               : ": this is no address of its host (MASTER_ADDR)"));
}
}  // namespace

c10::intrusive_ptr<c10d::TCPStore> connect_to_store(const std::string& host, std::uint16_t port,
                                                    std::chrono::seconds patience) {
  silence_c10d();
  return c10::make_intrusive<c10d::TCPStore>(host, options_of(port, patience));
}

namespace {
/// The name of a host that has just started may take seconds to be known. Errors: UserError(usage).
void require_known(const Launch& launch, Patience patience) {
  while (addresses_of(launch.host, launch.port).empty()) {
    if (patience.is_over())
      throw UserError(ExitCode::usage, spec::quote(launch.host) +
                                           " is no host that is known here: give the name or the address of "
                                           "one of the job's (--rendezvous HOST:PORT, or MASTER_ADDR)");
    std::this_thread::sleep_for(poll);
  }
}

/// The job's store; one that is not served yet is looked for again and again.
c10::intrusive_ptr<c10d::TCPStore> store_of(const Launch& launch, int listener, Patience patience) {
  const bool serves = listener >= 0;
  const auto at_once = std::min(patience.seconds(), std::chrono::seconds(serves ? 3600 : 3));
  auto options = options_of(static_cast<std::uint16_t>(launch.port), at_once);
  if (serves) options.isServer = true, options.masterListenFd = listener;  // the store closes it
  for (;;) {
    try {
      auto store = c10::make_intrusive<c10d::TCPStore>(launch.host, options);
      store->setTimeout(patience.seconds());
      return store;
    } catch (const std::exception&) {
      if (serves || patience.is_over()) throw;
    }
  }
}
}  // namespace

Met meet(const Launch& launch, std::chrono::seconds patience, const std::function<bool()>& stopped) {
  make_room_for_connections(launch.size);
  silence_c10d();
  const std::string name = launch.rank < 0 ? "host " + host_name() : "rank " + std::to_string(launch.rank);
  try {
    require_known(launch, {std::min(patience, std::chrono::seconds(10)), stopped});
    const int listener = listener_of(launch);
    Met met{.store = store_of(launch, listener, {patience, stopped}), .rank = launch.rank};
    Patience with_others(patience, stopped);
    Meeting meeting(*met.store, launch, with_others, listener >= 0);
    if (launch.rank < 0) met.rank = meeting.numbered();
    met.address = meeting.meet() ? loopback : own_address(launch.host, launch.port);
    return met;
  } catch (const UserError&) {
    throw;
  } catch (const std::exception& error) {
    if (stopped && stopped()) throw UserError(ExitCode::saved_requeue, name + stopped_text);
    throw UserError(ExitCode::peer_lost, name + " cannot reach the job's store at " + launch.host + ":" +
                                             std::to_string(launch.port) + ": " + first_line(error) +
                                             "; look at this address, and at the process that serves it");
  }
}

}  // namespace assay::impl
