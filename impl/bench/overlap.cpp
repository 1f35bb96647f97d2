#include "impl/bench/overlap.hpp"

#include <ATen/ATen.h>
#include <ATen/cuda/CUDAEvent.h>
#include <c10/core/InferenceMode.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <vector>

#include "impl/bench/collectives.hpp"
#include "impl/bench/rank_times.hpp"
#include "impl/ops/linear/linear.hpp"
#include "impl/params/parameter_buffers.hpp"
#include "spec/model/inventory.hpp"

namespace assay::impl::bench {
namespace {

using spec::Collective;
using CudaEvent = at::cuda::CUDAEvent;
using Call = std::function<void()>;
using Begin = std::function<Communicator::Ticket()>;

constexpr std::int64_t most_collectives = 512;  ///< collectives, well below what a stream takes

struct GemmSpan {
  CudaEvent begin{cudaEventDefault}, end{cudaEventDefault};
};

/// Seconds from a moment on the GPU's clock.
struct Times {
  std::vector<std::pair<double, double>> gemms;  ///< begin and end
  std::vector<double> collectives;               ///< end
};

/// Events that follow each collective, in a stream that does nothing else.
std::deque<CudaEvent> ends_of(const std::vector<Communicator::Ticket>& tickets, Communicator& communicator,
                              at::Device device) {
  std::deque<CudaEvent> ends;
  const c10::cuda::CUDAStreamGuard beside(
      c10::cuda::getStreamFromPool(/*isHighPriority=*/false, device.index()));
  for (const auto ticket : tickets) {
    communicator.wait(ticket);
    ends.emplace_back(cudaEventDefault).record();
  }
  return ends;
}

/// GEMMs in the current stream; collectives, `counts.collectives` of them, in the communicator's. Both
/// begin at the same moment, when everything is queued and all ranks are there. All GEMMs count: the first
/// may wait for many collectives, and pays for their rate.
Times run_beside(Communicator& communicator, at::Device device, const OverlapCounts& counts, const Call& gemm,
                 const Begin& collective) {
  communicator.barrier();
  hold_back(device, call_queue_seconds * static_cast<double>(counts.collectives + counts.gemms));
  communicator.wait(collective());
  CudaEvent start(cudaEventDefault);
  start.record();
  std::vector<Communicator::Ticket> tickets;
  for (std::int64_t i = 0; i < counts.collectives; ++i) tickets.push_back(collective());
  std::deque<GemmSpan> spans;
  for (std::int64_t i = 0; i < counts.gemms; ++i) {
    GemmSpan& span = spans.emplace_back();
    span.begin.record();
    gemm();
    span.end.record();
  }
  std::deque<CudaEvent> ends = ends_of(tickets, communicator, device);
  if (!ends.empty()) ends.back().block(c10::cuda::getCurrentCUDAStream(device.index()));
  communicator.settle();
  const auto since_start = [&](const CudaEvent& event) { return 1e-3 * start.elapsed_time(event); };
  Times times;
  for (const GemmSpan& span : spans) times.gemms.emplace_back(since_start(span.begin), since_start(span.end));
  for (const CudaEvent& end : ends) times.collectives.push_back(since_start(end));
  return times;
}

/// Mean time of the GEMMs that ended before the collectives did.
double gemm_seconds(const Times& times) {
  return mean_of_spans(times.gemms, times.collectives.empty() ? std::numeric_limits<double>::infinity()
                                                              : times.collectives.back());
}

double collective_seconds(const Times& times) {
  return seconds_of_one(times.collectives, times.gemms.front().first, times.gemms.back().second);
}

OverlapRow measured_beside(const Plan& plan, Communicator& communicator, Collective collective,
                           const spec::Partition& partition, const Call& gemm) {
  const Dtype dtype = element_dtype(collective, plan.setting.dtype);
  const std::int64_t elements = largest_decoder_block(partition);
  const at::Tensor whole = zeros_in_memory(plan.device, dtype, elements);
  const Begin begin = collective_call(communicator, collective, whole);
  const auto run = [&](const OverlapCounts& counts) {
    return run_beside(communicator, plan.device, counts, gemm, begin);
  };
  const std::int64_t repeats = plan.patience.repeats;
  const double together =
      slowest(communicator,
              median(time_together(communicator, plan.device, repeats, [&] { communicator.wait(begin()); })));
  const double alone = slowest(communicator, gemm_seconds(run({.gemms = repeats})));
  const OverlapCounts counts = overlap_counts(repeats, alone, together);
  // Alone before and after: the clock falls under load.
  const Times before = run({.gemms = counts.gemms}), beside = run(counts),
              after = run({.gemms = counts.gemms});
  const double both = (gemm_seconds(before) + gemm_seconds(after)) / 2;
  const double seconds = slowest(communicator, collective_seconds(beside));
  OverlapRow row{.gemm = overlapped_gemm,
                 .alone_seconds = slowest(communicator, both),
                 .beside_seconds = slowest(communicator, gemm_seconds(beside))};
  row.beside = {.collective = collective,
                .size = "decoder block",
                .dtype = to_string(dtype),
                .bytes = elements * element_bytes(dtype),
                .seconds = seconds};
  return row;
}

}  // namespace

std::string overlap_left_out(at::Device device) {
  return device.is_cuda() ? ""
                          : "what collectives cost GEMMs is measured on GPUs: on CPUs Gloo's "
                            "threads take the cores of the GEMMs";
}

double seconds_of_one(const std::vector<double>& ends, double begin, double end) {
  double before = 0, last = 0;
  std::int64_t meanwhile = 0;
  for (const double moment : ends) {
    if (moment <= begin)
      before = moment;
    else if (moment <= end)
      last = moment, ++meanwhile;
  }
  return meanwhile > 0 ? (last - before) / static_cast<double>(meanwhile) : 0;
}

double mean_of_spans(const std::vector<std::pair<double, double>>& spans, double until) {
  const auto late =
      std::find_if(spans.begin(), spans.end(), [&](const auto& span) { return span.second > until; });
  return late == spans.begin()
             ? 0
             : (std::prev(late)->second - spans.front().first) / static_cast<double>(late - spans.begin());
}

OverlapCounts overlap_counts(std::int64_t repeats, double gemm_seconds, double collective_seconds) {
  constexpr double least_collectives = 8;  // while the GEMMs run
  const double ratio = gemm_seconds / collective_seconds;
  const auto needed = [&](std::int64_t gemms) { return 2 * static_cast<double>(gemms) * ratio + 2; };
  OverlapCounts counts;
  counts.gemms = std::max<std::int64_t>(
      1, std::max(repeats, static_cast<std::int64_t>(std::min(512.0, std::ceil(least_collectives / ratio)))));
  while (counts.gemms > 1 && needed(counts.gemms) > most_collectives) --counts.gemms;
  counts.collectives =
      static_cast<std::int64_t>(std::min(std::ceil(needed(counts.gemms)), double{most_collectives}));
  return counts;
}

void measure_overlap(const Plan& plan, Communicator& communicator,
                     const std::function<void(const OverlapRow&)>& use) {
  const c10::InferenceMode no_autograd;
  within_memory(plan, [&] {
    settle_clock(plan);
    const auto normal = [&](std::int64_t rows, std::int64_t columns) {
      return at::randn({rows, columns}, at::TensorOptions(plan.device).dtype(at::kFloat))
          .mul_(0.5)
          .to(scalar_type(plan.setting.dtype));
    };
    const at::Tensor x = normal(plan.setting.micro * plan.setting.sequence_length, plan.setting.model.width),
                     weight = normal(2 * plan.setting.model.ffn, plan.setting.model.width);
    const Call gemm = [&] { linear::forward(x, weight); };
    time_calls(plan.device, {.repeats = 1, .warm = tournament_calls}, {}, gemm);
    const spec::Partition partition =
        spec::partition(spec::inventory(plan.setting.model), communicator.size());
    for (const Collective collective : spec::ring_collectives)
      use(measured_beside(plan, communicator, collective, partition, gemm));
  });
}

}  // namespace assay::impl::bench
