#include "impl/run/start/host_ranks.hpp"

#include <algorithm>

#include "impl/machine/host.hpp"

namespace assay::impl::run {

HostRanks host_ranks(Communicator& communicator) {
  const std::vector<std::string> hosts = communicator.all_gather(host_name());
  const auto ranks_of = [&](const std::string& host) {
    return static_cast<std::size_t>(std::count(hosts.begin(), hosts.end(), host));
  };
  const std::size_t here = ranks_of(hosts[static_cast<std::size_t>(communicator.rank())]);
  std::size_t each = ranks_of(hosts.front());
  if (hosts.size() % each != 0) each = 0;
  for (std::size_t r = 0; r < hosts.size() && each > 0; ++r)
    if (hosts[r] != hosts[r / each * each] || ranks_of(hosts[r]) != each) each = 0;
  return {static_cast<std::int64_t>(here), static_cast<std::int64_t>(each)};
}

}  // namespace assay::impl::run
