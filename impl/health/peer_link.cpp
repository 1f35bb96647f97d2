#include "impl/health/peer_link.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <random>
#include <sstream>

#include "spec/error.hpp"

namespace assay::impl {

namespace {
using Clock = std::chrono::steady_clock;
constexpr int start_seconds = 20;  ///< until all hosts have found rank 0

enum class Kind : std::int32_t { hello = 1, row, verdict };

struct Head {
  PeerLink::Token token;
  Kind kind;
  std::int32_t rank;   ///< that speaks; of a verdict: that is lost
  std::int32_t bytes;  ///< that follow
};
constexpr std::int32_t most_bytes = 4096;

std::string framed(const PeerLink::Token& token, Kind kind, int rank, const void* body, std::size_t bytes) {
  const Head head{token, kind, rank, static_cast<std::int32_t>(bytes)};
  std::string out(reinterpret_cast<const char*>(&head), sizeof head);
  return out.append(static_cast<const char*>(body), bytes);
}

/// Numeric addresses of this host that another host may reach, MASTER_ADDR's first where it is one of them.
std::string own_addresses() {
  std::string text;
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return text;
  for (const ifaddrs* each = all; each; each = each->ifa_next) {
    if (!each->ifa_addr || each->ifa_addr->sa_family != AF_INET || (each->ifa_flags & IFF_LOOPBACK) ||
        !(each->ifa_flags & IFF_UP))
      continue;
    char name[INET_ADDRSTRLEN] = {};
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(each->ifa_addr)->sin_addr, name, sizeof name);
    text += std::string(name) + " ";
  }
  freeifaddrs(all);
  if (const char* given = std::getenv("MASTER_ADDR")) text = std::string(given) + " " + text;
  return text;
}

void prepare(int socket) {
  const int yes = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  fcntl(socket, F_SETFL, fcntl(socket, F_GETFL) | O_NONBLOCK);
}

/// A socket that is connected, or -1.
int connected(const std::string& host, const std::string& port, int milliseconds) {
  addrinfo wanted = {}, *found = nullptr;
  wanted.ai_family = AF_INET, wanted.ai_socktype = SOCK_STREAM;
  if (getaddrinfo(host.c_str(), port.c_str(), &wanted, &found) != 0) return -1;
  const int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (descriptor >= 0) prepare(descriptor);
  bool ready = descriptor >= 0;
  if (ready && connect(descriptor, found->ai_addr, found->ai_addrlen) != 0) {
    pollfd wait{descriptor, POLLOUT, 0};
    int fault = errno == EINPROGRESS ? 0 : errno;
    socklen_t length = sizeof fault;
    ready = fault == 0 && poll(&wait, 1, milliseconds) == 1 &&
            getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &fault, &length) == 0 && fault == 0;
  }
  freeaddrinfo(found);
  if (!ready && descriptor >= 0) close(descriptor);
  return ready ? descriptor : -1;
}
}  // namespace

struct PeerLink::Peer {
  int socket = -1;
  int rank = -1;  ///< once it has said so
  Clock::time_point since = Clock::now();
  std::string in{}, out{};
};

PeerLink::PeerLink(Communicator& communicator, bool near)
    : hub_(communicator.rank() == 0), rank_(communicator.rank()) {
  std::string door;
  if (hub_) {
    std::random_device random;
    for (char& byte : token_) byte = static_cast<char>(random());
    door = listen();
  }
  const std::string token(token_.begin(), token_.end());
  const auto doors = communicator.all_gather(hub_ ? token + door : std::string(near ? "near" : "far"));
  int far = 0;
  for (std::size_t r = 1; r < doors.size(); ++r) far += doors[r] == "far";
  doors[0].copy(token_.data(), token_.size());
  std::string fault;
  if (hub_)
    accept_all(far);
  else if (!near)
    fault = connect(doors[0].substr(token_.size()), communicator.rank());
  const auto faults = communicator.all_gather(fault);
  for (std::size_t r = 0; r < faults.size(); ++r)
    if (!faults[r].empty()) throw AgreedError(ExitCode::usage, "rank " + std::to_string(r) + " " + faults[r]);
}

PeerLink::~PeerLink() {
  for (auto& peer : peers_) close_peer(*peer);
  if (listener_ >= 0) close(listener_);
}

/// "PORT ADDRESS ADDRESS ..."
std::string PeerLink::listen() {
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_in any = {};
  any.sin_family = AF_INET;
  socklen_t length = sizeof any;
  if (listener_ < 0 || bind(listener_, reinterpret_cast<const sockaddr*>(&any), length) != 0 ||
      ::listen(listener_, 4096) != 0 ||
      getsockname(listener_, reinterpret_cast<sockaddr*>(&any), &length) != 0)
    return "0";
  return std::to_string(ntohs(any.sin_port)) + " " + own_addresses();
}

void PeerLink::accept_all(int wanted) {
  const auto until = Clock::now() + std::chrono::seconds(start_seconds);
  while (static_cast<int>(seen_.size()) < wanted && Clock::now() < until) poll_once(100);
  flush(1000);  // the last one waits for its answer
}

