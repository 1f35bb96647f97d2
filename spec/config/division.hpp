#pragma once
// How a run divides its ranks: into data-parallel ranks of several tensor ranks, and those into shard groups.
// Whatever counts ranks is checked here, together (spec/config/config.md).
#include <vector>

#include "spec/batch/batch.hpp"
#include "spec/config/run_config.hpp"
#include "spec/model/model_spec.hpp"
#include "spec/parallel/data_layout.hpp"

namespace assay::spec {

struct RunRanks {
  std::int64_t all = 1;
  std::int64_t per_host = 1;  ///< of every host; 0: their numbers differ
};

struct Division {
  Batch batch;
  Layout layout;
};

/// Errors: UserError(usage) of batch_of; SpecError config_c13, config_c14, data_layout_c2, _c3,
/// placement_c2..c14, whose message also says the numbers of ranks of each kind. Each names the nearest ways
/// out: one setting changed, or another number of ranks, where that is enough, else the fewest changes
/// together. What is named passes this function, check(config) and check_stages as it stands.
Division divide(const RunConfig& config, const ModelSpec& model, const RunRanks& ranks);

/// Every stage of batch.ramp is of whole micro-batches. Domain: divide holds. Errors: UserError(usage) with
/// ways out as of divide.
void check_stages(const RunConfig& config, const ModelSpec& model, const RunRanks& ranks);

/// Whether check(config), divide and check_stages hold.
bool divides(const RunConfig& config, const ModelSpec& model, const RunRanks& ranks);

/// The layout alone. Errors: SpecError config_c13, config_c14, data_layout_c2, _c3; what is wrong, no more.
Layout layout_on(const RunConfig& config, const RunRanks& ranks);

/// parallel.tensor and, for hybrid, parallel.shard_ranks; otherwise that is as asked.
struct Degrees {
  std::int64_t tensor = 1, shard_ranks = 0;
};

/// All that `divide` takes for these ranks and the other settings of `config`, ascending.
std::vector<Degrees> valid_degrees(const RunConfig& config, const ModelSpec& model, const RunRanks& ranks);

}  // namespace assay::spec
