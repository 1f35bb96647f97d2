#include "impl/run/memory_limits.hpp"

#include <c10/util/Exception.h>

#include <algorithm>
#include <new>
#include <string>

#include "spec/model/inventory.hpp"
#include "spec/text/quantity.hpp"

namespace assay::impl::run {

namespace {

/// As ParameterBuffers: weights, gradients, two moments, and master weights of their own beside bf16, or bf16
/// moments. [B per parameter]
double state_bytes(const spec::RunConfig& config) {
  if (config.dtype == Dtype::f64) return 4 * 8;
  if (config.dtype == Dtype::f32) return 4 * 4;
  return config.states == Dtype::bf16 ? 3 * 2 + 4 : 2 + 4 * 4;
}

/// "2.33 TiB"; counts beyond what bytes() takes are no machine's anyway.
std::string shown(double bytes) { return spec::bytes(static_cast<std::int64_t>(std::min(bytes, 9e18))); }

}  // namespace

MemoryNeed memory_need(const spec::RunConfig& config, const spec::ModelSpec& model, const spec::Batch& batch,
                       at::Device device) {
  MemoryNeed need;
  const auto tokens = [&](std::int64_t sequences) {
    return static_cast<double>(sequences) * static_cast<double>(config.sequence_length);
  };
  if (device.is_cpu()) {
    need.state = static_cast<double>(spec::inventory(model).flat_size) * state_bytes(config);
    need.inputs = tokens(batch.micro) * static_cast<double>(model.width) * static_cast<double>(model.layers) *
                  static_cast<double>(element_bytes(config.dtype));
  }
  // MicroBatch: an input and a target of 8 bytes each.
  need.samples = tokens(batch.sequences_per_rank()) * 16 * (1 + static_cast<double>(config.prefetch));
  return need;
}

void refuse_what_cannot_fit(const spec::RunConfig& config, const spec::ModelSpec& model,
                            const spec::Batch& batch, at::Device device, std::int64_t host_memory) {
  const MemoryNeed need = memory_need(config, model, batch, device);
  const auto have = static_cast<double>(host_memory);
  const std::string machine = ", this machine has " + spec::bytes(host_memory) + "; ";
  if (need.state > have)
    throw UserError(ExitCode::usage, "model \"" + model.name +
                                         "\" cannot be trained here: its weights, gradients and optimizer "
                                         "state take " +
                                         shown(need.state) + machine +
                                         "choose a smaller model, or a machine with more memory");
  if (need.samples > have)
    throw UserError(ExitCode::usage, "batch.sequences = " + std::to_string(batch.sequences) + " of " +
                                         std::to_string(config.sequence_length) +
                                         " tokens with data.prefetch = " + std::to_string(config.prefetch) +
                                         ": the token ids of the steps read ahead take " +
                                         shown(need.samples) + " on each rank" + machine +
                                         "lower batch.sequences or data.prefetch");
  if (need.state + need.inputs > have)
    throw UserError(ExitCode::usage,
                    "one pass of " + std::to_string(batch.micro) + " sequences of " +
                        std::to_string(config.sequence_length) + " tokens cannot fit: the inputs of " +
                        std::to_string(model.layers) + " blocks alone take " + shown(need.inputs) + machine +
                        "lower batch.micro (the sum over the batch stays the same) or batch.sequences");
}

std::optional<UserError> out_of_memory(const std::exception& error, const spec::Batch& batch) {
  const auto* torch = dynamic_cast<const c10::Error*>(&error);
  const std::string text = torch ? torch->what_without_backtrace() : error.what();
  const bool ran_out = dynamic_cast<const std::bad_alloc*>(&error) ||
                       dynamic_cast<const c10::OutOfMemoryError*>(&error) ||
                       (torch && text.find("can't allocate memory") != std::string::npos);
  if (!ran_out) return {};
  return UserError(ExitCode::usage,
                   "memory ran out with " + std::to_string(batch.micro) +
                       " sequences per pass; lower batch.micro (the sum over the batch stays "
                       "the same), batch.sequence_length, or take a smaller model (" +
                       text + ")");
}

}  // namespace assay::impl::run
