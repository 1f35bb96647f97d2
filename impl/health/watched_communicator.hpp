#pragma once
// A communicator that publishes its collectives in the rank's row.
#include <memory>

#include "impl/comm/communicator.hpp"
#include "impl/comm/stream_word.hpp"
#include "impl/health/rank_row.hpp"

namespace assay::impl {

/// `inner` and its groups; every collective and every wait is counted in `row`, which must outlive it. The
/// GPU writes the number of each that moves its tensors into `gpu`, if there is one, when it reaches it.
std::unique_ptr<Communicator> make_watched_communicator(std::unique_ptr<Communicator> inner, Row& row,
                                                        std::shared_ptr<StreamWord> gpu = nullptr);

}  // namespace assay::impl
