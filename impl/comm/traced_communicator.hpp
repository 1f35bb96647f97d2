#pragma once
// A communicator whose collectives are ranges of traces and rows of op times.
#include <memory>

#include "impl/comm/communicator.hpp"

namespace assay::impl {

/// Does what `inner` does, which lives longer; so do its groups. Each call names itself for an OpClock and
/// for traces of its thread (impl/metrics/op_times.hpp), where there are any: on a GPU the wait for a
/// collective is that of the stream.
std::unique_ptr<Communicator> make_traced_communicator(Communicator& inner);

}  // namespace assay::impl
