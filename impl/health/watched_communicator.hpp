#pragma once
// A communicator that publishes its collectives in the rank's row.
#include <memory>

#include "impl/comm/communicator.hpp"
#include "impl/health/gpu_progress.hpp"
#include "impl/health/rank_row.hpp"

namespace assay::impl {

/// `inner` and its groups; every collective and every wait is counted in `row`, which must outlive it, and
/// those of GPU tensors also in `gpu`, if there is one.
std::unique_ptr<Communicator> make_watched_communicator(std::unique_ptr<Communicator> inner, Row& row,
                                                        std::shared_ptr<GpuProgress> gpu = nullptr);

}  // namespace assay::impl
