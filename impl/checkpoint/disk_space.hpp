#pragma once
// Whether what a run will save has room, before it trains.
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
/// a time.
DiskNeed disk_need(const spec::RunConfig& config, const spec::ModelSpec& model, std::int64_t present,
                   std::int64_t steps_done);

/// Looks at the disk of config.directory. A text to warn with when not all that retention keeps will fit;
/// nothing when it will, or the system does not say. Errors: UserError(io) when not even one checkpoint has
/// room: the run could not be saved.
std::optional<std::string> check_disk(const spec::RunConfig& config, const spec::ModelSpec& model,
                                      std::int64_t steps_done);

}  // namespace assay::impl::run
