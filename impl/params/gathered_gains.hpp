#pragma once
#include "impl/comm/communicator.hpp"
#include "impl/params/parameter_buffers.hpp"

namespace assay::impl {

/// Copies the gains of the sharded master weights to the fp32 gains beside bf16 weights
/// (spec/ops/rms_norm.md), on every rank of `shard`. One all-reduce sums all gains; it is exact, since all
/// terms but one are zero. Collective; does nothing where weights are not bf16.
void gather_gains(const ParameterBuffers& buffers, Communicator& shard);

}  // namespace assay::impl
