#include "impl/run/start/memory_limits.hpp"

#include <c10/util/Exception.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <new>
#include <string>

#include "impl/machine/host.hpp"
#include "impl/ops/grouped_linear/grouped_linear.hpp"
#include "impl/run/start/host_ranks.hpp"
#include "spec/memory/expert_load.hpp"
#include "spec/plan/layouts_that_fit.hpp"
#include "spec/plan/ranks_that_fit.hpp"
#include "spec/text/quantity.hpp"
#include "spec/text/ranks.hpp"

namespace assay::impl::run {

using spec::memory::LayoutWay;
using spec::memory::Machine;
using spec::memory::Plan;
using spec::memory::RanksWay;
using spec::memory::Way;

namespace {

/// Of a GPU's free memory: a plan is right to 2 % (impl/run/warnings.cpp).
constexpr double of_free = 0.98;

/// "2.33 TiB"; counts beyond what bytes() takes are no machine's anyway.
std::string shown(double bytes) { return spec::bytes(static_cast<std::int64_t>(std::min(bytes, 9e18))); }
std::string shown(const Count& bytes) { return shown(bytes.to_double()); }

/// "batch.micro=8".
std::string micro_of(const Way& way) { return "batch.micro=" + std::to_string(way.micro); }
std::string recompute_of(const Way& way) {
  return "memory.recompute=" + std::string(to_string(way.recompute));
}

/// What refuses a run, and may be divided otherwise.
struct Divided {
  const Plan& plan;
  const spec::RunConfig& config;
  const spec::ModelSpec& model;
  const MachineMemory& machine;
  Count capacity;

  std::int64_t ranks() const { return plan.setting.layout.ranks * plan.setting.tensor_ranks; }

  /// "parallel.data=hybrid parallel.shard_ranks=8 batch.micro=1 (71.0 GiB)": what is not as asked.
  std::string shown_way(const spec::Layout& layout, std::int64_t tensor, const Way& way) const {
    const spec::memory::Setting& asked = plan.setting;
    std::string text;
    const auto add = [&](const std::string& setting) { text += (text.empty() ? "" : " ") + setting; };
    if (layout.data != asked.layout.data || tensor == asked.tensor_ranks) {
      add("parallel.data=" + std::string(to_string(layout.data)));
      if (layout.data == spec::DataParallel::hybrid)
        add("parallel.shard_ranks=" + std::to_string(layout.shard_ranks));
    }
    if (tensor != asked.tensor_ranks) add("parallel.tensor=" + std::to_string(tensor));
    const std::int64_t micro = spec::micro_sequences(config, layout.batch_ranks());
    if (way.micro != micro) add(micro_of(way));
    if (way.recompute != asked.recompute) add(recompute_of(way));
    return text + " (" + shown(way.peak) + ")";
  }

  /// Appends a way that passes all other checks of a run, too.
  void add(std::string& text, const spec::Layout& layout, std::int64_t tensor, const Way& way,
           const spec::RunRanks& on) const {
    spec::RunConfig other = config;
    other.data_parallel = layout.data, other.tensor_ranks = tensor;
    other.shard_ranks = layout.data == spec::DataParallel::hybrid ? layout.shard_ranks : 0;
    other.micro = way.micro, other.recompute = way.recompute;
    if (divides(other, model, on)) text += (text.empty() ? "" : " or ") + shown_way(layout, tensor, way);
  }

  std::string tensor_ways(const spec::RunRanks& on) const {
    std::string text;
    for (const RanksWay& each : ranks_that_fit(config, model, plan.setting, on, capacity))
      add(text, each.layout, each.tensor_ranks, each.way, on);
    return text;
  }

  /// "parallel.data=shard (35.9 GiB) or parallel.tensor=2 (40.1 GiB)" of the same ranks; empty
  /// where no other division of them fits.
  std::string others() const {
    const std::int64_t tensor = plan.setting.tensor_ranks, here = machine.ranks_per_host;
    const std::int64_t data_ranks_per_host = here % tensor == 0 ? here / tensor : 0;
    std::string text;
    for (const LayoutWay& each : layouts_that_fit(plan.setting, data_ranks_per_host, capacity))
      add(text, each.layout, tensor, each.way, {ranks(), here});
    const std::string more = ranks() > 1 ? tensor_ways({ranks(), here}) : std::string();
    return text + (text.empty() || more.empty() ? "" : " or ") + more;
  }

