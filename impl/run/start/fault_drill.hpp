#pragma once
// A planted fault of one rank at one moment, to try what the others make of it (docs/many-gpus.md, "Drills").
#include <cstdint>
#include <functional>
#include <optional>

#include "impl/health/rank_row.hpp"

namespace assay::impl::run {

/// kill: SIGKILL. stop: SIGSTOP. error: an exception. exit: exit(0), exit handlers included. spin: it runs
/// on, and does nothing. hang: a kernel that does not end, on the current stream of the current GPU. wait: no
/// fault; it waits for data, outside of data_wait for a disk, for longer than a stall lasts, and goes on.
enum class DrillKind { kill, stop, error, exit, spin, hang, wait };

struct FaultDrill {
  DrillKind kind = DrillKind::kill;
  int rank = 0;
  std::int64_t step = 1;
  Doing doing = Doing::forward;
  double stall_seconds = 20;  ///< of the drill: limits_of
};

/// The value of ASSAY_FAULT_DRILL, "kind=stop rank=1 step=3 phase=backward stall=6"; nothing where it is not
/// set. Errors: UserError(usage) for anything else.
std::optional<FaultDrill> read_drill(const char* text);

/// For Row::on_enter: strikes in the drill's phase of its step. What ranks agree on ahead of a step's forward
/// is also a reduction, but not that of gradients.
std::function<void(const RowView&)> planted(const FaultDrill& drill);

}  // namespace assay::impl::run
