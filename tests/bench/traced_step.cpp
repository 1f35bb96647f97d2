#include "tests/bench/traced_step.hpp"

#include <c10/cuda/CUDAFunctions.h>
#include <torch/csrc/autograd/profiler_kineto.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>

#include "impl/bench/collectives.hpp"
#include "spec/metrics/bus_bandwidth.hpp"
#include "spec/model/inventory.hpp"
#include "spec/parallel/gathered_codes.hpp"
#include "spec/parallel/partition.hpp"
#include "spec/parallel/volume.hpp"
#include "spec/tolerance.hpp"

namespace assay::impl {

namespace {

std::vector<double> milliseconds_of(const std::vector<TracedKernel>& kernels, const char* name) {
  std::vector<double> found;
  for (const TracedKernel& kernel : kernels)
    // Losses and norms are summed in fp64, a few bytes each.
    if (kernel.name.find(name) != std::string::npos && kernel.name.find("_f64") == std::string::npos)
      found.push_back(kernel.milliseconds());
  std::sort(found.begin(), found.end());
  return found;
}

void print_collective(const std::vector<TracedKernel>& kernels, spec::Collective collective, const char* name,
                      const Count& bytes, double block_bytes, std::int64_t ranks) {
  if (ranks < 2 || bytes == Count(0)) return;
  const std::vector<double> times = milliseconds_of(kernels, name);
  if (times.empty()) return;
  double sum = 0;
  for (const double t : times) sum += t;
  const double median = times[times.size() / 2], factor = spec::metrics::bus_factor(collective, ranks);
  std::printf(
      "%s on %lld ranks: %zu kernels, %.1f ms, %.3f GB of whole tensors, %.1f GB/s bus; "
      "median kernel %.3f ms, a decoder block's %.1f MB would be %.1f GB/s bus\n",
      std::string(to_string(collective)).c_str(), static_cast<long long>(ranks), times.size(), sum,
      1e-9 * bytes.to_double(), 1e-9 * spec::metrics::bus_bandwidth(collective, bytes, 1e-3 * sum, ranks),
      median, 1e-6 * block_bytes, 1e-9 * factor * block_bytes / (1e-3 * median));
}

/// Time in which at least one of them runs; they are in the order in which they begin.
double milliseconds_covered(const std::vector<TracedKernel>& kernels) {
  std::uint64_t covered = 0, end = 0;
  for (const TracedKernel& kernel : kernels) {
    if (kernel.end > end) covered += kernel.end - std::max(kernel.begin, end);
    end = std::max(end, kernel.end);
  }
  return 1e-6 * static_cast<double>(covered);
}

/// Those of the streams in which no collective runs.
std::vector<TracedKernel> computation(const std::vector<TracedKernel>& kernels) {
  std::set<std::int64_t> between_ranks;
  for (const TracedKernel& kernel : kernels)
    if (kernel.name.find("nccl") != std::string::npos) between_ranks.insert(kernel.stream);
  std::vector<TracedKernel> found;
  for (const TracedKernel& kernel : kernels)
    if (!between_ranks.contains(kernel.stream)) found.push_back(kernel);
  return found;
}

}  // namespace

std::vector<TracedKernel> traced_step(run::Trainer& trainer) {
  namespace profiler = torch::autograd::profiler;
  const torch::profiler::impl::ProfilerConfig config(torch::profiler::impl::ProfilerState::KINETO);
  const std::set activities{torch::profiler::impl::ActivityType::CUDA};
  profiler::prepareProfiler(config, activities);
  profiler::enableProfiler(config, activities);
  trainer.step(false);
  c10::cuda::device_synchronize();
  const auto trace = profiler::disableProfiler();
  std::vector<TracedKernel> kernels;
  for (const profiler::KinetoEvent& event : trace->events())
    if (event.deviceType() == at::kCUDA)
      kernels.push_back({event.name(), static_cast<std::uint64_t>(event.startNs()),
                         static_cast<std::uint64_t>(event.endNs()), event.deviceResourceId()});
  std::sort(kernels.begin(), kernels.end(),
            [](const TracedKernel& a, const TracedKernel& b) { return a.begin < b.begin; });
  return kernels;
}

void print_kernels(const std::vector<TracedKernel>& kernels) {
  if (kernels.empty()) return;
  struct Sum {
    int calls = 0;
    double milliseconds = 0;
  };
  std::map<std::string, Sum> sums;
  for (const TracedKernel& kernel : kernels) {
    Sum& sum = sums[kernel.name];
    ++sum.calls;
    sum.milliseconds += kernel.milliseconds();
  }
  std::uint64_t end = 0;
  for (const TracedKernel& kernel : kernels) end = std::max(end, kernel.end);
  const double span = 1e-6 * static_cast<double>(end - kernels[0].begin),
               busy = milliseconds_covered(kernels), computing = milliseconds_covered(computation(kernels));
  std::printf(
      "a traced step: %.1f ms from its first kernel to its last; %.1f ms compute, %.1f ms communicate alone "
      "(%.2f %%), %.1f ms lie between kernels (%.2f %%)\n",
      span, computing, busy - computing, 100 * (busy - computing) / span, span - busy,
      100 * (span - busy) / span);
  std::vector<std::pair<std::string, Sum>> sorted(sums.begin(), sums.end());
  std::sort(sorted.begin(), sorted.end(),
            [](const auto& a, const auto& b) { return a.second.milliseconds > b.second.milliseconds; });
  for (const auto& [name, sum] : sorted)
    std::printf("%9.2f ms %5d calls  %8.4f ms each  %.150s\n", sum.milliseconds, sum.calls,
                sum.milliseconds / sum.calls, name.c_str());
}

void print_collectives(const std::vector<TracedKernel>& kernels, const spec::RunConfig& config,
                       const spec::ModelSpec& model, const spec::Batch& batch, const spec::Layout& layout) {
  if (config.expert_ranks > 1) {
    std::puts("no bus figures: experts and the rest are summed over ranks of their own");
    return;
  }
  const spec::Share share = spec::share(model, {.layout = layout});
  const spec::Partition& partition = share.sets.front().partition;
  const bool rounded = config.dtype == Dtype::bf16;
  const std::int64_t weight = element_bytes(config.dtype),
                     gradient = rounded ? element_bytes(config.reduce) : weight;
  const spec::LinearPrecision linear = spec::linear_precision(config, model);
  const spec::StepVolume volume =
      spec::step_volume(share, {batch.accumulation, gradient, weight, model.tied_embeddings, linear});
  const bool codes =
      layout.shards_weights() && !spec::gathered_codes(partition.inventory, linear, rounded).blocks.empty();
  const std::int64_t block = bench::largest_decoder_block(partition);
  const auto bytes = [&](std::int64_t element) { return static_cast<double>(block * element); };
  print_collective(kernels, spec::Collective::all_gather, "AllGather",
                   volume.shard[spec::Collective::all_gather], bytes(codes ? 1 : weight), layout.shard_ranks);
  print_collective(kernels, spec::Collective::reduce_scatter, "ReduceScatter",
                   volume.shard[spec::Collective::reduce_scatter], bytes(gradient), layout.shard_ranks);
  print_collective(kernels, spec::Collective::all_reduce, "AllReduce",
                   volume.replica[spec::Collective::all_reduce],
                   bytes(gradient) / static_cast<double>(layout.shard_ranks), layout.replicas());
}

}  // namespace assay::impl
