#pragma once
// How many files a process may open.
#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "spec/error.hpp"

namespace assay::impl {

/// Raises this process's limit of open files to what one of so many ranks may need: a connection to some of
/// the others in each of its groups, and of rank 0 two to each in the store. Without room for them a
/// connection would hang, not fail. Errors: UserError(usage) where the hard limit is lower.
inline void make_room_for_connections(std::int64_t ranks) {
  const auto needed = static_cast<rlim_t>(128 + 8 * std::min<std::int64_t>(ranks, 64) + 4 * ranks);
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= needed) return;
  if (limit.rlim_max >= needed) {
    limit.rlim_cur = needed;
    if (setrlimit(RLIMIT_NOFILE, &limit) == 0) return;
  }
  throw UserError(ExitCode::usage, "a process may open " + std::to_string(limit.rlim_max) +
                                       " files here, and one of " + std::to_string(ranks) + " ranks needs " +
                                       std::to_string(needed) +
                                       ": raise the limit (ulimit -n, or LimitNOFILE of a service)");
}

}  // namespace assay::impl
