#include "impl/run/phases.hpp"

#include <ATen/ATen.h>
#include <c10/cuda/CUDAFunctions.h>

namespace assay::impl::run {

void PhaseClock::restart() {
  seconds_.fill(0);
  phase_ = Phase::other;
  since_ = std::chrono::steady_clock::now();
}

void PhaseClock::enter(Phase phase) {
  if (device_.is_cuda()) c10::cuda::device_synchronize();
  const auto now = std::chrono::steady_clock::now();
  seconds_[static_cast<std::size_t>(phase_)] += std::chrono::duration<double>(now - since_).count();
  phase_ = phase;
  since_ = now;
}

PhaseSeconds PhaseClock::seconds() {
  enter(phase_);
  return seconds_;
}

}  // namespace assay::impl::run
