#pragma once
// How the ranks of a job lie on its hosts.
#include <cstdint>

#include "impl/comm/communicator.hpp"

namespace assay::impl::run {

struct HostRanks {
  std::int64_t here = 1;  ///< ranks of this rank's host
  std::int64_t each = 1;  ///< of every host; 0 where numbers differ, or a host's ranks are not neighbours
};

/// Collective.
HostRanks host_ranks(Communicator& communicator);

}  // namespace assay::impl::run
