#pragma once
// Named stretches of a thread's work, for whoever traces it: PyTorch's profiler (a RecordFunction) and Nsight
// Systems (NVTX). Without a trace a range is one test of a flag of its thread.
#include <concepts>
#include <string>

namespace assay::impl::metrics {

namespace tracing {
/// Whether this thread's ranges are recorded. Set by RangesRecorded alone.
inline thread_local constinit bool on = false;
/// Name of the tensor that the op which runs makes, or "".
inline thread_local constinit const char* place = "";
}  // namespace tracing

/// Records the ranges of this thread while it lives.
class RangesRecorded {
 public:
  RangesRecorded() { tracing::on = true; }
  RangesRecorded(const RangesRecorded&) = delete;
  RangesRecorded& operator=(const RangesRecorded&) = delete;
  ~RangesRecorded() { tracing::on = false; }
};

/// One range, until it ends or lives no more. Ranges of a thread nest.
class Range {
 public:
  Range() = default;
  /// `name()` is asked for where ranges are recorded alone.
  template <std::invocable Name>
  explicit Range(const Name& name) {
    if (tracing::on) open(name());
  }
  explicit Range(const char* name) {
    if (tracing::on) open(name);
  }
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;
  ~Range() { end(); }

  /// Ends this one and begins another.
  template <std::invocable Name>
  void turn_to(const Name& name) {
    end();
    if (tracing::on) open(name());
  }
  void end() {
    if (open_) close();
  }

 private:
  struct Open;
  void open(const std::string& name);
  void close();

  Open* open_ = nullptr;
};

/// Says where in the step an op runs, for the names of ranges.
class Place {
 public:
  explicit Place(const char* tensor) {
    if (!tracing::on) return;
    outer_ = tracing::place;
    tracing::place = tensor;
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  ~Place() {
    if (outer_) tracing::place = outer_;
  }

 private:
  const char* outer_ = nullptr;
};

}  // namespace assay::impl::metrics
