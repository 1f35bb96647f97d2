#pragma once
// The processes of a job before they are ranks of a group. Only for files that know c10d.
#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <functional>
#include <string>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "impl/comm/launch.hpp"

namespace assay::impl {

inline constexpr const char* loopback = "127.0.0.1";

/// What a process knows once all have met.
struct Met {
  c10::intrusive_ptr<c10d::TCPStore> store{};
  int rank = 0;
  std::string address{};  ///< of this host: where the others of the job reach it; loopback: all are here
};

/// Waits in the job's store until all processes have come, numbers those that have no rank yet (the host that
/// serves the store first, then by name), and checks that they count alike. The store listens at the address
/// that launch.host names and no other, but for this host's own name where that leads to itself alone: then
/// on all interfaces. `stopped`: whether this process was asked to stop; the others then have seconds to
/// come. Errors: UserError(peer_lost) that names the ranks or hosts that have not come within `patience`, or
/// says where the store was looked for; UserError(saved_requeue) after a stop; UserError(usage) where a
/// process counts the ranks differently or comes twice, where more ranks come, where launch.host is not
/// known, where the port is taken, and where the process may open too few files.
Met meet(const Launch& launch, std::chrono::seconds patience, const std::function<bool()>& stopped = {});

/// A new connection to a store that is served there. Errors: std::exception.
c10::intrusive_ptr<c10d::TCPStore> connect_to_store(const std::string& host, std::uint16_t port,
                                                    std::chrono::seconds patience);

}  // namespace assay::impl