std::string PeerLink::connect(const std::string& addresses, int rank) {
  std::istringstream words(addresses);
  std::string port, tried;
  words >> port;
  for (std::string host; words >> host;) {
    tried += (tried.empty() ? "" : ", ") + host;
    auto peer = std::make_unique<Peer>();
    peer->socket = connected(host, port, 2000);
    if (peer->socket < 0) continue;
    peer->out = framed(token_, Kind::hello, rank, "", 0);
    peers_.clear();
    peers_.push_back(std::move(peer));
    // Another host may have a network of the same numbers: only rank 0 answers with the token.
    for (int turn = 0; turn < 30 && peers_[0]->socket >= 0 && seen_.empty(); ++turn) poll_once(100);
    if (!seen_.empty()) return "";
    close_peer(*peers_[0]);
  }
  peers_.clear();
  return "cannot reach rank 0's watch at port " + port + " of any of its addresses (" + tried +
         "): let the hosts of a job reach each other's TCP ports, or set MASTER_ADDR to an address of rank 0 "
         "that all of them reach";
}

void PeerLink::turn(const RowView& mine, int milliseconds) {
  for (auto& peer : peers_)
    // Who takes nothing is stopped: what waits for it need not grow.
    if (peer->rank >= 0 && peer->out.size() < 16 * sizeof mine)
      peer->out += framed(token_, Kind::row, rank_, &mine, sizeof mine);
  // A socket that takes what is written does not end the turn.
  const auto until = Clock::now() + std::chrono::milliseconds(milliseconds);
  for (auto left = until - Clock::now(); left.count() > 0 && !received_; left = until - Clock::now())
    poll_once(static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(left).count()));
}

void PeerLink::send(const Verdict& verdict) {
  for (auto& peer : peers_)
    if (peer->rank >= 0)
      peer->out += framed(token_, Kind::verdict, verdict.rank, verdict.text.data(),
                          std::min<std::size_t>(verdict.text.size(), most_bytes));
  poll_once(0);
}

std::optional<Verdict> PeerLink::received() { return std::exchange(received_, std::nullopt); }

void PeerLink::flush(int milliseconds) {
  const auto until = Clock::now() + std::chrono::milliseconds(milliseconds);
  const auto waiting = [this] {
    for (const auto& peer : peers_)
      if (peer->socket >= 0 && !peer->out.empty()) return true;
    return false;
  };
  while (waiting() && Clock::now() < until) poll_once(20);
}

void PeerLink::poll_once(int milliseconds) {
  std::vector<pollfd> ends;
  std::vector<Peer*> of;
  for (auto& peer : peers_) {
    if (peer->socket < 0) continue;
    const int events = POLLIN | (peer->out.empty() ? 0 : POLLOUT);
    ends.push_back({peer->socket, static_cast<short>(events), 0});
    of.push_back(peer.get());
  }
  if (listener_ >= 0) ends.push_back({listener_, POLLIN, 0});
  if (poll(ends.data(), ends.size(), milliseconds) <= 0) return;
  for (std::size_t i = 0; i < of.size(); ++i) {
    if (ends[i].revents & POLLOUT) write(*of[i]);
    if (of[i]->socket >= 0 && (ends[i].revents & (POLLIN | POLLHUP | POLLERR))) read(*of[i]);
  }
  if (listener_ >= 0 && ends.back().revents) take_new();
  for (auto& peer : peers_)  // a stranger that says nothing
    if (hub_ && peer->rank < 0 && Clock::now() - peer->since > std::chrono::seconds(5)) close_peer(*peer);
  std::erase_if(peers_, [](const auto& peer) { return peer->socket < 0; });
}

void PeerLink::take_new() {
  constexpr std::size_t most = 8192;  ///< connections, strangers included
  for (int got; (got = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC)) >= 0;) {
    if (peers_.size() >= most) {
      close(got);
      return;
    }
    prepare(got);
    peers_.push_back(std::make_unique<Peer>());
    peers_.back()->socket = got;
  }
}

void PeerLink::write(Peer& peer) {
  const ssize_t sent = ::send(peer.socket, peer.out.data(), peer.out.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent > 0)
    peer.out.erase(0, static_cast<std::size_t>(sent));
  else if (sent < 0 && errno != EAGAIN && errno != EINTR)
    close_peer(peer);
}

void PeerLink::read(Peer& peer) {
  char block[8192];
  const ssize_t got = recv(peer.socket, block, sizeof block, MSG_DONTWAIT);
  if (got > 0) {
    peer.in.append(block, static_cast<std::size_t>(got));
    return interpret(peer);
  }
  if (got == 0 || (errno != EAGAIN && errno != EINTR)) close_peer(peer);
}

void PeerLink::interpret(Peer& peer) {
  for (Head head; peer.in.size() >= sizeof head;) {
    std::memcpy(&head, peer.in.data(), sizeof head);
    if (head.token != token_ || head.bytes < 0 || head.bytes > most_bytes) return close_peer(peer);
    const auto length = sizeof head + static_cast<std::size_t>(head.bytes);
    if (peer.in.size() < length) return;
    const std::string body = peer.in.substr(sizeof head, static_cast<std::size_t>(head.bytes));
    peer.in.erase(0, length);
    if (head.kind == Kind::hello) {
      peer.rank = head.rank;
      SeenRank& seen = seen_[head.rank];
      seen.visible = true;
      seen.row.standing = Standing::running;
      if (hub_) peer.out += framed(token_, Kind::hello, rank_, "", 0);
    } else if (head.kind == Kind::row && body.size() == sizeof(RowView) && peer.rank >= 0) {
      std::memcpy(&seen_[peer.rank].row, body.data(), body.size());
    } else if (head.kind == Kind::verdict) {
      received_ = Verdict{head.rank, body};
    }
  }
}

void PeerLink::close_peer(Peer& peer) {
  if (peer.socket >= 0) close(peer.socket);
  peer.socket = -1;
  if (peer.rank >= 0) seen_[peer.rank].gone = true;
}

}  // namespace assay::impl