  /// "on 2 GPUs with parallel.data=shard (35.9 GiB)": the fewest, up to eight times as many, on which it
  /// fits.
  std::string on_more_gpus() const {
    if (plan.setting.machine != Machine::cuda) return "";
    const bool one_host = machine.ranks_per_host == ranks();
    for (std::int64_t all = 2 * ranks(); all <= 8 * ranks(); all *= 2)
      if (const std::string text = tensor_ways({all, one_host ? all : machine.ranks_per_host}); !text.empty())
        return "on " + spec::grouped(all) + " GPUs with " + text;
    return "";
  }
};

}  // namespace

std::string ways_out(const Plan& plan, const Count& capacity) {
  const auto fit = spec::memory::fit(plan.setting, capacity);
  const auto with_peak = [](const std::string& words, const Way& way) {
    return words + " (" + shown(way.peak) + ")";
  };
  if (fit.smaller_micro && fit.recompute)
    return "set " + with_peak(micro_of(*fit.smaller_micro), *fit.smaller_micro) + " or " +
           with_peak(recompute_of(*fit.recompute), *fit.recompute) + ", the batch of a step stays the same";
  if (fit.smaller_micro)
    return "set " + with_peak(micro_of(*fit.smaller_micro), *fit.smaller_micro) +
           ", the batch of a step stays the same; no setting of memory.recompute is enough";
  if (fit.recompute)
    return "set " + with_peak(recompute_of(*fit.recompute), *fit.recompute) +
           "; no smaller batch.micro is enough without it";
  if (fit.both)
    return "set " + with_peak(micro_of(*fit.both) + " " + recompute_of(*fit.both), *fit.both) +
           ", the batch of a step stays the same; neither is enough alone";
  return "no batch.micro fits, whatever memory.recompute says: lower batch.sequence_length or "
         "batch.sequences, or choose a smaller model";
}

Plan memory_plan(const spec::RunConfig& config, const spec::ModelSpec& model, const spec::Batch& batch,
                 at::Device device, const std::optional<spec::Layout>& layout,
                 const std::optional<Count>& room) {
  spec::memory::Setting setting =
      spec::memory::setting_of(config, model, batch, device.is_cuda() ? Machine::cuda : Machine::cpu);
  if (layout) setting.layout = *layout;
  // Where there is no GPU the plan is of an H200.
  if (int count = 0; device.is_cuda() && cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount,
                                                                device.index()) == cudaSuccess) {
    setting.sms = count;
    setting.grouped_sums = grouped_linear::cuda::has_kernels();
  }
  Plan largest = spec::memory::plan(setting);
  std::int64_t before = setting.micro_batches;
  for (const spec::RampStage& stage : config.ramp) {
    // Only of a stage that is over: a resumed run may divide its batch otherwise.
    if (stage.sequences % (batch.micro * batch.ranks) != 0) continue;
    setting.micro_batches = stage.sequences / (batch.micro * batch.ranks);
    // From the second micro-batch on a step has the same moments.
    if (std::min<std::int64_t>(setting.micro_batches, 2) == std::min<std::int64_t>(before, 2)) continue;
    before = setting.micro_batches;
    if (Plan other = spec::memory::plan(setting); other.peak > largest.peak) largest = std::move(other);
  }
  if (!room || largest.setting.expert_ranks == 1) return largest;
  largest.setting.load = spec::memory::load_that_fits(largest.setting, *room);
  return spec::memory::plan(largest.setting);
}

Count room_now(at::Device device) {
  if (!device.is_cuda()) return 0;
  const auto all = static_cast<double>(device_free_memory(device) + device_allocated_bytes(device));
  return static_cast<std::int64_t>(of_free * all);
}

Count room_of_every_rank(const spec::RunConfig& config, const spec::Batch& batch, at::Device device,
                         const MachineMemory& machine, Communicator& communicator) {
  constexpr double still_to_come = std::int64_t{2} << 30;  // NCCL's communicators, libraries' own memory
  const std::int64_t of_a_rank = machine.device / machine.ranks;
  const double here = device.is_cuda()
                          ? of_free * static_cast<double>(device_free_memory(device)) - still_to_come
                          : static_cast<double>(of_a_rank) - bytes_read_ahead(config, batch);
  auto least = static_cast<std::int64_t>(std::clamp(here, 0.0, 9e18));
  for (const std::string& text : communicator.all_gather(std::to_string(least)))
    least = std::min<std::int64_t>(least, std::stoll(text));
  return least;
}

