#pragma once
// A communicator whose rank says what it is at.
#include <memory>

#include "impl/comm/communicator.hpp"
#include "impl/health/gpu_progress.hpp"
#include "impl/health/rank_row.hpp"

namespace assay::impl {

/// `inner`, and its groups, with every collective and every wait noted in `row`, which lives longer, and
/// those of a GPU's tensors in `gpu`, if there is one.
std::unique_ptr<Communicator> make_watched_communicator(std::unique_ptr<Communicator> inner, Row& row,
                                                        std::shared_ptr<GpuProgress> gpu = nullptr);

}  // namespace assay::impl
