#pragma once
// The steps of a run that are traced (profile.steps).
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "impl/metrics/op_times.hpp"
#include "spec/config/run_config.hpp"
#include "spec/record/event.hpp"

namespace assay::impl::run {

/// Traces the steps of a window on this rank's thread: PyTorch's profiler (Kineto) with ranges of phases,
/// blocks, ops and collectives, kernels where there is a GPU, the same ranges as NVTX, and the time of each
/// op. Outside of the window it does nothing. Files are FOLDER/profile/steps-A-B.rank-R.{trace.json,ops.txt};
/// one that cannot be written is no end of a run.
class Profiling {
 public:
  Profiling(const spec::StepWindow& window, std::string folder, int rank, at::Device device);
  ~Profiling();
  Profiling(const Profiling&) = delete;
  Profiling& operator=(const Profiling&) = delete;

  /// Whether a step, counted from 1, is in the window.
  bool holds(std::int64_t step) const { return window_.holds(step); }
  /// Right before and right after a step. What was traced, once the last one is done.
  void begin(std::int64_t step);
  std::optional<spec::record::Profile> end(std::int64_t step);
  /// What was traced of a window that the run leaves before its last step.
  std::optional<spec::record::Profile> finish();
  /// Why a file is missing, once.
  std::optional<std::string> fault() { return std::exchange(fault_, {}); }

 private:
  struct Trace;
  void add(const metrics::OpTimes& times);
  spec::record::Profile parts() const;

  const spec::StepWindow window_;
  const std::string folder_;
  const int rank_;
  const at::Device device_;
  std::int64_t first_ = 0, last_ = 0, steps_ = 0;
  std::unique_ptr<Trace> trace_;
  struct Part {
    std::string kind;
    double calls = 0, seconds = 0;
  };
  std::map<std::string, Part> parts_;  ///< of all traced steps
  std::optional<std::string> fault_;
};

}  // namespace assay::impl::run
