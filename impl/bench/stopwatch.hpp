#pragma once
// Times of single calls.
#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

namespace assay::impl::bench {

/// How long a call is repeated: at least `repeats` times, and for at least `seconds` of work.
struct Patience {
  std::int64_t repeats = 20;
  double seconds = 0;
  std::int64_t warm = 2;  ///< calls before, which do not count
};

/// Seconds of every call after those that do not count. Before each, `prepare` (may be empty) runs untimed.
/// On a GPU by events around each call; calls are queued without waiting, so that it is not the launch that
/// is timed. Sorted, least first.
std::vector<double> time_calls(at::Device device, const Patience& patience,
                               const std::function<void()>& prepare, const std::function<void()>& call);

/// Middle of sorted times.
double median(const std::vector<double>& sorted);

}  // namespace assay::impl::bench