double bytes_read_ahead(const spec::RunConfig& config, const spec::Batch& batch) {
  std::int64_t sequences = batch.sequences;
  for (const spec::RampStage& stage : config.ramp) sequences = std::max(sequences, stage.sequences);
  // MicroBatch: an input and a target of 8 bytes each.
  return static_cast<double>(sequences) / static_cast<double>(batch.ranks) *
         static_cast<double>(config.sequence_length) * 16 * (1 + static_cast<double>(config.prefetch));
}

void refuse_what_cannot_fit(const Plan& plan, const spec::RunConfig& config, const spec::ModelSpec& model,
                            const spec::Batch& batch, const MachineMemory& machine) {
  const bool on_gpu = plan.setting.machine == Machine::cuda;
  const std::string host_has =
      machine.limit.empty() ? ", this machine has "
                            : ", the memory limit of this process's cgroup, " + machine.limit + ", leaves ";
  const auto shared = [&](std::int64_t bytes) {
    return spec::bytes(bytes) +
           (machine.ranks > 1 ? " for its " + std::to_string(machine.ranks) + " ranks" : std::string());
  };
  const std::int64_t host = machine.host / machine.ranks;
  const std::int64_t device = on_gpu ? machine.device : machine.device / machine.ranks;
  const std::string has =
      (on_gpu ? ", this GPU has " + spec::bytes(machine.device) : host_has + shared(machine.device)) + "; ";
  const auto ahead = static_cast<std::int64_t>(std::min(bytes_read_ahead(config, batch), 9e18));
  const Count capacity = on_gpu ? device : std::max<std::int64_t>(0, device - ahead);
  const std::int64_t tensor = plan.setting.tensor_ranks, ranks = batch.ranks * tensor;
  const bool several = ranks > 1;
  const std::string layout =
      several ? " on each of " + spec::grouped(ranks) + " ranks" +
                    (tensor > 1 ? " (" + spec::data_ranks_text(batch.ranks, tensor) + ")" : "") +
                    " with parallel.data=" + std::string(to_string(plan.setting.layout.data))
              : std::string();
  const Divided divided{plan, config, model, machine, capacity};
  if (plan.state > Count(device)) {
    const std::string others = divided.others(), more = others.empty() ? divided.on_more_gpus() : "";
    std::string advice = !others.empty() ? "set " + others + ", the batch of a step stays the same"
                         : several       ? "no other layout of these ranks fits, either: "
                                         : "";
    if (others.empty())
      advice += (!more.empty() ? "it fits " + more + "; otherwise "
                 : several     ? "start more ranks, "
                               : "") +
                std::string("choose a smaller model, or more memory");
    if (on_gpu && plan.state <= Count(host))
      advice += "; compute.device=cpu trains in the host's " + shared(machine.host) + ", far slower";
    throw UserError(ExitCode::usage, "model \"" + plan.setting.model.name +
                                         "\" cannot be trained here: its weights, gradients and optimizer "
                                         "state take " +
                                         shown(plan.state) + layout + has + advice);
  }
  if (ahead > host)
    throw UserError(ExitCode::usage, "batch.sequences = " + std::to_string(batch.sequences) + " of " +
                                         std::to_string(config.sequence_length) +
                                         " tokens with data.prefetch = " + std::to_string(config.prefetch) +
                                         ": the token ids of the steps read ahead take " + shown(ahead) +
                                         " on each rank" + host_has + shared(machine.host) +
                                         "; lower batch.sequences or data.prefetch");
  if (plan.peak <= capacity) return;
  spec::memory::Setting unsampled = plan.setting;
  unsampled.sampled = 0;
  if (spec::memory::plan(unsampled).peak <= capacity)
    throw UserError(ExitCode::usage, "sample.sentences = " + std::to_string(plan.setting.sampled) +
                                         ": to sample them together at the end takes " + shown(plan.peak) +
                                         has + "lower sample.sentences");
  spec::memory::Setting unvalidated = unsampled;
  unvalidated.validation_batch = 0;
  if (spec::memory::plan(unvalidated).peak <= capacity)
    throw UserError(ExitCode::usage,
                    "a forward pass of validation, of " + std::to_string(plan.setting.validation_batch) +
                        " sequences of " + std::to_string(config.sequence_length) + " tokens, takes " +
                        shown(plan.peak) + has + "set eval.sequences below " +
                        std::to_string(plan.setting.validation_batch) + ", or leave the validation set out");
  const std::string others = divided.others(), more = others.empty() ? divided.on_more_gpus() : "";
  throw UserError(ExitCode::usage,
                  "micro-batches of " + std::to_string(batch.micro) + " sequences of " +
                      std::to_string(config.sequence_length) +
                      " tokens with memory.recompute=" + std::string(to_string(plan.setting.recompute)) +
                      " do not fit: at the fullest moment, " + plan.moment + ", a step takes " +
                      shown(plan.peak) + layout + has + ways_out(plan, capacity) +
                      (others.empty() ? "" : "; other layouts of these ranks that fit: " + others) +
                      (more.empty() ? "" : "; it fits " + more));
}

