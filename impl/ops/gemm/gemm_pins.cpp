#include "impl/ops/gemm/gemm_pins.hpp"

#include <utility>

#include "impl/ops/gemm/cuda_gemm_search.hpp"

namespace assay::impl::cuda {

void GemmPins::give(AlgorithmTexts known) {
  const std::lock_guard lock(mutex_);
  known_ = std::move(known);
  used_.clear();
  ++generation_;
}

std::uint64_t GemmPins::generation() const {
  const std::lock_guard lock(mutex_);
  return generation_;
}

bool GemmPins::knows(const std::string& gemm) const {
  const std::lock_guard lock(mutex_);
  return known_.contains(gemm);
}

std::string GemmPins::of(const std::string& gemm, const std::string& first_choice,
                         const std::function<bool(const std::string&)>& runs) {
  const std::lock_guard lock(mutex_);
  const auto known = known_.find(gemm);
  const std::string& chosen = known != known_.end() && runs(known->second) ? known->second : first_choice;
  return used_[gemm] = chosen;
}

AlgorithmTexts GemmPins::used() const {
  const std::lock_guard lock(mutex_);
  return used_;
}

GemmPins& gemm_pins() {
  static GemmPins pins(Search::all_kept());
  return pins;
}

}  // namespace assay::impl::cuda
