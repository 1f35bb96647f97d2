#pragma once
#include "impl/comm/communicator.hpp"
#include "impl/params/parameter_buffers.hpp"

namespace assay::impl {

/// Brings the fp32 gains beside bf16 weights (spec/ops/rms_norm.md) up to the master weights that the ranks
/// of `shard` hold shards of: one sum of all gains, exact, since all but one of its terms are zeros.
/// Collective; nothing where weights are not bf16.
void gather_gains(const ParameterBuffers& buffers, Communicator& shard);

}  // namespace assay::impl