MachineMemory machine_memory(at::Device device, Communicator& communicator) {
  const HostRanks ranks = host_ranks(communicator);
  const MemoryOfHost host = memory_of_host();
  return {.device = device.is_cuda() ? device_memory(device) : host.left,
          .host = host.left,
          .ranks = ranks.here,
          .ranks_per_host = ranks.each,
          .limit = host.limit};
}

spec::record::Memory memory_event(const Plan& plan, std::int64_t step, at::Device device,
                                  std::int64_t capacity, std::int64_t measured, double load) {
  spec::record::Memory event{.step = step,
                             .device = device.str(),
                             .capacity_bytes = capacity,
                             .planned_bytes = plan.peak.to_int64(),
                             .state_bytes = plan.state.to_int64(),
                             .moment = plan.moment,
                             .measured_bytes = {},
                             .load = {},
                             .tensors = {}};
  if (measured > 0) event.measured_bytes = measured;
  if (plan.setting.expert_ranks > 1) event.load = load;
  for (const spec::memory::Item& item : plan.items)
    event.tensors.push_back({.name = item.name,
                             .purpose = spec::memory::to_string(item.purpose),
                             .count = item.count,
                             .bytes = item.bytes.to_int64()});
  return event;
}

std::string divisions_with_less(const Plan& plan, const spec::RunConfig& config, const spec::ModelSpec& model,
                                const MachineMemory& machine) {
  constexpr double less = 0.9;  // of the plan that turned out too small
  const auto capacity = static_cast<std::int64_t>(less * plan.peak.to_double());
  return Divided{plan, config, model, machine, capacity}.others();
}

bool ran_out_of_memory(const std::exception& error) {
  const auto* torch = dynamic_cast<const c10::Error*>(&error);
  return dynamic_cast<const std::bad_alloc*>(&error) || dynamic_cast<const c10::OutOfMemoryError*>(&error) ||
         (torch && std::string_view(torch->what_without_backtrace()).find("can't allocate memory") !=
                       std::string_view::npos);
}

std::optional<UserError> out_of_memory(const std::exception& error, const spec::Batch& batch,
                                       at::Device device, const std::function<std::string()>& divisions) {
  if (!ran_out_of_memory(error)) return {};
  const auto* torch = dynamic_cast<const c10::Error*>(&error);
  const std::string text = torch ? torch->what_without_backtrace() : error.what();
  const std::string others = divisions ? divisions() : "";
  return UserError(
      ExitCode::usage,
      std::string(device.is_cuda() ? "the GPU's memory" : "memory") + " ran out with " +
          std::to_string(batch.micro) +
          " sequences per micro-batch; lower batch.micro (the sum over the batch stays "
          "the same) or batch.sequence_length, set memory.recompute=block, or take a smaller "
          "model" +
          (others.empty() ? "" : "; of other layouts of these ranks less is planned: " + others) +
          (device.is_cuda() ? "; compute.device=cpu trains in the host's memory, far slower"
                            : std::string()) +
          " (" + text + ")");
}

}  // namespace assay::impl::run
