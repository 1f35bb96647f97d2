#pragma once
// Times of calls that all ranks make together.
#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "impl/comm/communicator.hpp"

namespace assay::impl::bench {

/// The largest of the ranks' values. Collective.
double slowest(Communicator& communicator, double mine);

/// What giving a GPU one call with its events takes, an estimate on the safe side: it decides how long work
/// is held back, no figure rests on it. [s]
inline constexpr double call_queue_seconds = 40e-6;

/// The current stream of a GPU does nothing for so long, while the calling thread gives it work: it is not
/// the launch that is timed. Nothing on a CPU. [s]
void hold_back(at::Device device, double seconds);

/// This rank's seconds of each of `count` calls, sorted, least first. All ranks call together; `call` begins
/// a collective and waits for it as a step does. On a GPU by events in the current stream around each call,
/// the calls queued one behind the other; on a CPU after a barrier each. Errors: those of the communicator,
/// through which the GPU's work is waited for, so that a lost rank is an error.
std::vector<double> time_together(Communicator& communicator, at::Device device, std::int64_t count,
                                  const std::function<void()>& call);

}  // namespace assay::impl::bench
