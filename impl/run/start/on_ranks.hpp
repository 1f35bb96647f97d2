#pragma once
// This process as a rank of its job: its peers, its device, and the end of all of them where one fails.
#include <cstdint>
#include <functional>

#include "impl/comm/communicator.hpp"
#include "impl/health/rank_watch.hpp"
#include "impl/machine/device_choice.hpp"
#include "spec/config/run_config.hpp"

namespace assay::impl::run {

struct Rank {
  Communicator& communicator;  ///< of all ranks: `self` for one, NCCL between GPUs, Gloo between CPUs
  DeviceChoice choice;         ///< its notice: of a lone rank, or that the ranks share a GPU
  Row& row;
  RankWatch* watch;  ///< where there are several ranks

  /// Waits for all ranks; from here on none needs another. The last act of work that went well, while what
  /// its peers may still look at is there.
  void take_leave() const;
};

/// What a rank needs before its work begins.
struct RankSettings {
  spec::Device device = spec::Device::automatic;
  std::int64_t stall_seconds = spec::RunConfig().stall_seconds;  ///< parallel.stall_seconds
};

/// Finds the other ranks as the launcher left them (impl/comm/launch.hpp), reads the settings, watches the
/// ranks, chooses the device and calls `work`, without autograd. The environment variable
/// ASSAY_COMMUNICATOR=staged is for tests of several ranks on one GPU (impl/comm/staged_communicator.hpp).
/// Returns its exit code. Errors: a lone rank's are thrown on. Of several, the one that fails prints its
/// error and ends the job with its exit code; an AgreedError, which is no rank's alone, is printed by rank 0,
/// and its exit code returned on every rank. The others of a rank that is lost end with ExitCode::peer_lost.
/// `stopped`: as make_communicator has it.
int on_ranks(const std::function<RankSettings()>& settings, const std::function<int(const Rank&)>& work,
             const std::function<bool()>& stopped = {});

}  // namespace assay::impl::run
