#include "impl/checkpoint/disk_space.hpp"

#include <algorithm>

#include "impl/checkpoint/checkpoint.hpp"
#include "impl/checkpoint/durable_file.hpp"
#include "impl/checkpoint/folder.hpp"
#include "spec/error.hpp"
#include "spec/model/inventory.hpp"
#include "spec/text/quantity.hpp"

namespace assay::impl::run {

namespace fs = std::filesystem;

DiskNeed disk_need(const spec::RunConfig& config, const spec::ModelSpec& model, std::int64_t present,
                   std::int64_t steps_done) {
  const std::int64_t left = std::max<std::int64_t>(config.steps - steps_done, 1);
  const auto saves_of = [&](std::int64_t every) { return every > 0 ? (left + every - 1) / every : 0; };
  const std::int64_t saves = std::max<std::int64_t>(
      saves_of(config.checkpoint_every) + (config.keep_best ? saves_of(config.eval_every) : 0), 1);
  const std::int64_t at_a_time =
      std::min(present + saves, config.checkpoint_keep + 1 + (config.keep_best ? 1 : 0));
  const Dtype states = config.dtype == Dtype::bf16 ? config.states : config.dtype;  // as ParameterBuffers
  const std::int64_t one = checkpoint::size_on_disk(spec::inventory(model), states);
  return {.checkpoint = one, .most = std::max<std::int64_t>(at_a_time - present, 1) * one};
}

std::optional<std::string> check_disk(const spec::RunConfig& config, const spec::ModelSpec& model,
                                      std::int64_t steps_done) {
  const fs::path parent = fs::path(config.directory) / "checkpoints";
  // A run that continues none gets a folder of its own.
  const bool continues = config.resume != spec::Resume::never;
  const auto present =
      continues ? static_cast<std::int64_t>(checkpoint::marked_checkpoints(parent).size()) : 0;
  const DiskNeed need = disk_need(config, model, present, steps_done);
  const auto free = checkpoint::free_bytes(parent);
  if (!free || *free >= need.most) return {};
  const std::string where = config.directory + ": " + spec::bytes(*free) + " are free on its disk, ";
  if (!config.checkpoint_at_end && !config.saves_on_the_way()) {
    if (*free >= need.checkpoint) return {};
    return where + "one checkpoint takes " + spec::bytes(need.checkpoint) +
           ": the run is saved only where it is stopped, and could not be";
  }
  if (*free < need.checkpoint)
    throw UserError(ExitCode::io, where + "one checkpoint (weights and optimizer state) takes " +
                                      spec::bytes(need.checkpoint) +
                                      ": the run could not be saved; free space or give a run.directory on "
                                      "another disk");
  return where + "its checkpoints take up to " + spec::bytes(need.most) +
         " more (checkpoint.keep = " + std::to_string(config.checkpoint_keep) +
         (config.keep_best ? ", the best" : "") +
         " and the one being written): a later save may fail; free space, lower checkpoint.keep, or give a "
         "run.directory on another disk";
}

}  // namespace assay::impl::run
