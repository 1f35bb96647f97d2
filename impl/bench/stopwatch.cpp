#include "impl/bench/stopwatch.hpp"

#include <ATen/cuda/CUDAEvent.h>

#include <algorithm>
#include <chrono>
#include <deque>

namespace assay::impl::bench {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::int64_t most_queued = 64;  ///< calls that are given to a GPU before it is waited for

struct Span {
  at::cuda::CUDAEvent begin{cudaEventDefault}, end{cudaEventDefault};
};

void queue_calls(std::int64_t count, const std::function<void()>& prepare, const std::function<void()>& call,
                 std::vector<double>& seconds) {
  std::deque<Span> spans;
  for (std::int64_t i = 0; i < count; ++i) {
    if (prepare) prepare();
    Span& span = spans.emplace_back();
    span.begin.record();
    call();
    span.end.record();
  }
  spans.back().end.synchronize();
  for (const Span& span : spans) seconds.push_back(1e-3 * span.begin.elapsed_time(span.end));
}

void run_calls(std::int64_t count, const std::function<void()>& prepare, const std::function<void()>& call,
               std::vector<double>& seconds) {
  for (std::int64_t i = 0; i < count; ++i) {
    if (prepare) prepare();
    const auto begin = Clock::now();
    call();
    seconds.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
  }
}

}  // namespace

std::vector<double> time_calls(at::Device device, const Patience& patience,
                               const std::function<void()>& prepare, const std::function<void()>& call) {
  const auto several = [&](std::int64_t count, std::vector<double>& seconds) {
    device.is_cuda() ? queue_calls(count, prepare, call, seconds) : run_calls(count, prepare, call, seconds);
  };
  std::vector<double> seconds;
  several(std::max<std::int64_t>(1, patience.warm), seconds);  // allocation, loading of kernels
  seconds.clear();
  const auto start = Clock::now();
  std::int64_t left = std::max<std::int64_t>(1, patience.repeats);
  while (left > 0 || std::chrono::duration<double>(Clock::now() - start).count() < patience.seconds) {
    const std::int64_t count = left > 0 ? std::min(left, most_queued) : most_queued;
    several(count, seconds);
    left -= count;
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds;
}

double median(const std::vector<double>& sorted) { return sorted[sorted.size() / 2]; }

}  // namespace assay::impl::bench
