#include "impl/comm/job_store.hpp"

#include <arpa/inet.h>
#include <c10/util/Logging.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <random>
#include <sstream>
#include <stdexcept>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <vector>

#include "spec/error.hpp"

namespace assay::impl {

namespace {
using Store = c10::intrusive_ptr<c10d::Store>;
const std::string loopback = "127.0.0.1";

/// Addresses of this host that another host may reach, MASTER_ADDR's first.
std::vector<std::string> own_addresses() {
  std::vector<std::string> found;
  if (const char* given = std::getenv("MASTER_ADDR")) found.emplace_back(given);
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return found;
  for (const ifaddrs* each = all; each; each = each->ifa_next) {
    if (!each->ifa_addr || each->ifa_addr->sa_family != AF_INET || (each->ifa_flags & IFF_LOOPBACK) ||
        !(each->ifa_flags & IFF_UP))
      continue;
    char name[INET_ADDRSTRLEN] = {};
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(each->ifa_addr)->sin_addr, name, sizeof name);
    found.emplace_back(name);
  }
  freeifaddrs(all);
  return found;
}

/// A socket that listens on a port which the system chose.
int listening(bool on_loopback) {
  const int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(on_loopback ? INADDR_LOOPBACK : INADDR_ANY);
  if (descriptor >= 0 && bind(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
      listen(descriptor, SOMAXCONN) == 0)
    return descriptor;
  if (descriptor >= 0) close(descriptor);
  throw std::runtime_error("cannot open a TCP port");
}

std::uint16_t port_of(int socket) {
  sockaddr_in address = {};
  socklen_t length = sizeof address;
  getsockname(socket, reinterpret_cast<sockaddr*>(&address), &length);
  return ntohs(address.sin_port);
}

c10d::TCPStoreOptions options_of(std::uint16_t port, std::chrono::seconds patience) {
  c10d::TCPStoreOptions options;
  options.port = port;
  options.waitWorkers = false;
  options.timeout = patience;
  return options;
}

/// Where a store may be found.
struct Place {
  std::uint16_t port = 0;
  std::vector<std::string> addresses;
};

Store connected(const std::string& address, std::uint16_t port) {
  return c10::make_intrusive<c10d::TCPStore>(address, options_of(port, std::chrono::seconds(5)));
}

Store serve(bool on_loopback, Place& place) {
  const int socket = listening(on_loopback);
  place = {port_of(socket), on_loopback ? std::vector{loopback} : own_addresses()};
  auto options = options_of(place.port, std::chrono::seconds(20));
  options.isServer = true;
  options.masterListenFd = socket;  // the store closes it
  return c10::make_intrusive<c10d::TCPStore>(loopback, options);
}

/// The store that has the key `here`: another host may have an address of rank 0's, too.
Store find(const Place& place, const std::string& here) {
  std::string tried;
  for (const std::string& address : place.addresses) {
    tried += (tried.empty() ? "" : ", ") + address;
    try {
      Store store = connected(address, place.port);
      if (store->check({here})) return store;
    } catch (const std::exception&) {
      // The next address may be the right one.
    }
  }
  throw std::runtime_error("cannot reach rank 0's store at port " + std::to_string(place.port) +
                           " of any of its addresses (" + tried +
                           "): let the hosts of a job reach each other's TCP ports, or set MASTER_ADDR to an "
                           "address of rank 0 that all of them reach");
}

/// On one line, between ranks.
std::string written(const std::string& keys, const Place& place) {
  std::string text = keys + " " + std::to_string(place.port);
  for (const std::string& address : place.addresses) text += " " + address;
  return text;
}

Place read(const std::string& text, std::string& keys) {
  Place place;
  std::istringstream words(text);
  words >> keys >> place.port;
  for (std::string address; words >> address;) place.addresses.push_back(address);
  return place;
}

/// The result of `work` where no rank's throws.
Store agreed(Communicator& communicator, const std::function<Store()>& work) {
  Store store;
  std::string fault;
  try {
    store = work();
  } catch (const std::exception& error) {
    fault = error.what();
  }
  const auto faults = communicator.all_gather(fault);
  for (std::size_t r = 0; r < faults.size(); ++r)
    if (!faults[r].empty()) throw AgreedError(ExitCode::usage, "rank " + std::to_string(r) + " " + faults[r]);
  return store;
}

class TcpJobStore final : public JobStore {
 public:
  explicit TcpJobStore(Store store) : store_(std::move(store)) {}

  void set(const std::string& key, const std::string& text) override { store_->set(key, text); }
  void set_first(const std::string& key, const std::string& text) override {
    store_->compareSet(key, std::string(), text);
  }
  std::vector<std::string> get(const std::vector<std::string>& keys) override {
    std::vector<std::string> texts;
    for (const auto& bytes : store_->multiGet(keys)) texts.emplace_back(bytes.begin(), bytes.end());
    return texts;
  }

 private:
  Store store_;
};
}  // namespace

std::unique_ptr<JobStore> connect_to_job_store(Communicator& communicator, const std::string& machine) {
  // A connection that ends is an exception here; c10d would also print it as a warning, with its stack.
  FLAGS_caffe2_log_level = c10::GLOG_ERROR;
  const auto machines = communicator.all_gather(machine);
  const bool one_machine = std::all_of(machines.begin(), machines.end(),
                                       [&](const std::string& each) { return each == machines.front(); });
  const auto [host, port] = communicator.store();
  const bool first = communicator.rank() == 0;
  std::string keys;
  Place place;
  Store store = agreed(communicator, [&]() -> Store {
    if (!first) return {};
    std::random_device random;
    keys = "assay/" + std::to_string(random()) + std::to_string(random()) + "/";
    Store mine = host.empty() ? serve(one_machine, place) : connected(host, port);
    mine->set(keys + "here", std::string("1"));
    return mine;
  });
  place = read(communicator.all_gather(written(keys, place)).front(), keys);
  if (!host.empty()) place = {port, {host}};
  if (machine == machines.front() && host.empty()) place.addresses = {loopback};
  store = agreed(communicator, [&] { return first ? store : find(place, keys + "here"); });
  return std::make_unique<TcpJobStore>(c10::make_intrusive<c10d::PrefixStore>(keys, std::move(store)));
}

}  // namespace assay::impl
