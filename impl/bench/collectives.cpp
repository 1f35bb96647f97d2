#include "impl/bench/collectives.hpp"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <c10/util/Exception.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>
#include <stdexcept>

#include "impl/bench/rank_times.hpp"
#include "impl/machine/host.hpp"
#include "impl/metrics/ceiling.hpp"
#include "impl/params/parameter_buffers.hpp"
#include "spec/error.hpp"
#include "spec/model/inventory.hpp"

namespace assay::impl::bench {
namespace {

using spec::Collective;

constexpr std::int64_t warm_calls = 3;

/// What a buffer may take on every rank: most of a GPU's free memory, half of what a CPU rank has of its
/// host. [B]
std::int64_t buffer_room(const Plan& plan, Communicator& communicator) {
  double mine = 0;
  if (plan.device.is_cuda()) {
    std::size_t free = 0, total = 0;
    cudaMemGetInfo(&free, &total);
    mine = 0.8 * static_cast<double>(free);
  } else {
    mine = 0.5 * static_cast<double>(run::host_memory()) / communicator.size();
  }
  return static_cast<std::int64_t>(-slowest(communicator, -mine));
}

std::int64_t multiple_from(std::int64_t number, std::int64_t unit) {
  return (number + unit - 1) / unit * unit;
}

CollectiveRow measured_row(const Plan& plan, Communicator& communicator, Collective collective,
                           const BufferSize& size, const at::Tensor& buffer) {
  const Dtype dtype = element_dtype(collective, plan.setting.dtype);
  CollectiveRow row{.collective = collective,
                    .size = size.name,
                    .dtype = to_string(dtype),
                    .bytes = size.elements * element_bytes(dtype)};
  const at::Tensor whole = buffer.narrow(0, 0, row.bytes).view(scalar_type(dtype));
  const auto begin = collective_call(communicator, collective, whole);
  const auto call = [&] { communicator.wait(begin()); };
  const auto times = [&](std::int64_t count) {
    return time_together(communicator, plan.device, count, call);
  };
  const double about = slowest(communicator, times(warm_calls).front());
  const std::vector<double> seconds = times(calls_of(plan.patience, about));
  row.seconds = slowest(communicator, median(seconds));
  row.fastest = slowest(communicator, seconds.front());
  return row;
}

}  // namespace

std::int64_t largest_decoder_block(const spec::Partition& partition) {
  std::int64_t most = 0;
  for (std::int64_t b = 1; b + 1 < partition.inventory.blocks; ++b)
    most = std::max(most, partition.block_size(b));
  return most;
}

std::vector<std::int64_t> swept_mebibytes(at::Device device) {
  if (device.is_cuda()) return {1, 4, 16, 64, 256, 1024};
  return {1, 16};
}

std::vector<BufferSize> buffer_sizes(Collective collective, const spec::Partition& partition,
                                     std::int64_t element, std::int64_t most_bytes,
                                     const std::vector<std::int64_t>& mebibytes) {
  const std::int64_t unit = partition.ranks * spec::shard_alignment, last = partition.inventory.blocks - 1,
                     most = most_bytes / element / unit * unit;
  if (most < 1) throw std::invalid_argument("no buffer of " + std::to_string(most_bytes) + " bytes");
  const std::int64_t embedding = partition.block_size(0), head = partition.block_size(last);
  std::vector<BufferSize> sizes;
  sizes.reserve(mebibytes.size() + 3);
  for (const std::int64_t mebi : mebibytes)
    sizes.push_back({std::to_string(mebi) + " MiB", multiple_from((mebi << 20) / element, unit)});
  if (collective != Collective::all_to_all) {
    sizes.push_back({"decoder block", largest_decoder_block(partition)});
    sizes.push_back(embedding > head ? BufferSize{"embedding block", embedding}
                                     : BufferSize{"head block", head});
    sizes.push_back({"all parameters", partition.inventory.flat_size});
  }
  for (BufferSize& size : sizes)
    if (size.elements > most) size = {"part of " + size.name, most};
  std::stable_sort(sizes.begin(), sizes.end(),
                   [](const BufferSize& a, const BufferSize& b) { return a.elements < b.elements; });
  return sizes;
}

Dtype element_dtype(Collective collective, Dtype compute) {
  return spec::facts_of(collective).reduces && compute == Dtype::bf16 ? Dtype::f32 : compute;
}

std::function<Communicator::Ticket()> collective_call(Communicator& communicator, Collective collective,
                                                      const at::Tensor& whole) {
  const std::int64_t part = whole.numel() / communicator.size();
  const at::Tensor shard = whole.narrow(0, communicator.rank() * part, part);
  Request request{.collective = collective, .input = whole, .output = whole};
  if (collective == Collective::reduce_scatter) request.output = shard;
  if (collective == Collective::all_gather) request.input = shard;
  if (collective == Collective::all_to_all) {
    request.output = at::zeros_like(whole);
    request.sent = request.received =
        std::vector<std::int64_t>(static_cast<std::size_t>(communicator.size()), part);
  }
  return [&communicator, request] { return communicator.begin(request); };
}

at::Tensor zeros_in_memory(at::Device device, Dtype dtype, std::int64_t elements) {
  try {
    // Zeros that the system hands out are one page until they are written.
    return at::empty({elements}, at::TensorOptions(device).dtype(scalar_type(dtype))).zero_();
  } catch (const c10::OutOfMemoryError&) {
    throw UserError(ExitCode::usage, "the GPU's memory does not hold a buffer of " +
                                         std::to_string(elements * element_bytes(dtype)) +
                                         " bytes; other processes may hold much of it (nvidia-smi)");
  }
}

std::int64_t calls_of(const Patience& patience, double seconds) {
  constexpr double most = 1e5;
  const double wanted = seconds > 0 ? std::ceil(patience.seconds / seconds) : 0;
  return std::max({std::int64_t{1}, patience.repeats, static_cast<std::int64_t>(std::min(wanted, most))});
}

CollectiveSubject collective_subject(const Plan& plan, Communicator& communicator) {
  const auto names = communicator.all_gather(run::host_name());
  CollectiveSubject subject{
      .device = metrics::name_of(plan.device),
      .engine = communicator.engine(),
      .ranks = communicator.size(),
      .hosts = static_cast<std::int64_t>(std::set<std::string>(names.begin(), names.end()).size()),
      .model = plan.setting.model.name,
      .dtype = to_string(plan.setting.dtype),
      .repeats = plan.patience.repeats,
      .max_ctas = {}};
  if (const char* limit = std::getenv("NCCL_MAX_CTAS"); limit && *limit) subject.max_ctas = limit;
  return subject;
}

void measure_collectives(const Plan& plan, Communicator& communicator, const UseCollective& use) {
  const c10::InferenceMode no_autograd;
  const spec::Partition partition = spec::partition(spec::inventory(plan.setting.model), communicator.size());
  const std::int64_t most = buffer_room(plan, communicator);
  const auto sizes = [&](Collective collective) {
    // What an all-to-all receives lies beside the buffer, in what is left free.
    return buffer_sizes(collective, partition, element_bytes(element_dtype(collective, plan.setting.dtype)),
                        collective == Collective::all_to_all ? most / 8 : most, swept_mebibytes(plan.device));
  };
  std::int64_t bytes = 0;
  for (const Collective collective : spec::ring_collectives)
    bytes = std::max(bytes, sizes(collective).back().elements *
                                element_bytes(element_dtype(collective, plan.setting.dtype)));
  const Dtype widest = element_dtype(Collective::all_reduce, plan.setting.dtype);
  const at::Tensor buffer =
      zeros_in_memory(plan.device, widest,
                      multiple_from(bytes, element_bytes(widest)) / element_bytes(widest))
          .view(at::kByte);
  settle_clock(plan);  // small collectives take longer on a GPU that was idle
  for (const Collective collective : spec::ring_collectives)
    for (const BufferSize& size : sizes(collective))
      use(measured_row(plan, communicator, collective, size, buffer));
}

}  // namespace assay::impl::bench
