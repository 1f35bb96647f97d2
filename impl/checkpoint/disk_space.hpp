#pragma once
// Checks before training whether the disk has room for the checkpoints of a run.
#include <cstdint>
#include <optional>
#include <string>

#include "spec/config/run_config.hpp"
#include "spec/model/model_spec.hpp"

namespace assay::impl::run {

/// What a run adds to its disk.
struct DiskNeed {
  std::int64_t checkpoint = 0;  ///< one checkpoint [B]
  std::int64_t most = 0;        ///< most that checkpoints take at a time beyond those that are there [B]
};

/// `present`: committed checkpoints that are there, `steps_done`: of the one that the run continues. A new
/// one is written before an old one goes: with every save still to come, at most checkpoint.keep + 1 stand at
/// a time, and with checkpoint.keep_best one more.
DiskNeed disk_need(const spec::RunConfig& config, const spec::ModelSpec& model, std::int64_t present,
                   std::int64_t steps_done);

/// Checks the disk of config.directory. Returns a warning when the checkpoints that retention keeps will not
/// all fit; nothing when they will, or the system does not report its free space. Errors: UserError(io) when
/// not even one checkpoint has room: the run could not be saved.
std::optional<std::string> check_disk(const spec::RunConfig& config, const spec::ModelSpec& model,
                                      std::int64_t steps_done);

}  // namespace assay::impl::run
