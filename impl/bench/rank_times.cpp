#include "impl/bench/rank_times.hpp"

#include <ATen/cuda/CUDAEvent.h>
#include <ATen/cuda/Sleep.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <deque>
#include <stdexcept>
#include <string>

#include "spec/text/json.hpp"

namespace assay::impl::bench {
namespace {

constexpr std::int64_t most_queued_together = 64;  ///< calls that are given to a GPU before it is waited for
/// Ahead of those that count: the first waits for the ranks that come late.
constexpr std::int64_t late_calls = 2;

struct CallSpan {
  at::cuda::CUDAEvent begin{cudaEventDefault}, end{cudaEventDefault};
};

void queue_together(Communicator& communicator, at::Device device, std::int64_t count,
                    const std::function<void()>& call, std::vector<double>& seconds) {
  communicator.barrier();
  hold_back(device, call_queue_seconds * static_cast<double>(count + late_calls));
  for (std::int64_t i = 0; i < late_calls; ++i) call();
  std::deque<CallSpan> spans;
  for (std::int64_t i = 0; i < count; ++i) {
    CallSpan& span = spans.emplace_back();
    span.begin.record();
    call();
    span.end.record();
  }
  communicator.settle();
  for (const CallSpan& span : spans) seconds.push_back(1e-3 * span.begin.elapsed_time(span.end));
}

void run_together(Communicator& communicator, std::int64_t count, const std::function<void()>& call,
                  std::vector<double>& seconds) {
  for (std::int64_t i = 0; i < count; ++i) {
    communicator.barrier();
    const auto begin = std::chrono::steady_clock::now();
    call();
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
}

double seconds_of(const std::string& text) {
  double value = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), value).ec != std::errc())
    throw std::runtime_error("a rank's time is no number: " + text);
  return value;
}

}  // namespace

double slowest(Communicator& communicator, double mine) {
  double most = mine;
  for (const std::string& text : communicator.all_gather(spec::json_number(mine)))
    most = std::max(most, seconds_of(text));
  return most;
}

void hold_back(at::Device device, double seconds) {
  constexpr double cycles_per_second = 2e9;  // about a GPU's fastest clock
  if (device.is_cuda()) at::cuda::sleep(static_cast<std::int64_t>(seconds * cycles_per_second));
}

std::vector<double> time_together(Communicator& communicator, at::Device device, std::int64_t count,
                                  const std::function<void()>& call) {
  std::vector<double> seconds;
  for (std::int64_t left = count; left > 0; left -= most_queued_together) {
    const std::int64_t some = std::min(left, most_queued_together);
    device.is_cuda() ? queue_together(communicator, device, some, call, seconds)
                     : run_together(communicator, some, call, seconds);
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds;
}

}  // namespace assay::impl::bench
