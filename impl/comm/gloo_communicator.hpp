#pragma once
#include <chrono>
#include <functional>

#include "impl/comm/launch.hpp"

namespace assay::impl {

/// The processes of `launch`, once all have met (impl/comm/meeting.hpp), over libtorch's own process group,
/// Gloo, by TCP. CPU tensors. On one host everything goes over the loopback interface; on several each rank
/// listens on the address at which it reaches the store. Errors: those of `meet`; UserError(peer_lost) with
/// Gloo's own words where a rank is gone, or stays away for longer than `in_run`, until rely_on_watch.
/// `stopped`: as `meet` has it. NCCL, too, keeps to the loopback interface where all are on one host.
std::unique_ptr<Communicator> make_gloo_communicator(const Launch& launch,
                                                     std::chrono::seconds patience = std::chrono::minutes(2),
                                                     std::chrono::seconds in_run = std::chrono::minutes(10),
                                                     const std::function<bool()>& stopped = {});

}  // namespace assay::impl
