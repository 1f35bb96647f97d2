#pragma once
// The device memory that a run needs, known before any of it is allocated, and which settings would fit where
// it does not. Rules, names of tensors, example: spec/plan/plan.md.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "spec/batch/batch.hpp"
#include "spec/config/run_config.hpp"
#include "spec/step/paper/run.hpp"

namespace assay::spec::memory {

/// A setting that fits.
struct Way {
  std::int64_t micro = 0;
  Recompute recompute = Recompute::none;
  Count peak;  ///< [B]
  bool operator==(const Way&) const = default;
};

struct Plan {
  Setting setting;
  Count state;              ///< weights, gradients, optimizer, tables: there for the whole run [B]
  Count peak;               ///< [B]
  std::string moment;       ///< that moment: "backward of block 24, MLP"
  std::vector<Item> items;  ///< live tensors at that moment, the largest first; their bytes add up to peak
};

/// What a run of `config` needs on one of `batch.ranks` ranks; parallel.data=hybrid without
/// parallel.shard_ranks counts as one host. compute.attention=auto counts as the fastest kernel that takes
/// the shape (attention_backend), and compute.deterministic=auto as off: a run settles both before it plans
/// (impl/run/start/numerics.hpp). Errors: as walk.
Setting setting_of(const RunConfig& config, const ModelSpec& model, const Batch& batch, Machine machine);
Plan plan(const Setting& setting);

/// What fits in `capacity` [B] where `setting` may not.
struct Fit {
  bool asked = false;                ///< the setting as it is
  std::optional<Way> smaller_micro;  ///< the largest micro-batch below the asked one, all else as asked
  std::optional<Way> recompute;      ///< the fewest extra FLOPs at the asked micro-batch
  std::optional<Way> both;           ///< the largest micro-batch under any recompute setting
};

/// Whether a run of `setting` may have micro-batches of `micro` sequences, which divide those of a step:
/// tensor ranks, stages of a ramp and FP8 take them.
bool micro_holds(const Setting& setting, std::int64_t micro);

/// Micro-batches are the divisors of micro x micro_batches, so that the step's batch stays the same, for
/// which micro_holds. Errors: as walk.
Fit fit(const Setting& setting, const Count& capacity);

/// The largest load, in hundredths, with which `setting` takes at most `capacity` [B]: most_load where that
/// fits, 1 where no larger one does, or not even that. Errors: as walk.
double load_that_fits(const Setting& setting, const Count& capacity);

}  // namespace assay::spec::memory
